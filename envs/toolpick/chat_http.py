"""One bounded POST: a reply or the reason why there is none, never an exception that holds the request."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import SplitResult

_SHORTEST_SECRET = 8  # a placeholder like "EMPTY" is no secret, and blotting it out would garble answers


class Secret:
    """An API key whose repr hides it, and with it every log and every traceback that prints local variables."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret(***)"

    def reveal(self) -> str:
        """The key itself."""
        return self._value

    def redact(self, text: str) -> str:
        """`text` with the key blotted out, in case a server echoes it; keys under 8 characters count as none."""
        return text.replace(self._value, "[redacted]") if len(self._value) >= _SHORTEST_SECRET else text


@dataclass(frozen=True)
class Reply:
    """What a server answered: status, body within the limit, and its Retry-After header."""

    status: int
    body: bytes = field(repr=False)
    retry_after: str | None = None


@dataclass(frozen=True)
class NoReply:
    """Why there is no reply; `final` where asking again cannot help."""

    reason: str
    final: bool = False


def post(
    url: SplitResult, body: bytes, secret: Secret, *, connect_timeout: float, timeout: float, max_bytes: int
) -> Reply | NoReply:
    """POST JSON and read the whole reply. Redirects are not followed.

    Args:
        url: http or https, with a host and a path.
        body: UTF-8 JSON.
        secret: sent as a bearer token where it is not empty.
        connect_timeout: seconds to connect to one address of the host.
        timeout: seconds for everything after name resolution, however slowly the server drips.
        max_bytes: a longer body is refused unread.
    """
    deadline = time.monotonic() + timeout
    expired = threading.Event()
    late = NoReply(f"no whole answer within {timeout:.3g} s")
    with contextlib.ExitStack() as stack:
        try:
            wire = _connected(url, min(connect_timeout, timeout))
            stack.callback(wire.close)
            stack.callback(_shut_down_at(deadline, wire, expired).cancel)
            wire.settimeout(max(deadline - time.monotonic(), 0.001))
            if isinstance(wire, ssl.SSLSocket):
                wire.do_handshake()
            exchanged = _exchange(wire, url, body, secret, max_bytes)
        except ssl.SSLCertVerificationError as error:
            return NoReply(f"the server's certificate is not valid: {error.verify_message}", final=True)
        except TimeoutError:
            return late
        except (OSError, http.client.HTTPException) as error:  # the latter's text quotes the server
            exchanged = NoReply(f"the connection failed: {getattr(error, 'strerror', None) or type(error).__name__}")
    return late if expired.is_set() else exchanged


def _connected(url: SplitResult, timeout: float) -> socket.socket:
    secure = url.scheme == "https"
    host = url.hostname or ""
    wire = socket.create_connection((host, url.port or (443 if secure else 80)), timeout=timeout)
    if not secure:
        return wire
    return ssl.create_default_context().wrap_socket(wire, server_hostname=host, do_handshake_on_connect=False)


def _shut_down_at(deadline: float, wire: socket.socket, expired: threading.Event) -> threading.Timer:
    """A timeout of a socket starts anew with each byte; this one ends whatever is being read."""

    def shut_down() -> None:
        expired.set()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(wire, socket.SHUT_RDWR)

    timer = threading.Timer(max(deadline - time.monotonic(), 0.0), shut_down)
    timer.daemon = True
    timer.start()
    return timer


def _exchange(wire: socket.socket, url: SplitResult, body: bytes, secret: Secret, max_bytes: int) -> Reply | NoReply:
    connection = http.client.HTTPConnection(url.netloc)
    connection.sock = wire
    headers = {"Content-Type": "application/json", "Connection": "close"}
    if secret:
        headers["Authorization"] = f"Bearer {secret.reveal()}"
    connection.request("POST", url.path, body, headers)
    with connection.getresponse() as response:
        content = response.read(max_bytes + 1) if (response.length or 0) <= max_bytes else None
        if content is None or len(content) > max_bytes:
            return NoReply(f"the answer is longer than {max_bytes} bytes", final=True)
        if response.length:
            return NoReply("the answer was cut off")
        text = secret.redact(content.decode("utf-8", "surrogateescape"))
        return Reply(response.status, text.encode("utf-8", "surrogateescape"), response.getheader("Retry-After"))
