"""A chat endpoint on this machine that answers as a test tells it to."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Respond = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]  # the connection and the request's JSON


@dataclass
class Endpoint:
    """A running endpoint: its base_url, the requests it got, and (name, value) pairs of their headers."""

    base_url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


def send(handler: BaseHTTPRequestHandler, body: bytes | str, status: int = 200, **headers: str) -> None:
    content = body.encode() if isinstance(body, str) else body
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(content)


def completion(text: Any, finish_reason: str = "stop") -> str:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})


def say(text: Any, finish_reason: str = "stop") -> Respond:
    """Answers every request with this text."""
    return lambda handler, request: send(handler, completion(text, finish_reason))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are what these tests are about."""


@contextmanager
def endpoint(*script: Respond, wrap: Callable[[Any], Any] | None = None) -> Iterator[Endpoint]:
    """Plays one response of the script a request, the last one for ever after."""
    lock = threading.Lock()
    state = Endpoint("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                turn = len(state.requests)
                state.requests.append({"path": self.path, **request})
                state.headers.append(dict(self.headers))
            script[min(turn, len(script) - 1)](self, request)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    server: socketserver.TCPServer = _Server(("127.0.0.1", 0), Handler)
    if wrap is not None:
        server.socket = wrap(server.socket)
    state.base_url = f"http{'s' if wrap else ''}://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
