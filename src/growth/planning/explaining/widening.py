"""What could be changed in a pool so that it may buy what it may not buy now. Proposals: whether they help is tried out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from growth.api import names
from growth.api.growthpools import GROWTH_POOL, GrowthPool
from growth.api.instance_types import Catalogue, InstanceType, Offering, todays_names
from growth.api.karpenter import NODE_POOL, NodeClassReference, NodePool
from growth.api.karpenter import Requirement as Asked
from growth.api.kinds import Json, Kind
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.api.nodeclasses import HETZNER_NODE_CLASS, KWOK_NODE_CLASS
from growth.api.pods import PodSpec
from growth.api.pools import PoolRef
from growth.api.requests import requests_of
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import NODES
from growth.planning.classes import required_terms
from growth.planning.explaining.applying import applied
from growth.planning.explaining.remedies import Change, Remedy, patch
from growth.planning.explaining.scene import Scene
from growth.planning.requirements import Requirement, from_expressions, from_labels, gather, key_of, parse
from growth.units.resources import add, amount_of, lacking, print_amount

# What a machine is for the programs that run there: nobody changes it for the sake of a price.
MAKES: Final = (names.OS_LABEL, names.ARCH_LABEL)
# So many types are proposed before it is given up.
TYPES: Final = 4
# More machines than any pool will have: for the question how many it would be.
_UNBOUNDED: Final = 1_000_000
_CLASSES: Final = {"kwok": KWOK_NODE_CLASS, "hetzner": HETZNER_NODE_CLASS, "linode": LINODE_NODE_CLASS}

# For the question what can be bought at all.
ANY_POD: Final = PodShape(namespace="", labels={}, spec=PodSpec())

Pool = NodePool | GrowthPool


def kind_of(ref: PoolRef) -> Kind[Any]:
    return GROWTH_POOL if ref.group == names.GROWTH else NODE_POOL


def change_pool(ref: PoolRef, body: Json) -> Change:
    kind = kind_of(ref)
    return patch(kind.api_version, kind.kind, ref.name, body)


def asked_of(shape: PodShape) -> Mapping[str, Requirement]:
    """What the pod asks of its node's labels: the selector and the first of the required terms."""
    terms = [term for term in required_terms(shape.spec) if term.match_expressions]
    more = from_expressions(terms[0].match_expressions) if terms else {}
    return gather([*from_labels(shape.spec.node_selector).items(), *more.items()])


# -- types and places ---------------------------------------------------------------------------------------------


def fitting(scene: Scene, shape: PodShape) -> Iterator[tuple[InstanceType, Offering]]:
    """What the cloud sells now and would hold the pod, cheapest first; each type once."""
    asked = asked_of(shape)
    needed = add(requests_of(shape.spec), *(requests_of(pod.spec) for pod in scene.snapshot.daemons))
    found = []
    for kind in scene.catalogue.types:
        if kind.owned or lacking(needed, kind.allocatable):
            continue
        for offering in kind.offerings:
            if offering.price is None or not offering.available:
                continue
            if all(_meets(asked[key], values) for key, values in labels_of(kind, offering).items() if key in asked):
                found.append((offering.price, kind.name, kind, offering))
    known: set[str] = set()
    for _, name, kind, offering in sorted(found, key=lambda each: each[:2]):
        if name not in known:
            known.add(name)
            yield kind, offering


def _meets(asked: Requirement, values: Sequence[str]) -> bool:
    return any(asked.allows(value) for value in values)


def labels_of(kind: InstanceType, offering: Offering) -> dict[str, tuple[str, ...]]:
    """The labels that a machine bought like that can have."""
    return {
        **kind.labels_of_today,
        names.ZONE_LABEL: (offering.zone,),
        names.CAPACITY_TYPE_LABEL: (offering.capacity_type,),
        **todays_names(offering.labels),
    }


def to_allow_types(scene: Scene, ref: PoolRef, shape: PodShape) -> Iterator[Remedy]:
    """To let the pool buy one of the cheapest machines that would hold the pod."""
    number = 0
    asked = asked_of(shape)
    own = gather([(each.key, parse(each)) for each in scene.views[ref].requirements])
    for kind, offering in fitting(scene, shape):
        makes = ((key, kind.labels_of_today.get(key, ())) for key in MAKES if key in own and key not in asked)
        if not all(_meets(own[key], values) for key, values in makes):
            continue
        remedy = to_allow(scene, ref, kind, offering)
        if remedy is None:
            continue
        yield remedy
        number += 1
        if number >= TYPES:
            return


def to_allow(scene: Scene, ref: PoolRef, kind: InstanceType, offering: Offering) -> Remedy | None:
    """To let the pool buy this; None where it may already."""
    pool = scene.pools[ref]
    if isinstance(pool, GrowthPool):
        return _server_type(ref, pool, kind.name)
    told: list[str] = []
    requirements = list(pool.spec.template.spec.requirements)
    for key, values in labels_of(kind, offering).items():
        requirements = _widened(requirements, key, values, told)
    if not told:
        return None
    body = {"spec": {"template": {"spec": {"requirements": msgspec.to_builtins(requirements)}}}}
    return Remedy(text=f"{' and '.join(told)} in NodePool {ref}", changes=(change_pool(ref, body),))


def _server_type(ref: PoolRef, pool: GrowthPool, name: str) -> Remedy | None:
    if any(each.name.lower() == name.lower() for each in pool.spec.server_types):
        return None
    listed = [*msgspec.to_builtins(pool.spec.server_types), {"name": name, "max": 1}]
    change = change_pool(ref, {"spec": {"serverTypes": listed}})
    return Remedy(text=f"add the server type {name} to NodePool {ref}", changes=(change,))


def _widened(requirements: Sequence[Asked], key: str, values: Sequence[str], told: list[str]) -> list[Asked]:
    """The requirements such that they admit one of the values of the label; what was changed is told."""
    found: list[Asked] = []
    for each in requirements:
        if key_of(each.key) != key or any(parse(each).allows(value) for value in values):
            found.append(each)
            continue
        told.append(f"allow {values[0]} as {key}")
        if each.operator == "In":
            found.append(msgspec.structs.replace(each, values=(*each.values, values[0])))
        elif each.operator == "NotIn":
            left = tuple(value for value in each.values if value != values[0])
            if left:
                found.append(msgspec.structs.replace(each, values=left))
    return found


def to_admit(scene: Scene, ref: PoolRef, key: str, asked: Requirement) -> Iterator[Remedy]:
    """To let nodes of the pool have a label that pods ask for."""
    pool = scene.pools[ref]
    sold = {
        value
        for kind in scene.catalogue.types
        for offering in kind.offerings
        for value in labels_of(kind, offering).get(key, ())
        if offering.price is not None and asked.allows(value)
    }
    labels = pool.spec.template.labels if isinstance(pool, GrowthPool) else pool.spec.template.metadata.labels
    if sold:
        if isinstance(pool, GrowthPool):
            yield from _server_types_with(scene, ref, pool, key, asked)
            return
        for value in sorted(sold)[:TYPES]:
            told: list[str] = []
            requirements = _widened(pool.spec.template.spec.requirements, key, (value,), told)
            if told:
                body: Json = {"spec": {"template": {"spec": {"requirements": msgspec.to_builtins(requirements)}}}}
                yield Remedy(text=f"{told[0]} in NodePool {ref}", changes=(change_pool(ref, body),))
    elif not asked.complement and asked.values and key not in labels and not _reserved(key):
        value = min(asked.values)
        inner: Json = {"labels": {key: value}}
        body = {"spec": {"template": inner if isinstance(pool, GrowthPool) else {"metadata": inner}}}
        yield Remedy(
            text=f"add the label {key}: {value} to the template of NodePool {ref}", changes=(change_pool(ref, body),)
        )


def _server_types_with(scene: Scene, ref: PoolRef, pool: GrowthPool, key: str, asked: Requirement) -> Iterator[Remedy]:
    for kind in scene.catalogue.types:
        if any(_meets(asked, labels_of(kind, each).get(key, ())) for each in kind.offerings):
            remedy = _server_type(ref, pool, kind.name)
            if remedy is not None:
                yield remedy
                return


def _reserved(key: str) -> bool:
    """Whether no pool may set the label itself."""
    domain = key.partition("/")[0]
    return key in {names.POOL_LABEL, names.HOSTNAME_LABEL} or domain.endswith(names.KARPENTER)


# -- limits -------------------------------------------------------------------------------------------------------


def to_raise(scene: Scene, ref: PoolRef) -> Iterator[Remedy]:
    """To raise the pool's limits as far as the pods that wait need it, and no further."""
    pool = scene.pools[ref]
    if isinstance(pool, GrowthPool):
        yield from _raised_growth(scene, ref, pool)
        return
    lifted = applied(scene, [change_pool(ref, {"spec": {"limits": None}})])
    used = _used_after(lifted, ref)
    new: dict[str, str] = {}
    told = []
    for name, quantity in pool.spec.limits.items():
        now, then = amount_of(name, quantity), used.get(name, 0)
        if then > now:
            new[name] = print_amount(name, then)
            told.append(f"limits.{name} of NodePool {ref} by {print_amount(name, then - now)}, to {new[name]}")
    if new:
        change = change_pool(ref, {"spec": {"limits": new}})
        yield Remedy(text=f"raise {' and '.join(told)}", changes=(change,))


def to_raise_nodes(ref: PoolRef, now: int, number: int) -> Remedy:
    """To raise limits.nodes of a Karpenter pool from what it is now."""
    change = change_pool(ref, {"spec": {"limits": {NODES: str(number)}}})
    return Remedy(text=f"raise limits.nodes of NodePool {ref} by {number - now}, to {number}", changes=(change,))


def _used_after(scene: Scene, ref: PoolRef) -> dict[str, int]:
    """What the pool would use after the plan."""
    types = {kind.name: kind for kind in scene.views[ref].instance_types}
    bought = [claim for claim in scene.plan.claims if claim.pool == ref]
    return add(
        scene.views[ref].used,
        *({**types[claim.instance_type].capacity, NODES: 1} for claim in bought if claim.instance_type in types),
    )


def _raised_growth(scene: Scene, ref: PoolRef, pool: GrowthPool) -> Iterator[Remedy]:
    open_types = [msgspec.structs.replace(each, max=_UNBOUNDED) for each in pool.spec.server_types]
    body = {"spec": {"serverTypes": msgspec.to_builtins(open_types), "limits": {"nodes": None}}}
    lifted = applied(scene, [change_pool(ref, body)])
    counts = dict(scene.views[ref].type_used)
    for claim in lifted.plan.claims:
        if claim.pool == ref:
            counts[claim.instance_type] = counts.get(claim.instance_type, 0) + 1
    by_name = {name.lower(): number for name, number in counts.items()}
    told: list[str] = []
    raised = []
    for each in pool.spec.server_types:
        number = by_name.get(each.name.lower(), 0)
        if number > each.max:
            told.append(f"max of server type {each.name} of NodePool {ref} by {number - each.max}, to {number}")
        raised.append(msgspec.structs.replace(each, max=max(each.max, number)))
    spec: Json = {"serverTypes": msgspec.to_builtins(raised)} if told else {}
    total, most = _used_after(lifted, ref).get(NODES, 0), pool.spec.limits.nodes
    if most is not None and total > most:
        told.append(f"limits.nodes of NodePool {ref} by {total - most}, to {total}")
        spec["limits"] = {"nodes": total}
    if told:
        yield Remedy(text=f"raise {' and '.join(told)}", changes=(change_pool(ref, {"spec": spec}),))


# -- pools and classes --------------------------------------------------------------------------------------------


def to_create_pool(scene: Scene, shape: PodShape, *, like: PoolRef | None = None) -> Iterator[Remedy]:
    """A pool that may buy the cheapest machine that would hold the pod, for clusters that have none for it."""
    asked = asked_of(shape)
    wanted = asked.get(names.POOL_LABEL)
    named = asked.get(names.NODE_POOL_LABEL)
    for kind, offering in list(fitting(scene, _without_pool_labels(shape)))[:TYPES]:
        if wanted is not None and not wanted.complement and wanted.values:
            name = min(wanted.values)
            body: Json = {
                "apiVersion": GROWTH_POOL.api_version,
                "kind": GROWTH_POOL.kind,
                "metadata": {"name": name},
                "spec": {"serverTypes": [{"name": kind.name, "max": 1}]},
            }
            yield _created(GROWTH_POOL, name, body, f"create the growth NodePool {name} with server type {kind.name}")
            continue
        name = min(named.values) if named is not None and named.values and not named.complement else _free_name(scene)
        arch = kind.labels_of_today.get(names.ARCH_LABEL, ())
        requirements = [{"key": names.CAPACITY_TYPE_LABEL, "operator": "In", "values": [offering.capacity_type]}]
        if arch:
            requirements.append({"key": names.ARCH_LABEL, "operator": "In", "values": [arch[0]]})
        body = {
            "apiVersion": NODE_POOL.api_version,
            "kind": NODE_POOL.kind,
            "metadata": {"name": name},
            "spec": {
                "template": {
                    "spec": {"nodeClassRef": _class_for(scene, like), "requirements": requirements},
                }
            },
        }
        yield _created(NODE_POOL, name, body, f"create a NodePool that pods without other wishes may use: {name}")


def _created(kind: Kind[Any], name: str, body: Json, text: str) -> Remedy:
    change = Change(verb="create", api_version=kind.api_version, kind=kind.kind, name=name, body=body)
    return Remedy(text=text, changes=(change,))


def _without_pool_labels(shape: PodShape) -> PodShape:
    """For the question what holds the pod: which pool it names does not matter."""
    selector = {k: v for k, v in shape.spec.node_selector.items() if k not in {names.POOL_LABEL, names.NODE_POOL_LABEL}}
    return PodShape(
        namespace=shape.namespace,
        labels=shape.labels,
        spec=msgspec.structs.replace(shape.spec, node_selector=selector),
    )


def _free_name(scene: Scene) -> str:
    taken = {ref.name for ref in scene.pools}
    names_to_try = ("default", "general", *(f"general-{number}" for number in range(2, 100)))
    return next(name for name in names_to_try if name not in taken)


def _class_for(scene: Scene, like: PoolRef | None) -> Json:
    """The node class of a pool that is there, else the one that every cluster of the cloud has by convention."""
    pools = [scene.pools[like]] if like is not None else list(scene.pools.values())
    for pool in pools:
        uses = class_of(pool)
        if uses is not None:
            return {"group": uses.group, "kind": uses.kind, "name": uses.name}
    kind = _class_kind(scene.catalogue)
    return {"group": kind.group, "kind": kind.kind, "name": "default"}


def _class_kind(catalogue: Catalogue) -> Kind[Any]:
    return _CLASSES.get(catalogue.cloud, KWOK_NODE_CLASS)


def to_create_class(uses: NodeClassReference) -> Iterator[Remedy]:
    kind = next((each for each in _CLASSES.values() if (each.group, each.kind) == (uses.group, uses.kind)), None)
    if kind is None or kind is not KWOK_NODE_CLASS:
        return  # what a class of a real cloud must say (image, credentials) is not ours to guess
    body: Json = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": uses.name}, "spec": {}}
    yield _created(kind, uses.name, body, f"create the {kind.kind} {uses.name}")


def to_use_class(scene: Scene, ref: PoolRef, uses: NodeClassReference) -> Iterator[Remedy]:
    """Another class of the same kind that is ready; which kind it is cannot be changed."""
    inner: Json
    for other, view in scene.objects.node_classes.items():
        if (other.group, other.kind) != (uses.group, uses.kind) or other == uses:
            continue
        if any(each.type == names.READY and each.status == "False" for each in view.conditions):
            continue
        inner = {"nodeClassRef": {"group": other.group, "kind": other.kind, "name": other.name}}
        body = {"spec": inner if ref.group == names.GROWTH else {"template": {"spec": inner}}}
        text = f"use the {other.kind} {other.name} in NodePool {ref}"
        yield Remedy(text=text, changes=(change_pool(ref, body),))


def class_of(pool: Pool) -> NodeClassReference | None:
    return pool.spec.node_class_ref if isinstance(pool, GrowthPool) else pool.spec.template.spec.node_class_ref


def to_resume(ref: PoolRef) -> Remedy:
    return _without(ref, names.PAUSED_ANNOTATION)


def to_try_again(ref: PoolRef) -> Remedy:
    """Worth it when what keeps pods off the pool's Nodes was corrected where nobody of us can see it."""
    return _without(ref, names.IN_VAIN_ANNOTATION)


def _without(ref: PoolRef, annotation: str) -> Remedy:
    body: Json = {"metadata": {"annotations": {annotation: None}}}
    return Remedy(text=f"take the annotation {annotation} off NodePool {ref}", changes=(change_pool(ref, body),))
