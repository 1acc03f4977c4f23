"""From bytes or plain dicts to structs, forgiving what Go forgives.

Go's encoder writes `null` for some empty lists, maps and times (`drivers: null` of a CSINode), and its decoder reads a
null like a missing field. msgspec is strict, so what it refuses is read a second time with the nulls left out. The
common case pays nothing for it.
"""

import functools
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")


def decode(body: bytes | str | msgspec.Raw, kind: type[T]) -> T:
    """The value in a JSON text. `msgspec.ValidationError` names the place that does not fit the struct."""
    try:
        return cast("T", _decoder(cast("Any", kind)).decode(body))
    except msgspec.ValidationError:
        return convert(msgspec.json.decode(body), kind)


def convert(value: Any, kind: type[T]) -> T:
    """The same from what `json.loads` or a YAML reader gives. `value` is not changed."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return msgspec.convert(_without_nulls(value), kind)


@functools.cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
