"""Tables of known failures: error codes, HTTP statuses, class names, errnos, exits, signals."""

import errno

from holdfast.model.failure import FailureKind

_TRANSIENT, _TIMEOUT, _CRASH = FailureKind.TRANSIENT, FailureKind.TIMEOUT, FailureKind.CRASH
_BUDGET, _BUG, _UNKNOWN = FailureKind.BUDGET, FailureKind.BUG, FailureKind.UNKNOWN
_CORRUPTION, _PARTIAL, _DOUBT = FailureKind.CORRUPTION, FailureKind.PARTIAL, FailureKind.IN_DOUBT

CODES: dict[str, FailureKind] = {
    # OpenAI and those who speak its language
    **dict.fromkeys(
        (
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_not_active",
            "billing_error",
            "credit_balance_too_low",
            "ServiceQuotaExceededException",
        ),
        _BUDGET,
    ),
    **dict.fromkeys(
        (
            "rate_limit_exceeded",
            "rate_limit_error",
            "overloaded_error",
            "api_error",
            "server_error",
            "RESOURCE_EXHAUSTED",
            "UNAVAILABLE",
            # AWS, as botocore's own retries list them
            "Throttling",
            "ThrottlingException",
            "ThrottledException",
            "RequestThrottledException",
            "RequestThrottled",
            "TooManyRequestsException",
            "ProvisionedThroughputExceededException",
            "TransactionInProgressException",
            "RequestLimitExceeded",
            "BandwidthLimitExceeded",
            "LimitExceededException",
            "SlowDown",
            "PriorRequestNotComplete",
            "EC2ThrottledException",
            "InternalError",
            "InternalFailure",
            "InternalServerException",
            "ServiceUnavailable",
            "ServiceUnavailableException",
            "ModelNotReadyException",
        ),
        _TRANSIENT,
    ),
    **dict.fromkeys(
        (
            "timeout_error",
            "RequestTimeout",
            "RequestTimeoutException",
            "ModelTimeoutException",
            "DEADLINE_EXCEEDED",
        ),
        _TIMEOUT,
    ),
    **dict.fromkeys(
        (
            "context_length_exceeded",
            "model_not_found",
            "ValidationException",
        ),
        _BUG,
    ),
}
"""A provider's word for what happened."""

STATUSES: dict[int, FailureKind] = {
    207: _PARTIAL,
    **dict.fromkeys((408, 425, 429), _TRANSIENT),
    402: _BUDGET,
    507: _BUDGET,
    **dict.fromkeys((400, 404, 405, 406, 410, 411, 413, 414, 415, 416, 422, 431), _BUG),
    # A refused credential, a conflict, what the server will never do: for a person to look at.
    **dict.fromkeys((401, 403, 407, 409, 412, 501, 505, 511), _UNKNOWN),
}
"""HTTP statuses; of those not listed, 5xx pass by themselves and the rest is unknown."""

NAMES: dict[tuple[str, str], FailureKind] = {
    # Holdfast's own
    ("holdfast", "Damaged"): _CORRUPTION,
    ("holdfast", "InDoubt"): _DOUBT,
    ("holdfast", "InvalidState"): FailureKind.INVALID,
    ("holdfast", "Fenced"): _CRASH,
    ("holdfast", "RunHeld"): _TRANSIENT,
    ("holdfast", "StoreBusy"): _TRANSIENT,
    ("holdfast", "StoreUnwritable"): _BUDGET,
    **{
        ("holdfast", name): _BUDGET
        for name in ("BudgetSpent", "Blocked", "Expired", "Rejected", "Cancelled")
    },
    ("holdfast", "Diverged"): _BUG,
    ("holdfast", "UsageError"): _BUG,
    # The standard library. The most special class of an error that is listed counts.
    ("builtins", "TimeoutError"): _TIMEOUT,
    ("builtins", "ConnectionError"): _TRANSIENT,
    ("builtins", "MemoryError"): _CRASH,
    **{("builtins", name): _CRASH for name in ("KeyboardInterrupt", "SystemExit", "GeneratorExit")},
    **{
        ("builtins", name): _BUG
        for name in (
            "ArithmeticError",
            "AssertionError",
            "AttributeError",
            "EOFError",
            "ImportError",
            "LookupError",
            "NameError",
            "NotImplementedError",
            "RecursionError",
            "StopIteration",
            "StopAsyncIteration",
            "SyntaxError",
            "TypeError",
            "ValueError",
        )
    },
    ("asyncio", "CancelledError"): _CRASH,
    ("asyncio", "IncompleteReadError"): _TRANSIENT,
    ("asyncio", "QueueEmpty"): _BUG,
    ("concurrent", "BrokenExecutor"): _CRASH,
    ("http", "RemoteDisconnected"): _TRANSIENT,
    ("http", "IncompleteRead"): _TRANSIENT,
    ("http", "BadStatusLine"): _TRANSIENT,
    ("ssl", "SSLCertVerificationError"): _UNKNOWN,
    ("ssl", "SSLEOFError"): _TRANSIENT,
    ("ssl", "SSLZeroReturnError"): _TRANSIENT,
    ("subprocess", "TimeoutExpired"): _TIMEOUT,
    # HTTP clients
    **{
        (lib, name): kind
        for lib in ("httpx", "httpcore", "httpx2", "httpcore2")
        for name, kind in (
            ("TimeoutException", _TIMEOUT),
            ("ConnectTimeout", _TIMEOUT),  # By their own names too, for records of them.
            ("ReadTimeout", _TIMEOUT),
            ("WriteTimeout", _TIMEOUT),
            ("PoolTimeout", _TIMEOUT),
            ("NetworkError", _TRANSIENT),
            ("ConnectError", _TRANSIENT),
            ("ReadError", _TRANSIENT),
            ("WriteError", _TRANSIENT),
            ("CloseError", _TRANSIENT),
            ("RemoteProtocolError", _TRANSIENT),
            ("ProxyError", _TRANSIENT),
            ("LocalProtocolError", _BUG),
            ("UnsupportedProtocol", _BUG),
            ("InvalidURL", _BUG),
        )
    },
    ("requests", "Timeout"): _TIMEOUT,
    ("requests", "ConnectTimeout"): _TIMEOUT,
    ("requests", "SSLError"): _UNKNOWN,
    ("requests", "ConnectionError"): _TRANSIENT,
    ("requests", "ChunkedEncodingError"): _TRANSIENT,
    ("urllib3", "TimeoutError"): _TIMEOUT,
    ("urllib3", "NewConnectionError"): _TRANSIENT,
    ("urllib3", "MaxRetryError"): _TRANSIENT,
    ("urllib3", "ProtocolError"): _TRANSIENT,
    ("aiohttp", "ClientConnectorCertificateError"): _UNKNOWN,
    ("aiohttp", "ClientConnectionError"): _TRANSIENT,
    ("aiohttp", "ClientPayloadError"): _TRANSIENT,
    # Model providers; what has a status or a code was judged by that
    **{
        (lib, name): kind
        for lib in ("openai", "anthropic")
        for name, kind in (
            ("APITimeoutError", _TIMEOUT),
            ("APIConnectionError", _TRANSIENT),
            ("RateLimitError", _TRANSIENT),
            ("InternalServerError", _TRANSIENT),
            ("OverloadedError", _TRANSIENT),
            ("ConflictError", _TRANSIENT),
            ("BadRequestError", _BUG),
            ("NotFoundError", _BUG),
            ("UnprocessableEntityError", _BUG),
            ("APIResponseValidationError", _UNKNOWN),
        )
    },
    ("botocore", "ConnectTimeoutError"): _TIMEOUT,
    ("botocore", "ReadTimeoutError"): _TIMEOUT,
    ("botocore", "SSLError"): _UNKNOWN,
    ("botocore", "HTTPClientError"): _TRANSIENT,
    ("botocore", "ConnectionError"): _TRANSIENT,
    ("botocore", "ParamValidationError"): _BUG,
    # Databases and queues
    ("redis", "TimeoutError"): _TIMEOUT,
    ("redis", "ConnectionError"): _TRANSIENT,
    ("psycopg", "OperationalError"): _TRANSIENT,
}
"""Top package and class name; a class counts for those derived from it."""

ERRNOS: dict[int, FailureKind] = {
    **dict.fromkeys(
        (
            errno.EAGAIN,
            errno.EINTR,
            errno.ENETDOWN,
            errno.ENETUNREACH,
            errno.ENETRESET,
            errno.EHOSTDOWN,
            errno.EHOSTUNREACH,
            errno.ENOBUFS,
            -3,  # EAI_AGAIN of a name server that does not answer for now
        ),
        _TRANSIENT,
    ),
    errno.ETIMEDOUT: _TIMEOUT,
    errno.ENOSPC: _BUDGET,
    errno.EDQUOT: _BUDGET,
    errno.ENOMEM: _CRASH,
}
"""Numbers of operating system errors."""

EXITS: dict[int, FailureKind] = {
    2: _BUG,
    7: _CORRUPTION,
    75: _TRANSIENT,  # EX_TEMPFAIL
    124: _TIMEOUT,  # timeout(1)
    126: _BUG,
    127: _BUG,
    130: _CRASH,
    143: _CRASH,
}
"""Exit statuses, Holdfast's own among them; what it records in the journal says more."""

SIGNALS: dict[int, str] = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 8: "SIGFPE", 9: "SIGKILL",
    11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
}  # fmt: skip
"""Signals whose numbers are the same everywhere."""
