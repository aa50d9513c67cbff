"""What kind of failure an exception or the end of a process is, by what can be read on it."""

import asyncio
import concurrent.futures
import concurrent.futures.process
import errno
import http.client
import json
import socket
import ssl
import subprocess
import urllib.error
from collections.abc import Callable
from email.message import Message
from typing import Any

import httpx
import pytest
import requests

import holdfast
from holdfast.model.failure import Ended, Failure, FailureKind
from holdfast.policy.classify import classify, classify_name

NOW = 1_750_000_000.0


def kind(raised: BaseException | Ended, **options: Any) -> str:  # noqa: ANN401 what classify takes
    return str(classify(raised, now=NOW, **options).kind)


def http_error(code: int, **headers: str) -> urllib.error.HTTPError:
    fields = Message()
    for name, value in headers.items():
        fields[name.replace("_", "-")] = value
    return urllib.error.HTTPError("http://here", code, "said", fields, None)


def httpx_error(code: int, **headers: str) -> Exception:
    request = httpx.Request("GET", "http://here")
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx.Response(code, request=request, headers=sent)
    error: Exception = httpx.HTTPStatusError("said", request=request, response=response)
    return error


def requests_error(code: int, **headers: str) -> Exception:
    response = requests.Response()
    response.status_code = code
    response.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    error: Exception = requests.HTTPError("said", response=response)
    return error


class ClientError(Exception):
    """As botocore's: what the service said is a dict."""

    def __init__(self, response: dict[str, Any]) -> None:
        super().__init__("said")
        self.response = response


def client_of(sdk: Any) -> Any:  # noqa: ANN401 two modules without common types
    """The HTTP client that a provider's library speaks through; newer ones have another."""
    known = sdk.APIStatusError.__init__.__globals__
    return known.get("httpx2") or known["httpx"]


@pytest.mark.parametrize(
    ("expected", "error"),
    [
        ("timeout", TimeoutError()),
        ("timeout", concurrent.futures.TimeoutError()),
        ("timeout", subprocess.TimeoutExpired("x", 3)),
        ("transient", ConnectionResetError()),
        ("transient", BrokenPipeError()),
        ("transient", OSError(errno.ENETUNREACH, "no road")),
        ("transient", socket.gaierror(socket.EAI_AGAIN, "later")),
        ("unknown", socket.gaierror(socket.EAI_NONAME, "nobody")),
        ("transient", urllib.error.URLError(ConnectionRefusedError())),
        ("timeout", urllib.error.URLError(TimeoutError())),
        ("unknown", urllib.error.URLError(ssl.SSLCertVerificationError())),
        ("unknown", urllib.error.URLError("unknown url type: kelp")),
        ("transient", http.client.RemoteDisconnected("gone")),
        ("transient", http.client.IncompleteRead(b"")),
        ("transient", ssl.SSLEOFError()),
        ("unknown", ssl.SSLCertVerificationError()),
        ("budget", OSError(errno.ENOSPC, "full")),
        ("crash", MemoryError()),
        ("crash", KeyboardInterrupt()),
        ("crash", SystemExit(1)),
        ("crash", asyncio.CancelledError()),
        ("crash", concurrent.futures.process.BrokenProcessPool()),
        ("bug", TypeError()),
        ("bug", KeyError("x")),
        ("bug", ZeroDivisionError()),
        ("bug", UnboundLocalError()),
        ("bug", ModuleNotFoundError()),
        ("bug", RecursionError()),
        ("bug", json.JSONDecodeError("bad", "", 0)),
        ("bug", AssertionError()),
        ("unknown", RuntimeError("what now")),
        ("unknown", Exception()),
        ("unknown", FileNotFoundError(errno.ENOENT, "none")),
        ("unknown", PermissionError(errno.EPERM, "no")),
    ],
)
def test_an_error_of_the_standard_library_has_its_kind(expected: str, error: BaseException) -> None:
    assert expected == kind(error)


@pytest.mark.parametrize(
    ("expected", "error"),
    [
        ("corruption", holdfast.Damaged("row 7", "it is another")),
        ("crash", holdfast.Fenced("run", 3)),
        ("transient", holdfast.RunHeld("run", "process 7", "now")),
        ("transient", holdfast.StoreBusy("here", 30)),
        ("budget", holdfast.StoreUnwritable("here", "no space")),
        ("in doubt", holdfast.InDoubt("run", "pay", "key", "cut")),
        ("bug", holdfast.Diverged("run", "turn 1", "a", "b")),
        ("invalid state", holdfast.InvalidState("run", "positive", "no", "at turn 1")),
        ("bug", holdfast.UsageError("no")),
        ("bug", holdfast.NotStorable("x", "T")),
        ("unknown", holdfast.NotDone("no")),
        ("timeout", holdfast.StepError("httpx.ReadTimeout", "slow")),
        ("transient", holdfast.RunFailed("run", "ConnectionResetError", "gone")),
    ],
)
def test_an_error_of_holdfast_has_its_kind(expected: str, error: BaseException) -> None:
    assert expected == kind(error)


@pytest.mark.parametrize(
    ("expected", "code"),
    [
        ("partial", 207),
        *(("transient", code) for code in (408, 425, 429, 500, 502, 503, 504, 520, 524, 529)),
        ("budget", 402),
        *(("bug", code) for code in (400, 404, 413, 422)),
        *(("unknown", code) for code in (301, 401, 403, 409, 418, 501)),
    ],
)
@pytest.mark.parametrize("make", [http_error, httpx_error, requests_error])
def test_an_http_status_has_its_kind_whoever_carries_it(
    make: Callable[[int], Exception], expected: str, code: int
) -> None:
    assert expected == kind(make(code))


@pytest.mark.parametrize(
    ("expected", "error"),
    [
        ("timeout", httpx.ReadTimeout("slow")),
        ("timeout", httpx.ConnectTimeout("slow")),
        ("timeout", httpx.PoolTimeout("slow")),
        ("transient", httpx.ConnectError("no")),
        ("transient", httpx.ReadError("cut")),
        ("transient", httpx.RemoteProtocolError("cut")),
        ("bug", httpx.UnsupportedProtocol("ftp")),
        ("bug", httpx.InvalidURL("?")),
        ("timeout", requests.ReadTimeout("slow")),
        ("timeout", requests.ConnectTimeout("slow")),
        ("transient", requests.ConnectionError("cut")),
        ("transient", requests.exceptions.ChunkedEncodingError("cut")),
        ("unknown", requests.exceptions.SSLError("bad")),
        ("bug", requests.exceptions.MissingSchema("x")),
    ],
)
def test_an_error_of_an_http_client_has_its_kind(expected: str, error: Exception) -> None:
    assert expected == kind(error)


@pytest.mark.parametrize("library", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("expected", "code", "body"),
    [
        ("transient", 429, {"error": {"type": "rate_limit_error"}}),
        ("transient", 429, None),
        ("transient", 500, None),
        ("transient", 529, {"error": {"type": "overloaded_error"}}),
        ("transient", 200, {"type": "error", "error": {"type": "overloaded_error"}}),
        ("bug", 400, {"error": {"type": "invalid_request_error"}}),
        ("unknown", 401, {"error": {"type": "invalid_request_error", "code": "invalid_api_key"}}),
        ("bug", 404, None),
        ("budget", 429, {"error": {"code": "insufficient_quota"}}),
    ],
)
def test_an_error_of_a_model_provider_has_its_kind(
    library: str, expected: str, code: int, body: object
) -> None:
    sdk = pytest.importorskip(library)
    web = client_of(sdk)
    response = web.Response(code, request=web.Request("POST", "http://here"))

    assert expected == kind(sdk.APIStatusError("said", response=response, body=body))


@pytest.mark.parametrize("library", ["openai", "anthropic"])
def test_a_broken_line_to_a_model_provider_passes_by_itself(library: str) -> None:
    sdk = pytest.importorskip(library)
    web = client_of(sdk)
    request = web.Request("POST", "http://here")

    assert "transient" == kind(sdk.APIConnectionError(message="cut", request=request))
    assert "timeout" == kind(sdk.APITimeoutError(request=request))


@pytest.mark.parametrize(
    ("expected", "code", "status"),
    [
        ("transient", "ThrottlingException", 400),
        ("transient", "SlowDown", 503),
        ("timeout", "ModelTimeoutException", 408),
        ("budget", "ServiceQuotaExceededException", 402),
        ("bug", "ValidationException", 400),
        ("unknown", "AccessDeniedException", 403),
    ],
)
def test_an_error_of_botocore_has_its_kind(expected: str, code: str, status: int) -> None:
    meta = {"HTTPStatusCode": status, "HTTPHeaders": {"retry-after": "3"}}
    error = ClientError({"Error": {"Code": code, "Message": "said"}, "ResponseMetadata": meta})

    assert expected == kind(error)
    assert 3.0 == classify(error).retry_after_s


def test_a_lost_line_of_botocore_passes_by_itself() -> None:
    lost = type("ConnectionError", (Exception,), {"__module__": "botocore.exceptions"})
    deaf = type("EndpointConnectionError", (lost,), {"__module__": "botocore.exceptions"})

    assert "transient" == kind(deaf())


@pytest.mark.parametrize(
    ("expected", "ended"),
    [
        ("crash", Ended(signal=9)),
        ("crash", Ended(signal=11)),
        ("crash", Ended(signal=15)),
        ("timeout", Ended(signal=9, is_hung=True)),
        ("bug", Ended(status=2)),
        ("corruption", Ended(status=7)),
        ("transient", Ended(status=75)),
        ("timeout", Ended(status=124)),
        ("bug", Ended(status=127)),
        ("crash", Ended(status=130)),
        ("crash", Ended(status=137)),
        ("crash", Ended(status=143)),
        ("unknown", Ended(status=1)),
        ("unknown", Ended(status=42)),
    ],
)
def test_the_end_of_a_process_has_its_kind(expected: str, ended: Ended) -> None:
    assert expected == kind(ended)


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (2.0, http_error(429, retry_after="2")),
        (2.0, httpx_error(429, retry_after="2")),
        (2.0, requests_error(503, retry_after="2")),
        (0.25, httpx_error(429, retry_after_ms="250", retry_after="9")),
        (30.0, http_error(429, retry_after="Sun, 15 Jun 2025 15:07:10 GMT")),
        (0.0, http_error(429, retry_after="Sun, 15 Jun 2025 15:00:00 GMT")),
        (0.0, http_error(429, retry_after="-4")),
        (604800.0, http_error(429, retry_after="99999999999")),
        (None, http_error(429, retry_after="soon")),
        (None, http_error(429, retry_after="nan")),
        (None, http_error(429)),
        (None, ValueError()),
    ],
)
def test_what_the_server_asks_to_wait_is_read(seconds: float | None, error: Exception) -> None:
    assert seconds == classify(error, now=NOW).retry_after_s


def test_what_the_server_says_about_trying_again_counts() -> None:
    assert "transient" == kind(httpx_error(409, x_should_retry="true"))
    assert "unknown" == kind(httpx_error(503, x_should_retry="false"))
    assert "bug" == kind(httpx_error(400, x_should_retry="false"))


def test_an_error_that_no_rule_knows_is_what_it_was_raised_from() -> None:
    wrapped = RuntimeError("the search failed")
    wrapped.__cause__ = http_error(429, retry_after="2")

    failure = classify(wrapped, now=NOW)

    assert ("transient", 2.0) == (failure.kind, failure.retry_after_s)
    assert "raised from HTTPError: HTTP status 429" == failure.why
    assert "RuntimeError: the search failed" == failure.what


def test_causes_without_end_are_unknown() -> None:
    error = RuntimeError()
    error.__cause__ = error

    assert "unknown" == kind(error)


def test_several_errors_are_what_all_of_them_are_or_partial() -> None:
    same = ExceptionGroup("two", [TimeoutError(), ExceptionGroup("in", [TimeoutError()])])
    mixed = ExceptionGroup("two", [TimeoutError(), TypeError()])

    assert "timeout" == kind(same)
    assert "partial" == kind(mixed)


def test_a_rule_of_the_user_comes_first_and_may_be_silent() -> None:
    def rule(error: BaseException | Ended) -> str | None:
        return "transient" if isinstance(error, KeyError) else None

    assert "transient" == kind(KeyError(), rules=[rule])
    assert "rule rule" == classify(KeyError(), rules=[rule]).why
    assert "bug" == kind(IndexError(), rules=[rule])
    assert "crash" == kind(Ended(signal=9), rules=[rule])


@pytest.mark.parametrize("said", ["tranzient", 3, True])
def test_a_rule_that_says_no_kind_leaves_it_to_a_person(said: Any) -> None:  # noqa: ANN401 wrong on purpose
    failure = classify(TimeoutError(), rules=[lambda _: said])

    assert FailureKind.UNKNOWN is failure.kind
    assert "raised ValueError" in failure.why


def test_an_error_whose_attributes_raise_is_judged_by_its_class() -> None:
    class Odd(ConnectionError):
        @property
        def response(self) -> object:
            raise RuntimeError

    assert "transient" == kind(Odd())


def test_a_recorded_error_is_judged_by_its_name() -> None:
    assert Failure(
        kind=FailureKind.TIMEOUT,
        what="TimeoutError: slow",
        why="builtins.TimeoutError",
        sign="builtins.TimeoutError",
    ) == classify_name("builtins", "TimeoutError", "slow")
    assert FailureKind.UNKNOWN is classify_name("shop", "Closed", "").kind


def test_two_failures_are_the_same_by_class_and_not_by_words() -> None:
    assert classify(KeyError("a")).sign == classify(KeyError("b")).sign
    assert classify(Ended(signal=9)).sign != classify(Ended(signal=11)).sign
