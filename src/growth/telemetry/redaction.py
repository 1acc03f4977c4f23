"""Keeps secrets out of log lines, events and errors.

Two nets: a value whose key names a secret is replaced whole (`redacted`), and inside any text the usual carriers of
secrets are cut out (`redacted_text`): Authorization headers, tokens and passwords in assignments and URLs, JSON Web
Tokens, private keys. A bare secret in a text that nothing marks as one cannot be recognised: do not write such texts.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

HIDDEN: Final = "«redacted»"

# Deeper than any object that is worth a log line; ends values that contain themselves.
_DEEPEST: Final = 8

# Keys are compared in lower case without -, _, . and spaces: user_data, userData and user-data are one.
_SEPARATORS: Final = str.maketrans("", "", "-_. ")
_SECRET_WITHIN: Final = (
    "password",
    "passwd",
    "passphrase",
    "rootpass",
    "authorization",
    "userdata",
    "kubeconfig",
    "apikey",
    "accesskey",
    "privatekey",
    "clientkey",
    "clientcertificatedata",
    "credential",
    "bearer",
    "cookie",
    "cloudinit",
)
# At the end only: `token` and `api_token` are secrets, `token_ttl` and `secret_name` are not.
_SECRET_AT_END: Final = ("token", "tokens", "tokendata", "secret", "secrets", "secretdata")

_NAMES: Final = (
    r"(?:password|passwd|passphrase|root_pass|authorization|user[_-]?data|api[_-]?key|private[_-]?key"
    r"|client[_-]?key(?:-data)?|token|secret)"
)
# None may take quadratic time, or one odd text of a megabyte would stop the process: no pattern begins with a repetition,
# and what can be long is bounded or begins at a place of its own.
_IN_TEXT: Final = (
    # A PEM private key, whole, also when its line ends are escaped or its end is missing.
    re.compile(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    # Authorization: Bearer x, Basic x, Token x.
    re.compile(r"(?i)\b(?P<keep>(?:bearer|basic)\s+)[\w.~+/=-]{6,}"),
    # https://user:password@host
    re.compile(r"(?P<keep>://[^\s/:@]{0,200}:)[^\s/@]{1,1000}(?=@)"),
    # token=x, "password": "x", userData='x y'; also inside a JSON text with escaped quotes, and cut off in the middle.
    re.compile(
        rf"""(?ix)(?P<keep>{_NAMES}\\?["']?\s*[=:]\s*)
        (?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\\?["']?[^\s,;&"')}}\]\\]+)"""
    ),
    # A JSON Web Token, such as a service account's.
    re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
)


def names_secret(key: str) -> bool:
    """Whether a key of this name holds a secret."""
    plain = key.lower().translate(_SEPARATORS)
    return plain.endswith(_SECRET_AT_END) or any(word in plain for word in _SECRET_WITHIN)


def redacted_text(text: str) -> str:
    """The text with every recognisable secret cut out; what stands around it stays."""
    for pattern in _IN_TEXT:
        text = pattern.sub(_hidden, text)
    return text


def redacted(value: Any, *, key: str = "", depth: int = 0) -> Any:
    """A value fit to be logged: the same with its secrets hidden, in plain types that any renderer can print.

    Booleans and None under a secret's key stay: they say whether there is one.
    """
    if value is None or isinstance(value, bool):
        return value
    if key and names_secret(key):
        return HIDDEN
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return redacted_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(value)} bytes"
    if depth >= _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {str(name): redacted(inner, key=str(name), depth=depth + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(inner, depth=depth + 1) for inner in value]
    if isinstance(value, set | frozenset):
        return sorted((redacted(inner, depth=depth + 1) for inner in value), key=str)
    return redacted_text(str(value))


def _hidden(match: re.Match[str]) -> str:
    return (match.groupdict().get("keep") or "") + HIDDEN
