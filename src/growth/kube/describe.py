"""One line for a person: what went wrong with the cluster, where, and what to do."""

import re

from growth.kube.access import Access
from growth.kube.errors import (
    ApiError,
    ConfigError,
    Forbidden,
    KubeError,
    NotFound,
    OutcomeUnknown,
    Unauthorized,
    Unreachable,
)

_REFUSAL = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)


def describe(error: KubeError, access: Access | None = None) -> str:
    """The line. It never has a secret in it: errors carry none, and neither does what we say of the access."""
    where = f" ({access.origin})" if access is not None and access.origin != access.server else ""
    server = access.server if access is not None else "the API server"
    match error:
        case ConfigError() | OutcomeUnknown():
            line = str(error)
        case Unauthorized():
            user = f" of user {access.user!r}" if access is not None and access.user else ""
            line = f"{server} refuses the credentials{user}: they are wrong or have expired; log in again{where}"
        case Forbidden():
            line = (
                f"{_forbidden(error)}; ask for the roles that `growth rbac` prints, or choose another --context{where}"
            )
        case NotFound() if not error.details.get("name"):
            line = f"{server}: {error}; are Growth's CRDs installed? See `growth crds`{where}"
        case Unreachable():
            line = f"{error}; is the cluster running and the address right?{where}"
        case ApiError():
            line = f"{server} answered {error.code}: {error.message}{where}"
        case _:
            line = str(error)
    return " ".join(line.split())


def _forbidden(error: Forbidden) -> str:
    match = _REFUSAL.search(error.message)
    if match is None:
        return f"the API server forbids it: {error.message}"
    resource = f"{match['resource']}.{match['group']}" if match["group"] else match["resource"]
    place = f" in namespace {match['namespace']}" if match["namespace"] else ""
    return f"user {match['user']!r} may not {match['verb']} {resource}{place}"
