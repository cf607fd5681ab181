"""The chat client in good weather and bad: time, size, records, and a key that never shows."""

import io
import json
import logging
import pickle
import shutil
import ssl
import subprocess
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from loopback import completion, endpoint, say, send

from toolpick import InputError
from toolpick.chat import Answer, Chat, ChatError
from toolpick.chat_cache import ChatCache, request_key

HELLO = [{"role": "user", "content": "hello"}]
KEY = "sk-test-0123456789/abc+DEF="
QUICK: dict[str, Any] = {"timeout": 5.0, "connect_timeout": 2.0, "backoff": 0.01, "max_wait": 0.3, "max_seconds": 10.0}


def chat(server, **settings):
    return Chat(server.base_url, "tiny", **(QUICK | settings))


def refuse(status, body="{}", **headers):
    return lambda handler, request: send(handler, body, status, **headers)


def raw(content: bytes):
    """Writes bytes as they are and hangs up."""

    def respond(handler, request):
        handler.wfile.write(content)
        handler.wfile.flush()
        handler.close_connection = True

    return respond


def drip(handler, request):
    """A byte of the status line every tenth of a second, so that no single read ever times out."""
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1000:
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        time.sleep(0.1)


def stall(handler, request):
    time.sleep(3)


CUT_OFF = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + completion("half").encode())
CUT_CHUNK = raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n{")


def test_it_asks_as_the_api_wants_and_returns_what_the_model_said(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with endpoint(say("good morning")) as server:
        answer = chat(server, extra={"seed": 5}, max_tokens=None)(HELLO)
    assert answer == Answer("good morning", "stop", 7, 3)
    assert server.requests == [
        {"path": "/v1/chat/completions", "model": "tiny", "messages": HELLO, "temperature": 0.0, "seed": 5}
    ]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_without_a_key_none_is_sent(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with endpoint(say("hi")) as server:
        assert chat(server)(HELLO).text == "hi"
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert chat(server, api_key_env="")(HELLO).text == "hi"
    assert all("Authorization" not in headers for headers in server.headers)


@pytest.mark.parametrize(
    "failure",
    [
        refuse(500),
        refuse(503),
        refuse(429),
        refuse(408),
        CUT_OFF,
        CUT_CHUNK,
        raw(b""),
        raw(b"no http at all\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\n\r\n{"),
        refuse(200, "not json"),
        refuse(200, "[" * 100_000),
        refuse(200, '{"choices": []}'),
        refuse(200, "[]"),
        say(None),
        say(5),
    ],
)
def test_what_may_pass_is_asked_again(failure):
    with endpoint(failure, failure, say("third time")) as server:
        assert chat(server)(HELLO).text == "third time"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (refuse(500, '{"error": {"message": "overloaded"}}'), "HTTP 500: 'overloaded'"),
        (CUT_OFF, "the answer was cut off"),
        (CUT_CHUNK, "the connection failed: IncompleteRead"),
        (refuse(200, "not json"), "the answer is not JSON"),
        (refuse(200, "{}"), r"no choices\[0\].message.content"),
        (say(None), "content is not text"),
    ],
)
def test_when_retries_are_spent_the_last_reason_is_told(failure, message):
    with endpoint(failure) as server, pytest.raises(ChatError, match=f"model 'tiny': .*{message}.*attempts: 3"):
        chat(server, retries=2)(HELLO)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (refuse(400, '{"error": {"message": "no such model"}}'), "HTTP 400: 'no such model'"),
        (refuse(404, "<html>"), r"HTTP 404 \(attempts: 1\)"),
        (refuse(401), "environment variable 'OPENAI_API_KEY' is missing or refused"),
        (refuse(307, Location="http://127.0.0.1:9/v1/chat/completions"), "redirects are refused"),
        (refuse(200, "x" * 5000), "longer than 4000 bytes"),
        (raw(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000), "longer than 4000 bytes"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"), "longer than 4000 bytes"),
    ],
)
def test_what_will_not_pass_is_not_asked_again(failure, message):
    with endpoint(failure) as server, pytest.raises(ChatError, match=message):
        chat(server, max_bytes=4000)(HELLO)
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with endpoint(say("stolen")) as other:
        away = refuse(302, Location=f"{other.base_url}/chat/completions")
        with endpoint(away) as server, pytest.raises(ChatError, match="redirects are refused"):
            chat(server)(HELLO)
    assert other.requests == []


def test_retry_after_is_waited_for_and_capped():
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=3600), usegmt=True)
    for header, least, most in (("0.2", 0.2, 2), ("3600", 0.3, 2), (date, 0.3, 2), ("soon", 0, 0.2), ("-5", 0, 0.2)):
        with endpoint(refuse(429, Retry_After=header), say("ok")) as server:
            start = time.monotonic()
            assert chat(server)(HELLO).text == "ok"
            assert least <= time.monotonic() - start < most, header


@pytest.mark.parametrize("failure", [stall, drip], ids=["stall", "drip"])
def test_an_attempt_ends_at_its_timeout_however_slowly_the_server_goes_on(failure):
    start = time.monotonic()
    with endpoint(failure) as server, pytest.raises(ChatError, match=r"no whole answer within 0\.4 s \(attempts: 2\)"):
        chat(server, timeout=0.4, retries=1)(HELLO)
    assert 0.8 <= time.monotonic() - start < 2


def test_all_retries_together_end_at_max_seconds():
    start = time.monotonic()
    with endpoint(refuse(503, Retry_After="9")) as server, pytest.raises(ChatError, match="HTTP 503"):
        chat(server, retries=1000, max_seconds=1.0)(HELLO)
    assert time.monotonic() - start < 2
    start = time.monotonic()
    with endpoint(stall) as server, pytest.raises(ChatError, match="no whole answer"):
        chat(server, retries=1000, timeout=60, max_seconds=0.7)(HELLO)
    assert time.monotonic() - start < 2


def test_nobody_listening_is_a_clear_error():
    with endpoint(say("gone")) as server:
        pass
    with pytest.raises(ChatError, match=r"the connection failed: Connection refused \(attempts: 2\)"):
        chat(server, retries=1)(HELLO)


def test_no_threads_are_left_behind():
    before = threading.active_count()
    with endpoint(say("ok")) as server:
        for _ in range(5):
            chat(server)(HELLO)
        time.sleep(0.1)
        assert threading.active_count() <= before + 1  # the server's own
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate for 127.0.0.1, made here and now."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    words = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    subprocess.run(["openssl", *words, "-keyout", file, "-out", f"{file}.crt"], check=True, capture_output=True)
    return file


def test_https_is_verified(certificate, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{certificate}.crt", certificate)
    wrap = lambda sock: context.wrap_socket(sock, server_side=True)  # noqa: E731
    with endpoint(say("hi"), stall, wrap=wrap) as server:
        with pytest.raises(ChatError, match=r"certificate is not valid: self.signed.*attempts: 1"):
            chat(server)(HELLO)
        assert server.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
        assert chat(server)(HELLO).text == "hi"
        with pytest.raises(ChatError, match="no whole answer"):
            chat(server, timeout=0.5, retries=0)(HELLO)
    with endpoint(say("plain")) as server, pytest.raises(ChatError, match="connection failed"):
        replace(chat(server, retries=0), base_url=server.base_url.replace("http", "https"))(HELLO)


# --- records


def test_a_recorded_answer_is_replayed_without_an_endpoint(tmp_path):
    with endpoint(say("one"), say("two")) as server:
        recorder = chat(server, mode="record", cache=str(tmp_path))
        assert recorder(HELLO).text == recorder(HELLO).text == "one"
        assert recorder(HELLO, sample=1).text == "two"
    assert len(server.requests) == 2
    player = Chat("http://127.0.0.1:9/v1", "tiny", mode="replay", cache=str(tmp_path))
    assert player(HELLO) == Answer("one", "stop", 7, 3)
    assert player(HELLO, sample=1).text == "two"


def test_model_messages_settings_and_sample_are_the_key_and_nothing_else(tmp_path):
    base: dict[str, Any] = {"mode": "replay", "cache": str(tmp_path)}
    words = [{"role": "user", "content": "hello!"}]
    same = [
        Chat("http://a/v1", "m", **base),
        Chat("http://b/v1", "m", timeout=1, retries=9, api_key_env="OTHER", **base),
    ]
    other = [
        Chat("http://a/v1", "n", **base),
        Chat("http://a/v1", "m", temperature=0.5, **base),
        Chat("http://a/v1", "m", max_tokens=1, **base),
        Chat("http://a/v1", "m", extra={"seed": 1}, **base),
    ]
    keys = {_missed(client, HELLO) for client in same}
    assert len(keys) == 1
    keys |= {_missed(client, HELLO) for client in other}
    keys |= {_missed(same[0], words), _missed(same[0], HELLO, sample=1)}
    assert len(keys) == 1 + len(other) + 2


def _missed(client, messages, **options):
    with pytest.raises(InputError, match=r"no recorded answer ([0-9a-f]{64}) of model .* mode=record") as caught:
        client(messages, **options)
    return str(caught.value).split()[3]


def test_live_mode_leaves_the_records_alone(tmp_path):
    with endpoint(say("one"), say("two")) as server:
        live = chat(server, cache=str(tmp_path))
        assert [live(HELLO).text, live(HELLO).text] == ["one", "two"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda entry: entry["answer"].update(text="forged"), "key 'sha256' does not fit"),
        (lambda entry: entry["request"].update(model="forged"), "key 'sha256' does not fit"),
        (lambda entry: entry.pop("answer"), "not a recorded answer"),
    ],
)
def test_a_damaged_record_is_refused_by_name(tmp_path, damage, message):
    cache = ChatCache(tmp_path)
    request = {"model": "m"}
    key = request_key(request)
    cache.put(key, request, {"text": "true"})
    assert cache.get(key) == {"text": "true"}
    entry = json.loads(cache.path(key).read_text())
    damage(entry)
    cache.path(key).write_text(json.dumps(entry))
    with pytest.raises(InputError, match=rf"{key}\.json: {message}.*delete the file"):
        cache.get(key)


def test_a_truncated_or_misplaced_record_is_refused(tmp_path):
    cache = ChatCache(tmp_path)
    cache.put("a" * 64, {"model": "m"}, {"text": "true"})
    with pytest.raises(InputError, match="another request than its name says"):
        cache.get("a" * 64)
    whole = cache.path("a" * 64).read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"\xff\xfe", b"[]", b"[" * 50_000):
        cache.path("b" * 64).write_bytes(content)
        with pytest.raises(InputError, match="not a recorded answer"):
            cache.get("b" * 64)


def test_concurrent_recorders_leave_whole_files_only(tmp_path):
    with endpoint(say("\ud800 lone surrogate, \U0001f600")) as server:
        recorder = chat(server, mode="record", cache=str(tmp_path))
        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda n: recorder(HELLO, sample=n % 3).text, range(24)))
    assert set(texts) == {"\ud800 lone surrogate, \U0001f600"}
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json"] * 3
    assert Chat("http://a", "tiny", mode="replay", cache=str(tmp_path))(HELLO).text == texts[0]


def test_a_folder_that_cannot_be_written_is_an_input_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with endpoint(say("x")) as server, pytest.raises(InputError, match=r"cannot record an answer in .*file"):
        chat(server, mode="record", cache=str(tmp_path / "file"))(HELLO)


# --- the key


def echo(status):
    """A server that quotes the key wherever it can."""

    def respond(handler, request):
        held = handler.headers["Authorization"]
        body = {"error": {"message": f"bad key {held}"}, "choices": [{"message": {"content": f"you sent {held}"}}]}
        send(handler, json.dumps(body).replace("/", "\\/"), status, Retry_After=held, Location=held, X_Key=held)

    return respond


def quote_in_status_line(handler, request):
    handler.wfile.write(f"HTTP/1.1 {handler.headers['Authorization']}\r\n\r\n".encode())
    handler.close_connection = True


FAILURES = {
    "ok": echo(200),
    "redirect": echo(302),
    "bad request": echo(400),
    "unauthorised": echo(401),
    "too many": echo(429),
    "server error": echo(500),
    "status line": quote_in_status_line,
    "cut off": CUT_OFF,
    "cut chunk": CUT_CHUNK,
    "hang up": raw(b""),
    "stall": stall,
    "drip": drip,
    "huge": refuse(200, "x" * 100_000),
    "not json": refuse(200, "not json"),
    "no fields": refuse(200, "{}"),
}


def outcome(client):
    try:
        return client(HELLO), None
    except ChatError as error:
        return None, error


def told(error):
    """Everything an exception can print, local variables of the client's frames included."""
    frames = error.__traceback__.tb_next  # without the test's own frame
    whole = "".join(traceback.TracebackException(type(error), error, frames, capture_locals=True).format())
    assert "in _ask" in whole or "in _secret" in whole
    return [whole, repr(error), str(error), repr(error.__context__), repr(error.__cause__)]


@pytest.mark.parametrize("failure", FAILURES)
def test_the_key_never_shows(failure, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    monkeypatch.setattr(logging.getLogger(), "level", logging.DEBUG)
    with endpoint(FAILURES[failure]) as server:
        client = chat(server, mode="record", cache=str(tmp_path), retries=1, timeout=0.3, max_bytes=50_000)
        answer, error = outcome(client)
        assert (answer is None) == (failure != "ok")
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    logging.getLogger().removeHandler(handler)
    shown = [repr(answer), *(told(error) if error else [])]
    shown += [repr(client), str(vars(client)), log.getvalue(), *capfd.readouterr()]
    shown += [path.read_text() for path in tmp_path.iterdir()]
    assert pickle.loads(pickle.dumps(client)) == client
    for text in [*shown, repr(pickle.dumps(client))]:
        for form in (KEY, KEY.replace("/", "\\/"), "0123456789"):
            assert form not in text


@pytest.mark.parametrize("key", [KEY + "\r\nX-Evil: 1", "sk-schlüssel-0123456789", "sk-0123456789 b"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with endpoint(say("hi")) as server, pytest.raises(InputError, match="OPENAI_API_KEY holds characters") as caught:
        chat(server)(HELLO)
    assert "0123456789" not in "".join(told(caught.value))
    assert server.requests == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base_url": "ftp://a/v1"}, "'base_url' must look like"),
        ({"base_url": "http://user:hunter2@a/v1"}, "'base_url' must look like"),
        ({"base_url": "http://a:hunter2/v1"}, "'base_url' must look like"),
        ({"base_url": "http://a/v1?key=hunter2"}, "'base_url' must look like"),
        ({"base_url": "http://a/v1 x"}, "'base_url' must look like"),
        ({"base_url": ""}, "'base_url' must look like"),
        ({"model": " "}, "'model' is empty"),
        ({"api_key_env": "sk-hunter2"}, "NAME of an environment variable"),
        ({"mode": "rply"}, "one of live, record, replay, got 'rply'"),
        ({"mode": "replay"}, "needs key 'cache'"),
        ({"timeout": 0}, "'timeout' must be above 0"),
        ({"max_bytes": float("inf")}, "'max_bytes' must be above 0 and finite"),
        ({"max_seconds": float("nan")}, "'max_seconds' must be above 0"),
        ({"retries": -1}, "'retries' must be 0 or more"),
        ({"extra": {"stream": True}}, "'extra' may not hold"),
        ({"extra": {"seed": float("nan")}}, "'extra' must be plain JSON"),
    ],
)
def test_bad_settings_are_refused_by_key(settings, message):
    with pytest.raises(InputError, match=message) as caught:
        Chat(**({"base_url": "http://a/v1", "model": "m"} | settings))
    assert "hunter2" not in str(caught.value)
