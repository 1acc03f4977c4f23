"""What somebody could do: changes as values that a program can apply, and the same in a sentence.

A change names its object and carries a JSON merge patch (RFC 7396), a JSON patch (RFC 6902) where one entry of a list is
meant, a whole object to create, or nothing where the object is to be deleted or only time must pass.
"""

import dataclasses
import datetime as dt
import json
import shlex
from collections.abc import Iterable
from typing import Any, Final, Literal

from growth.api import names
from growth.api.kinds import Json

Verb = Literal["patch", "create", "delete", "wait"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change. `body` is the merge patch, or the whole object to create; `operations` are those of a JSON patch. `until`
    is when waiting is over; None: nobody knows.
    """

    verb: Verb
    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    body: Json = dataclasses.field(default_factory=dict)
    operations: tuple[Json, ...] = ()
    until: dt.datetime | None = None

    def as_json(self) -> Json:
        """As documented; a contract."""
        if self.verb == "wait":
            return {"verb": "wait", "until": None if self.until is None else f"{self.until:%Y-%m-%dT%H:%M:%SZ}"}
        found: Json = {"verb": self.verb, "apiVersion": self.api_version, "kind": self.kind, "name": self.name}
        if self.namespace:
            found["namespace"] = self.namespace
        if self.verb == "patch":
            found["type"] = self.type
            found["patch"] = list(self.operations) if self.operations else self.body
        elif self.verb == "create":
            found["object"] = self.body
        return found

    @property
    def type(self) -> str:
        """Of a patch: `json` or `merge`."""
        return "json" if self.operations else "merge"

    @property
    def command(self) -> str:
        """The same as a command line; empty where there is none: most of a pod's spec is changed in its workload only."""
        if self.kind == "Pod" and self.verb == "patch" and not _editable(self):
            return ""
        what = f"{_plural(self.api_version, self.kind)} {self.name}"
        if self.namespace:
            what = f"-n {self.namespace} {what}"
        if self.verb == "patch":
            body = json.dumps(self.operations or self.body)
            return f"kubectl patch {what} --type {self.type} -p {shlex.quote(body)}"
        if self.verb == "delete":
            return f"kubectl delete {what}"
        if self.verb == "create":
            return f"echo {shlex.quote(json.dumps(self.body))} | kubectl apply -f -"
        return ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What would help, in words that follow «you could», and the changes, all of which are needed."""

    text: str
    changes: tuple[Change, ...]

    def then(self, other: "Remedy") -> "Remedy":
        """Both, this one first."""
        return Remedy(text=f"{self.text}, and {other.text}", changes=merged((*self.changes, *other.changes)))

    def as_json(self) -> Json:
        return {"text": self.text, "changes": [each.as_json() for each in self.changes]}


WAIT: Final = Remedy(text="wait", changes=(Change(verb="wait"),))


def wait_until(until: dt.datetime, when: str) -> Remedy:
    """Only time must pass; `when` says what is then."""
    text = f"wait until {until:%Y-%m-%dT%H:%M:%SZ}, when {when}"
    return Remedy(text=text, changes=(Change(verb="wait", until=until),))


def patch(api_version: str, kind: str, name: str, body: Json, *, namespace: str = "") -> Change:
    return Change(verb="patch", api_version=api_version, kind=kind, name=name, namespace=namespace, body=body)


def edit(api_version: str, kind: str, name: str, *operations: Json, namespace: str = "") -> Change:
    """A JSON patch: for entries of lists that hold more than we read."""
    return Change(
        verb="patch", api_version=api_version, kind=kind, name=name, namespace=namespace, operations=operations
    )


def pointer(*parts: str | int) -> str:
    """The place of a value, as a JSON patch names it."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def merged(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Merge patches of one object as one patch: later lists were made from the earlier ones and stand for both."""
    found: list[Change] = []
    for change in changes:
        at = next((at for at, known in enumerate(found) if _together(known, change)), None)
        if at is None:
            found.append(change)
        else:
            found[at] = dataclasses.replace(found[at], body=_both(found[at].body, change.body))
    return tuple(found)


def _together(one: Change, other: Change) -> bool:
    def key(each: Change) -> tuple[str, str, str, str]:
        return each.api_version, each.kind, each.namespace, each.name

    return one.verb == other.verb == "patch" and one.type == other.type == "merge" and key(one) == key(other)


def operated(target: Any, operations: Iterable[Json]) -> Any:
    """The target after a JSON patch of `add`, `replace` and `remove`; `KeyError` or `IndexError` where a place is missing."""
    result = json.loads(json.dumps(target))
    for each in operations:
        *above, last = [part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]]
        place = result
        for part in above:
            place = place[int(part)] if isinstance(place, list) else place[part]
        at: Any = int(last) if isinstance(place, list) else last
        if each["op"] == "remove":
            del place[at]
        elif each["op"] == "add" and isinstance(place, list):
            place.insert(at, each["value"])
        else:
            place[at] = each["value"]
    return result


def merge(target: Any, change: Any) -> Any:
    """The target with a merge patch applied; neither is changed."""
    if not isinstance(change, dict):
        return change
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def _both(one: Any, other: Any) -> Any:
    """One patch for two, the second of which is applied after the first."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other
    return {**one, **{key: _both(one[key], value) if key in one else value for key, value in other.items()}}


def _editable(change: Change) -> bool:
    """Whether a server lets somebody do that to a pod that is there."""
    if change.operations:
        return False
    return set(change.body) <= {"metadata", "spec"} and set(change.body.get("spec", {})) <= {
        "tolerations",
        "schedulingGates",
    }


_PLURALS: Final = {
    (names.GROWTH, "NodePool"): "growthpools.growth.dev",
    (names.KARPENTER, "NodePool"): "nodepools.karpenter.sh",
}


def _plural(api_version: str, kind: str) -> str:
    group = api_version.rpartition("/")[0]
    return _PLURALS.get((group, kind), kind.lower())
