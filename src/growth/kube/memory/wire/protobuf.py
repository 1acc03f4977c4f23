"""Reads the protobuf bodies that kubectl's typed clients send; answers are always JSON.

`growth.kube.memory.known` says which number is which field of which message. Protobuf does not tell a zero that was meant from one that only fills a place: zeros are left out, except in the fields of `MEANT`.
"""

import base64
import datetime as dt
import struct
from collections.abc import Iterator
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.errors import BadRequest
from growth.kube.memory.known import messages
from growth.units.timestamp import print_micro_time, print_time

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"
MEANT: Final = frozenset(
    {
        *("replicas", "terminationGracePeriodSeconds", "gracePeriodSeconds", "backoffLimit", "parallelism"),
        *("completions", "tolerationSeconds", "partition", "revisionHistoryLimit", "activeDeadlineSeconds"),
        *("successfulJobsHistoryLimit", "failedJobsHistoryLimit", "ttlSecondsAfterFinished", "priority"),
        *("automountServiceAccountToken", "enableServiceLinks", "allowPrivilegeEscalation", "runAsNonRoot"),
        *("readOnlyRootFilesystem", "controller", "blockOwnerDeletion", "value", "optional", "runAsUser"),
    }
)


def decode(body: bytes) -> Json:
    """The object of a request's body; 400 where it is none that we can read."""
    if not body.startswith(MAGIC):
        raise BadRequest("provided data does not appear to be a protobuf message")
    try:
        envelope = {number: value for number, _, value in _parts(body[len(MAGIC) :])}
        names = {number: value.decode() for number, _, value in _parts(envelope.get(1, b""))}
        kind, api_version = names.get(2, ""), names.get(1, "")
        if kind not in messages():
            raise BadRequest(
                f"a {kind or 'message without kind'} in protobuf is not supported by this server: use JSON"
            )
        whole = _message(kind, envelope.get(2, b""))
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError, struct.error) as error:
        raise BadRequest(f"the body of the request is no protobuf: {error}") from error
    return {"kind": kind, "apiVersion": api_version, **whole}


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _parts(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and value of each field: an int, or bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        match tag & 7:
            case 0:
                value, position = _varint(data, position)
                yield tag >> 3, 0, value
            case 1:
                yield tag >> 3, 1, data[position : position + 8]
                position += 8
            case 2:
                length, position = _varint(data, position)
                if position + length > len(data):
                    raise BadRequest("the body of the request is no protobuf: it ends early")
                yield tag >> 3, 2, data[position : position + length]
                position += length
            case 5:
                yield tag >> 3, 5, data[position : position + 4]
                position += 4
            case other:
                raise BadRequest(f"the body of the request is no protobuf: wire type {other}")


def _message(name: str, data: bytes) -> Json:
    fields = messages()[name]
    made: Json = {}
    for number, _, raw in _parts(data):
        if number not in fields:
            continue  # newer than our table
        label, kind = fields[number]
        match kind[0]:
            case "*":
                made.setdefault(label, []).append(_value(kind[1:], raw))
            case "%":
                entry = {part: value for part, _, value in _parts(raw)}
                made.setdefault(label, {})[entry.get(1, b"").decode()] = _value(kind[1:], entry.get(2, b""))
            case "~":
                made.update(_message(kind[1:], raw))
            case _:
                value = _value(kind, raw)
                if value in ("", 0, None) and label not in MEANT:  # False is 0 too
                    continue
                made[label] = value
    return made


def _value(kind: str, raw: Any) -> Any:
    match kind:
        case "s":
            return raw.decode()
        case "i":
            return raw - 2**64 if raw >= 2**63 else raw
        case "b":
            return bool(raw)
        case "d":
            return struct.unpack("<d", raw)[0]
        case "y":
            return base64.b64encode(raw).decode()
        case "Time" | "MicroTime":
            return _time(raw, micro=kind == "MicroTime")
        case "Quantity":
            return {number: value for number, _, value in _parts(raw)}.get(1, b"0").decode()
        case "IntOrString":
            parts = {number: value for number, _, value in _parts(raw)}
            return parts.get(3, b"").decode() if parts.get(1) else _value("i", parts.get(2, 0))
        case "FieldsV1" | "RawExtension":
            return None
        case _:
            return _message(kind, raw)


def _time(raw: bytes, *, micro: bool) -> str | None:
    parts = {number: value for number, _, value in _parts(raw)}
    if not parts:
        return None
    moment = dt.datetime.fromtimestamp(_value("i", parts.get(1, 0)), dt.UTC)
    moment = moment.replace(microsecond=parts.get(2, 0) // 1000)
    return print_micro_time(moment) if micro else print_time(moment)
