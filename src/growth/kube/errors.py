"""What can go wrong between us and an API server. We own the tree, so that callers match on meaning and not on a client
library's exceptions, and so that the server in process raises the very same.

    KubeError
    ├── ApiError                 the server answered with a Status; below 500 nothing was changed
    │   ├── BadRequest           400
    │   ├── Unauthorized         401
    │   ├── Forbidden            403
    │   ├── NotFound             404
    │   ├── MethodNotAllowed     405
    │   ├── Conflict             409  somebody else was first, or a precondition failed
    │   │   └── AlreadyExists    409
    │   ├── Gone                 410  the asked revision is no longer kept: list again
    │   ├── UnsupportedMediaType 415
    │   ├── Invalid              422  the object breaks a rule; the message names the field
    │   ├── TooManyRequests      429  wait (`retry_after_seconds`); an eviction that a budget forbids is one too
    │   └── ServerError          5xx, or an answer that was not the API server's: as for a write, see OutcomeUnknown
    ├── Unreachable              no connection was made: nothing was sent
    │   └── Untrusted            the server's certificate is not one that we were told to trust
    ├── OutcomeUnknown           sent, but no whole answer came: a write may or may not have been applied
    ├── GateClosed               this process may no longer write: its lease is too old
    └── ConfigError              the kubeconfig or the credentials cannot be used
"""

from typing import Any, ClassVar, Final

# What a server or a proxy asks for beyond that is not believed: whoever waits would be blind for as long.
LONGEST_WAIT_SECONDS: Final = 60.0


class KubeError(Exception):
    """Anything that went wrong between us and an API server."""


class ApiError(KubeError):
    """The server refused. `reason` and `details` are those of the server's Status; below 500 nothing was changed."""

    status: ClassVar[int] = 0

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        reason: str = "",
        details: dict[str, Any] | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code if code is not None else self.status
        self.reason = reason or type(self).__name__
        self.details = details or {}
        self.retry_after_seconds = retry_after_seconds

    def pause(self, own: float) -> float:
        """How long to wait before asking again: our `own` time, or longer where the server asks for it, within reason."""
        return max(own, min(self.retry_after_seconds or 0.0, LONGEST_WAIT_SECONDS))


class BadRequest(ApiError):
    status = 400


class Unauthorized(ApiError):
    status = 401


class Forbidden(ApiError):
    status = 403


class NotFound(ApiError):
    status = 404


class MethodNotAllowed(ApiError):
    status = 405


class Conflict(ApiError):
    status = 409


class AlreadyExists(Conflict):
    """The name is taken."""


class Gone(ApiError):
    """The asked revision is no longer kept. The server's reason is `Expired` (or `Gone`)."""

    status = 410


class UnsupportedMediaType(ApiError):
    status = 415


class Invalid(ApiError):
    status = 422


class TooManyRequests(ApiError):
    status = 429


class ServerError(ApiError):
    """The server failed, or a proxy answered in its place (then `code` may be any). A write may have been applied."""

    status = 500


class Unreachable(KubeError):
    """No connection was made: nothing was sent, so trying again is safe."""


class Untrusted(Unreachable):
    """The server shows a certificate that we were not told to trust: another address or authority is needed."""


class OutcomeUnknown(KubeError):
    """The request was sent and no whole answer came. A write may or may not have been applied: look before repeating."""


class GateClosed(KubeError):
    """This process may no longer write."""


class ConfigError(KubeError):
    """The kubeconfig or the credentials cannot be used; the message says which file, what and what to do."""


def may_pass(error: KubeError) -> bool:
    """Whether the same call may work later though nobody corrects anything: the server is away, starting or overloaded."""
    match error:
        case Untrusted():
            return False
        case ServerError(code=code):
            return code >= 500 or code == TooManyRequests.status  # else a wrong address answers, and will go on to
        case _:
            return isinstance(error, Unreachable | OutcomeUnknown | TooManyRequests)


_BY_CODE: dict[int, type[ApiError]] = {
    error.status: error
    for error in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        Conflict,
        Gone,
        UnsupportedMediaType,
        Invalid,
        TooManyRequests,
    )
}


def from_status(status: dict[str, Any], *, code: int, retry_after_seconds: float | None = None) -> ApiError:
    """The error that a server's Status object means; `code` is the HTTP status, which counts when the body lacks one."""
    code = int(status.get("code") or code)
    reason = str(status.get("reason") or "")
    details = status.get("details") or {}
    if retry_after_seconds is None and "retryAfterSeconds" in details:
        retry_after_seconds = float(details["retryAfterSeconds"])
    kind: type[ApiError]
    if reason == "AlreadyExists":
        kind = AlreadyExists
    elif code >= 500:
        kind = ServerError
    else:
        kind = _BY_CODE.get(code, ApiError)
    message = str(status.get("message") or f"the server answered {code}")
    return kind(message, code=code, reason=reason, details=details, retry_after_seconds=retry_after_seconds)


def to_status(error: ApiError) -> dict[str, Any]:
    """The Status object that a server sends for the error."""
    details = dict(error.details)
    if error.retry_after_seconds is not None:
        details.setdefault("retryAfterSeconds", int(error.retry_after_seconds))
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "code": error.code,
    }
    if details:
        status["details"] = details
    return status
