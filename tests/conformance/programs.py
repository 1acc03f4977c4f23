"""Random programs of API calls, for comparing two servers call by call.

A step is a plain value: the same program runs on both servers, each with its own uids and revisions. `run` gives what
each step answered, with everything that may rightly differ (uids, revisions, times) taken out.
"""

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

from growth.api.kinds import Json, Kind
from growth.kube.api import Api, PatchType
from growth.kube.errors import ApiError, Invalid, NotFound
from tests.conformance.kinds import BUDGET, CONFIG_MAP, DEPLOYMENT, NODE, POD

NAMES = ("a", "b", "c")
LABELS: Sequence[Json | None] = (None, {}, {"x": "1"}, {"x": "2", "y": ""}, {"bad key": "v"}, {"x": "bad value"})
FINALIZERS: Sequence[list[str] | None] = (
    None,
    None,
    [],
    ["growth.dev/a"],
    ["growth.dev/a", "growth.dev/b"],
    ["plain"],
)
SELECTORS = ("", "x", "!x", "x=1", "x!=1", "x in (1,2)", "x notin (2)", "x=1,y", "x in", "y=")


@dataclasses.dataclass(frozen=True)
class Step:
    """One call: `verb` on the object `name` of `kind`; `options` are the call's own, `hold` its precondition."""

    verb: str
    kind: Kind[Json]
    name: str
    body: Any = None
    hold: str = ""
    options: Json = dataclasses.field(default_factory=dict)


def program(seed: int, *, length: int, invented: Kind[Json]) -> list[Step]:
    """A program that is the same for the same seed. It holds right and wrong calls in about equal measure."""
    chooser = random.Random(seed)
    kinds = (CONFIG_MAP, invented, POD, POD, NODE, DEPLOYMENT, BUDGET)
    return [_step(chooser, chooser.choice(kinds), invented) for _ in range(length)]


def _step(chooser: random.Random, kind: Kind[Json], invented: Kind[Json]) -> Step:
    name = chooser.choice(NAMES)
    verbs = ["create"] * 3 + ["patch"] * 4 + ["delete"] * 2 + ["get", "list", "json", "status", "update"]
    if kind is POD:
        verbs += ["bind", "evict", "bind", "evict", "strategic", "strategic"]
    elif kind in (DEPLOYMENT, invented):
        verbs += ["scale", "strategic"]
    elif kind is BUDGET:
        verbs += ["status"] * 4
    elif kind is NODE:
        verbs += ["strategic", "strategic status"]
    verb = chooser.choice(verbs)
    hold = chooser.choice(("", "", "", "uid", "revision", "both", "wrong uid", "old revision"))
    match verb:
        case "create":
            return Step(verb, kind, name, _object(chooser, kind, name))
        case "patch":
            return Step(verb, kind, name, _patch(chooser, kind), hold)
        case "strategic":
            return Step(verb, kind, name, _strategic(chooser, kind))
        case "strategic status":
            condition = {"type": chooser.choice(("Ready", "DiskPressure")), "status": chooser.choice(("True", "False"))}
            return Step(verb, kind, name, {"status": {"conditions": [condition]}})
        case "json":
            return Step(verb, kind, name, _operations(chooser, kind))
        case "status":
            return Step(verb, kind, name, {"status": _status(chooser, kind)}, hold)
        case "update":
            # A pod's spec is never sent in part: how many of its fields are then missed is nobody's concern.
            body = {"metadata": _metadata(chooser, kind)} if kind is POD else _patch(chooser, kind)
            return Step(verb, kind, name, body, hold)
        case "scale":
            return Step(verb, kind, name, {"spec": {"replicas": chooser.choice((0, 3, -1))}})
        case "delete":
            options = {"grace_seconds": chooser.choice((None, None, 0, 5))}
            return Step(verb, kind, name, None, hold, options)
        case "evict":
            # A wrong uid keeps a real server trying for ten seconds when a budget is involved.
            return Step(verb, kind, name, None, chooser.choice(("", "uid", "uid")))
        case "bind":
            return Step(verb, kind, name, chooser.choice(("n1", "n2")), chooser.choice(("", "uid", "wrong uid")))
        case "list":
            return Step(verb, kind, "", chooser.choice(SELECTORS))
        case _:
            return Step(verb, kind, name)


def _metadata(chooser: random.Random, kind: Kind[Json]) -> Json:
    if kind is BUDGET:  # servers check a budget's metadata last and by laxer rules than that of other built-in kinds
        return {"labels": {"x": chooser.choice(("1", "2"))}}
    chosen = {"labels": chooser.choice(LABELS), "finalizers": chooser.choice(FINALIZERS)}
    if chooser.random() < 0.2:
        chosen["annotations"] = chooser.choice(({"a": "1"}, {}, None))
    return {key: value for key, value in chosen.items() if chooser.random() < 0.6}


def _object(chooser: random.Random, kind: Kind[Json], name: str) -> Json:
    body: Json = {"metadata": {"name": name, **_metadata(chooser, kind)}}
    return {**body, **_content(chooser, kind, whole=True)}


def _content(chooser: random.Random, kind: Kind[Json], *, whole: bool) -> Json:
    if kind is CONFIG_MAP:
        return {"data": chooser.choice(({}, {"k": "1"}, {"k": "2", "l": "x"}, {"k": None}, {"bad key!": "1"}))}
    if kind is NODE:
        taint = {"key": "t", "effect": chooser.choice(("NoSchedule", "NoExecute", "Never"))}
        return {"spec": chooser.choice(({}, {"unschedulable": True}, {"taints": [taint]}, {"taints": None}))}
    if kind is BUDGET:
        bounds = chooser.choice(
            ({"minAvailable": 1}, {"maxUnavailable": "50%"}, {"minAvailable": 1, "maxUnavailable": 1})
        )
        selector = chooser.choice(({"matchLabels": {"x": "1"}}, {}, {"matchLabels": {"x": "2"}}))
        return {"spec": {**bounds, "selector": selector} if whole else bounds}
    if kind is POD:
        if not whole:
            return {"spec": chooser.choice(({"activeDeadlineSeconds": 9}, {"nodeName": "n3"}, {"priority": 3}))}
        spec: Json = {"containers": [{"name": "main", "image": chooser.choice(("img", "img:v1", ""))}]}
        if chooser.random() < 0.3:
            spec["schedulingGates"] = [{"name": "growth.dev/gate"}]
        if chooser.random() < 0.3:
            spec["nodeName"] = "n0"
        if chooser.random() < 0.3:
            spec["terminationGracePeriodSeconds"] = chooser.choice((0, 7))
        return {"spec": spec}
    if kind is DEPLOYMENT:
        labels = {"app": chooser.choice(("one", "one", "two"))}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "img"}]}}
        partial: Json = chooser.choice(({"replicas": 2}, {"paused": True}, {"replicas": None}))
        if not whole:
            return {"spec": partial}
        return {"spec": {"selector": {"matchLabels": {"app": "one"}}, "template": template, **partial}}
    return {
        "spec": chooser.choice(
            (
                {},
                {"size": 1},
                {"size": 99},
                {"size": "x"},
                {"size": 2, "colour": "red", "odd": 1},
                {"colour": "blue"},
                {"parts": [{"name": "a"}, {"name": "b", "weight": 2}]},
                {"parts": [{"name": "a"}, {"name": "a"}]},
                {"parts": None, "colour": None},
                {"replicas": 4, "low": 5, "high": 1},
            )
        )
    }


def _patch(chooser: random.Random, kind: Kind[Json]) -> Json:
    body = _content(chooser, kind, whole=False) if chooser.random() < 0.7 else {}
    if chooser.random() < 0.6 or not body:
        body["metadata"] = _metadata(chooser, kind)
    return body


def _strategic(chooser: random.Random, kind: Kind[Json]) -> Json:
    """A strategic patch that merges lists by their keys, or any patch."""
    if kind is DEPLOYMENT and chooser.random() < 0.7:
        containers: Sequence[Json] = (
            {"name": "main", "env": [{"name": "A", "value": "1"}]},
            {"name": "main", "env": [{"name": "B", "value": "2"}, {"name": "A", "$patch": "delete"}]},
            {"name": "main", "ports": [{"containerPort": 80}]},
            {"name": "main", "ports": [{"containerPort": 81, "protocol": "UDP"}]},
            {"name": "main", "resources": {"limits": {"cpu": "1000m"}}},
            {"name": "side", "image": "img"},
            {"name": "side", "$patch": "delete"},
            {"name": "side", "image": None},
        )
        pod: Json = {"containers": [chooser.choice(containers)]}
        if chooser.random() < 0.3:
            pod["volumes"] = [{"name": "v", **chooser.choice(({"emptyDir": {}}, {"$patch": "delete"}))}]
        return {"spec": {"template": {"spec": pod}}}
    if chooser.random() < 0.4:
        directives: Sequence[Json] = (
            {"labels": {"$patch": "replace", "z": "1"}},
            {"finalizers": ["growth.dev/b"]},
            {"$deleteFromPrimitiveList/finalizers": ["growth.dev/a"]},
        )
        return {"metadata": chooser.choice(directives)}
    return _patch(chooser, kind)


def _status(chooser: random.Random, kind: Kind[Json]) -> Json:
    if kind is POD:
        ready = {"type": "Ready", "status": chooser.choice(("True", "False"))}
        return {"phase": chooser.choice(("Running", "Succeeded", "Pending")), "conditions": [ready]}
    if kind is NODE:
        return {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"cpu": "4000m"}}
    if kind is BUDGET:
        counts = {"disruptionsAllowed": chooser.choice((0, 1, 2)), "observedGeneration": chooser.choice((1, 2, 9))}
        return {**counts, "currentHealthy": chooser.choice((1, 3)), "desiredHealthy": 2, "expectedPods": 3}
    if kind is DEPLOYMENT:
        return {"replicas": chooser.choice((1, -1)), "observedGeneration": 1}
    return chooser.choice(({"count": 1}, {"count": -1}, {"odd": 1}, {}))


def _operations(chooser: random.Random, kind: Kind[Json]) -> tuple[Json, ...]:
    choices: Sequence[Json] = (
        {"op": "add", "path": "/metadata/labels", "value": {"x": "9"}},
        {"op": "replace", "path": "/metadata/labels/x", "value": "8"},
        {"op": "remove", "path": "/metadata/labels/x"},
        {"op": "remove", "path": "/metadata/finalizers"},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "growth.dev/z"},
        {"op": "test", "path": "/kind", "value": kind.kind},
        {"op": "test", "path": "/kind", "value": "Other"},
        {"op": "add", "path": "/no/such/path", "value": 1},
    )
    return tuple(chooser.sample(choices, chooser.choice((1, 1, 2))))


async def run(api: Api, steps: Sequence[Step], *, namespace: str) -> list[Any]:
    """What each step answered."""
    return [await _answer(api, step, namespace=namespace) for step in steps]


async def _answer(api: Api, step: Step, *, namespace: str) -> Any:
    try:
        return normal(await _call(api, step, namespace=namespace))
    except ApiError as error:
        # A scale subresource names the same field a second time, as `.status.replicas`.
        causes = {str(cause.get("field")).lstrip(".") for cause in error.details.get("causes") or ()}
        return (type(error).__name__, error.code, error.reason, sorted(causes) if isinstance(error, Invalid) else [])


async def _call(api: Api, step: Step, *, namespace: str) -> Any:
    kind, name = step.kind, _name(step, namespace)
    where: Json = {"namespace": namespace if kind.namespaced else ""}
    held = await _held(api, step, namespace=namespace)
    match step.verb:
        case "create":
            metadata = {**step.body["metadata"], "name": name}
            return await api.create(kind, {**step.body, "metadata": metadata}, **where)
        case "get":
            return await api.get(kind, name, **where)
        case "list":
            fields = "" if kind.namespaced else f"metadata.name={name}"
            return list((await api.list(kind, labels=step.body, fields=fields, **where)).items)
        case "patch":
            return await api.patch(kind, name, step.body, **where, **held)
        case "strategic":
            return await api.patch(kind, name, step.body, **where, patch_type=PatchType.STRATEGIC)
        case "strategic status":
            return await api.patch(kind, name, step.body, **where, subresource="status", patch_type=PatchType.STRATEGIC)
        case "json":
            return await api.patch(kind, name, step.body, **where, patch_type=PatchType.JSON)
        case "status":
            return await api.patch(kind, name, step.body, **where, subresource="status", **held)
        case "scale":
            return await api.patch(kind, name, step.body, **where, subresource="scale")
        case "update":
            current = await api.get(kind, name, **where)
            metadata = {**current["metadata"], **(step.body.get("metadata") or {})}
            if held.get("revision"):
                metadata["resourceVersion"] = held["revision"]
            if held.get("uid"):
                metadata["uid"] = held["uid"]
            return await api.update(kind, name, {**current, **step.body, "metadata": metadata}, **where)
        case "delete":
            return await api.delete(kind, name, **where, **held, **step.options)
        case "evict":
            return await api.evict(name, namespace=namespace, uid=held.get("uid", ""))
        case "bind":
            return await api.bind(name, namespace=namespace, node=step.body, uid=held.get("uid", ""))
    raise AssertionError(step.verb)


def _name(step: Step, namespace: str) -> str:
    """Cluster-scoped objects share their server with other programs: the namespace keeps their names apart."""
    return step.name if step.kind.namespaced else f"{namespace}-{step.name}"


async def _held(api: Api, step: Step, *, namespace: str) -> Json:
    if not step.hold:
        return {}
    if step.hold == "wrong uid":
        return {"uid": "another"}
    if step.hold == "old revision":
        return {"revision": "1"}
    try:
        current = await api.get(step.kind, _name(step, namespace), namespace=namespace if step.kind.namespaced else "")
    except NotFound:
        return {"uid": "nobody"}
    held = {"uid": current["metadata"]["uid"], "revision": current["metadata"]["resourceVersion"]}
    return held if step.hold == "both" else {step.hold: held[step.hold]}


# The service account is filled in by an admission plugin that our real servers run without.
_DIFFERS = {"uid", "resourceVersion", "managedFields", "serviceAccount", "serviceAccountName"}
_TIMES = {
    "creationTimestamp",
    "deletionTimestamp",
    "lastHeartbeatTime",
    "lastPhaseTransitionTime",
    "lastTransitionTime",
    "lastUpdateTime",
}


def normal(value: Any) -> Any:
    """The value without what two servers may rightly give differently."""
    if isinstance(value, dict):
        return {
            key: "a time" if key in _TIMES and item else normal(item)
            for key, item in sorted(value.items())
            if key not in _DIFFERS
        }
    if isinstance(value, list | tuple):
        return [normal(item) for item in value]
    return value
