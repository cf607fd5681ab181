"""One client for every endpoint that speaks OpenAI's chat completions, with recorded answers."""

from __future__ import annotations

import json
import math
import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from toolpick.chat_cache import ChatCache, request_key
from toolpick.chat_http import NoReply, Reply, Secret, post
from toolpick.errors import InputError

__all__ = ["Answer", "Chat", "ChatError", "Message"]

Message = Mapping[str, str]  # {"role": ..., "content": ...}
MODES = ("live", "record", "replay")
_LONGEST_QUOTE = 200


class ChatError(RuntimeError):
    """The endpoint gave no usable answer. The message names address, model, reason and attempts, never the key."""


@dataclass(frozen=True)
class Answer:
    """What the model said.

    Attributes:
        text: content of the first choice.
        finish_reason: as the endpoint reports it, e.g. "stop" or "length"; empty where it does not.
        prompt_tokens, completion_tokens: as reported, or None.
    """

    text: str
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class Chat:
    """Asks a model, with bounded time and size, and can record and replay its answers.

    429, 408 and 5xx statuses, failed connections, timeouts, cut-off and malformed answers are asked again, with
    exponential backoff and jitter; other statuses, redirects and answers beyond `max_bytes` are not. Proxy
    settings of the environment are not read.

    Args:
        base_url: up to and without `/chat/completions`, e.g. https://api.openai.com/v1.
        model: as the endpoint names it.
        api_key_env: environment variable that holds the key, read at each call and kept nowhere. Where it is
            unset or this is empty, no key is sent.
        mode: `live` asks each time; `record` asks what `cache` lacks and records it; `replay` never asks.
        cache: folder of recorded answers, one file a request. The key is the hash of model, messages, settings
            and sample number; not of `base_url`.
        temperature: None leaves it to the endpoint.
        max_tokens: of the answer; None leaves it to the endpoint.
        extra: further fields of the request body, e.g. {seed: 0}.
        timeout: seconds for one attempt, first byte to last.
        connect_timeout: seconds to connect.
        retries: attempts after the first.
        backoff: seconds before the first retry, doubled for each further one.
        max_wait: longest wait between attempts in seconds; a longer Retry-After is cut to it.
        max_seconds: for a call with all its retries.
        max_bytes: longest reply.

    Raises:
        InputError: a setting out of its range.
    """

    base_url: str
    model: str
    api_key_env: str = "OPENAI_API_KEY"
    mode: str = "live"
    cache: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = 256
    extra: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 60.0
    connect_timeout: float = 10.0
    retries: int = 4
    backoff: float = 0.5
    max_wait: float = 60.0
    max_seconds: float = 300.0
    max_bytes: int = 2**20

    def __post_init__(self) -> None:
        _url(self.base_url)
        if not self.model.strip():
            raise InputError("chat: key 'model' is empty; name the model as the endpoint does")
        if self.mode not in MODES:
            raise InputError(f"chat: key 'mode' must be one of {', '.join(MODES)}, got {self.mode!r}")
        if self.mode != "live" and not self.cache:
            raise InputError(f"chat: mode {self.mode} needs key 'cache', the folder of recorded answers")
        if self.api_key_env and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.api_key_env):
            raise InputError("chat: key 'api_key_env' must be the NAME of an environment variable, not a key")
        for name in ("timeout", "connect_timeout", "max_seconds", "max_bytes", "backoff", "max_wait"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"chat: key {name!r} must be above 0 and finite, got {getattr(self, name)}")
        if self.retries < 0:
            raise InputError(f"chat: key 'retries' must be 0 or more, got {self.retries}")
        reserved = {"model", "messages", "temperature", "max_tokens", "stream"} & set(self.extra)
        if reserved:
            raise InputError(f"chat: key 'extra' may not hold {sorted(reserved)}; these have settings or are fixed")
        try:
            json.dumps(dict(self.extra), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"chat: key 'extra' must be plain JSON: {error}") from error

    def __call__(self, messages: Sequence[Message], *, sample: int = 0) -> Answer:
        """The answer to a conversation.

        Args:
            messages: of `{"role", "content"}`.
            sample: number of the draw, for several recorded answers to one prompt at a temperature above 0.

        Raises:
            InputError: replaying what was not recorded, a damaged record, or a key that cannot be sent.
            ChatError: no usable answer after all attempts.
        """
        request = self._request(messages, sample)
        key = request_key(request)
        cache = ChatCache(Path(self.cache)) if self.cache and self.mode != "live" else None
        recorded = cache.get(key) if cache else None
        if recorded is not None:
            return Answer(**recorded)
        if self.mode == "replay":
            raise InputError(
                f"no recorded answer {key} of model {self.model!r} in {self.cache}; record it with mode=record"
            )
        answer = self._ask(request)
        if cache:
            cache.put(key, request, asdict(answer))
        return answer

    def _request(self, messages: Sequence[Message], sample: int) -> dict[str, Any]:
        settings = {"temperature": self.temperature, "max_tokens": self.max_tokens} | dict(self.extra)
        return {
            "model": self.model,
            "messages": [dict(message) for message in messages],
            "settings": {name: value for name, value in settings.items() if value is not None},
            "sample": sample,
        }

    def _ask(self, request: dict[str, Any]) -> Answer:
        secret = self._secret()
        body = json.dumps({"model": request["model"], "messages": request["messages"]} | request["settings"]).encode()
        deadline = time.monotonic() + self.max_seconds
        attempt = 0
        while True:
            result, asked_to_wait = self._attempt(body, secret, min(self.timeout, deadline - time.monotonic()))
            if isinstance(result, Answer):
                return result
            backoff = self.backoff * 2**attempt * random.uniform(0.5, 1.0)
            wait = min(max(backoff, asked_to_wait), self.max_wait)
            attempt += 1
            if result.final or attempt > self.retries or time.monotonic() + wait >= deadline:
                break
            time.sleep(wait)
        raise ChatError(f"{self.base_url}, model {self.model!r}: {result.reason} (attempts: {attempt})")

    def _attempt(self, body: bytes, secret: Secret, timeout: float) -> tuple[Answer | NoReply, float]:
        """The outcome of one attempt, and the seconds the server wants us to wait before the next."""
        reply = post(
            _url(self.base_url),
            body,
            secret,
            connect_timeout=self.connect_timeout,
            timeout=timeout,
            max_bytes=self.max_bytes,
        )
        if isinstance(reply, NoReply):
            return reply, 0.0
        if reply.status == 200:
            return _answer(reply.body, secret), 0.0
        again = reply.status in (408, 429) or reply.status >= 500
        return NoReply(self._refusal(reply, secret), final=not again), _seconds(reply.retry_after)

    def _refusal(self, reply: Reply, secret: Secret) -> str:
        if reply.status in (401, 403):  # such answers like to quote the key, or parts of it
            return f"HTTP {reply.status}: the key in environment variable {self.api_key_env!r} is missing or refused"
        if 300 <= reply.status < 400:
            return f"HTTP {reply.status}: redirects are refused; set base_url to the final address"
        return f"HTTP {reply.status}{_quote(reply.body, secret)}"

    def _secret(self) -> Secret:
        secret = Secret(os.environ.get(self.api_key_env, "").strip() if self.api_key_env else "")
        if not re.fullmatch(r"[\x21-\x7e]*", secret.reveal()):
            raise InputError(f"environment variable {self.api_key_env} holds characters that no API key has")
        return secret


def _url(base_url: str) -> SplitResult:
    advice = "chat: key 'base_url' must look like https://host/v1, without user, query or fragment"
    try:
        url = urlsplit(base_url.rstrip("/") + "/chat/completions")
        _ = url.port
    except ValueError:  # its text quotes the value, which may hold a password
        raise InputError(advice) from None
    plain = re.fullmatch(r"[\x21-\x7e]+", base_url) and not re.search(r"[?#@]", base_url)
    if url.scheme not in ("http", "https") or not url.hostname or not plain:
        raise InputError(advice)
    return url


def _answer(body: bytes, secret: Secret) -> Answer | NoReply:
    try:
        content = json.loads(body)
        choice = content["choices"][0]
        text, reason, usage = choice["message"]["content"], choice.get("finish_reason"), content.get("usage")
    except (ValueError, RecursionError):
        return NoReply("the answer is not JSON")
    except (KeyError, IndexError, TypeError, AttributeError):
        return NoReply("the answer has no choices[0].message.content")
    if not isinstance(text, str):
        return NoReply("the answer's choices[0].message.content is not text")
    usage = usage if isinstance(usage, dict) else {}
    return Answer(
        secret.redact(text),
        secret.redact(reason) if isinstance(reason, str) else "",
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _quote(body: bytes, secret: Secret) -> str:
    """The server's own words, where it gives them in the usual place."""
    try:
        message = json.loads(body)["error"]["message"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return ""
    return f": {secret.redact(message)[:_LONGEST_QUOTE]!r}" if isinstance(message, str) else ""


def _seconds(retry_after: str | None) -> float:
    """Retry-After in seconds, given as a number or a date; 0 where absent or senseless."""
    if not retry_after:
        return 0.0
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return seconds if 0 < seconds < math.inf else 0.0
