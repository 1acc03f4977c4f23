"""What a run did to the outside, as one hash: equal for equal behaviour, whatever functions, modules and tasks are called.

Hashed are, each with its virtual time:

- every request of the autoscaler that arrives at the API server and writes, or reads for its cloud's provider;
- every change of an object there, whoever made it: the parts of the object that changed;
- every call that arrives at the fake of a vendor's API, with its body and the answer's status.

Left out is what people read (texts in events, conditions and Decisions; reasons of one word stay), what only the order of
writes decides (resource versions), and who is at work inside a process. Effects of one instant are sorted. An object's UID
is replaced by the object's name; a generated name stays, so that two objects that are made at one instant in the other
order are another effect where both names are generated.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from growth.api.kinds import Json
from growth.sim.ports import Request

if TYPE_CHECKING:
    from growth.sim.seams import Step

# For people: `reason` too, unless it is one word, which programs read.
TEXTS: Final = frozenset({"description", "message", "note", "summary", "why"})
REASON: Final = "reason"
# Numbers of writes: a Decision's `revision` is the resource version that it was made from.
ORDERS: Final = frozenset({"resourceVersion", "revision"})
# Their parts are compared one by one.
PARTS: Final = ("metadata", "spec", "status")

_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_UID_LENGTH: Final = 36
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class Effects:
    """The effects of one run so far. `digest` ends the instant that it is asked at."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._at = 0.0
        self._lines: list[bytes] = []  # of this instant
        self._names: dict[str, str] = {}  # of objects, by UID
        self._lives: dict[str, int] = {}  # objects that had this name so far

    def change(self, step: "Step") -> None:
        """A change of an object in the API server."""
        name = "/".join((*step.which, *step.key))
        if step.old is None:
            life = self._lives[name] = self._lives.get(name, 0) + 1
            self._names[step.last["metadata"]["uid"]] = f"{name}#{life}"
        changed = None if step.new is None else _changed(step.old or {}, step.new)
        self._add(step.at, (step.actor.process, name, self._bare(changed)))

    def request(self, at: float, process: str, verb: str, *target: str) -> None:
        """A request of the autoscaler that has arrived at the API server."""
        self._add(at, (process, verb, *target))

    def call(self, at: float, process: str, request: Request, status: int) -> None:
        """A call that has arrived at a cloud, and the status of its answer; 0 where the connection broke."""
        body = (request.body or b"").decode()
        self._add(at, (process, request.method, self._named(request.url), self._named(body), status))

    def digest(self, at: float) -> str:
        """The hash of all effects until now, 32 hexadecimal characters."""
        self._advance(at)
        return self._hash.hexdigest()

    def _add(self, at: float, effect: tuple[object, ...]) -> None:
        if at != self._at:
            self._advance(at)
        self._lines.append(_encode(effect))

    def _advance(self, at: float) -> None:
        self._lines.sort()
        self._hash.update(b"\n".join((repr(self._at).encode(), *self._lines, repr(at).encode())))
        self._lines.clear()
        self._at = at

    def _bare(self, value: Any) -> Any:
        """A JSON value without texts and numbers of writes, and with names in the place of UIDs."""
        if isinstance(value, dict):
            return {self._named(key): self._bare(part) for key, part in value.items() if not _is_left_out(key, part)}
        if isinstance(value, list):
            return [self._bare(part) for part in value]
        return self._named(value) if isinstance(value, str) else value

    def _named(self, text: str) -> str:
        if len(text) < _UID_LENGTH or "-4" not in text:
            return text
        return _UID.sub(lambda found: self._names.get(found[0], found[0]), text)


def _is_left_out(key: str, value: object) -> bool:
    if not isinstance(value, str):
        return False  # of a schema: its properties have these names too
    return key in TEXTS or key in ORDERS or (key == REASON and not value.isalnum())


def _changed(old: Mapping[str, Any], new: Json) -> dict[str, Any]:
    """The fields that differ, those of the large parts one by one; None where a field is gone."""
    found = {}
    for field in {**old, **new}:
        before, after = old.get(field), new.get(field)
        if before is after:
            continue  # a write shares what it leaves as it was
        if field in PARTS and isinstance(before or {}, dict) and isinstance(after or {}, dict):
            before, after = before or {}, after or {}
            after = {part: after.get(part) for part in {**before, **after} if before.get(part) != after.get(part)}
            before = {}
        if before != after:
            found[field] = after
    return found
