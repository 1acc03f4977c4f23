"""How far a claim has come, what it waits for, and what would help."""

import datetime as dt
from collections.abc import Sequence
from typing import Final

from growth.api import names
from growth.api.conditions import find, is_true, since
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.cluster.machines import own_node
from growth.planning.explaining import widening
from growth.planning.explaining.applying import CannotApply, applied
from growth.planning.explaining.explanation import Explanation, Tried
from growth.planning.explaining.remedies import WAIT, Change, Remedy, patch
from growth.planning.explaining.scene import Scene
from growth.planning.readiness import NOT_REGISTERED, SEVERAL_NODES, Obstacle, obstacle_to_use

UP: Final = "Initialized"
LEAVING: Final = "Leaving"
NOT_TRIED: Final = "NotLaunched"
SHOWN: Final = 3


def explained(scene: Scene, name: str) -> Explanation:
    """Of the claim with this name; `KeyError` where there is none."""
    claim = scene.claims[name]
    subject = f"NodeClaim {name}"
    if claim.metadata.deletion_timestamp is not None:
        return _leaving(claim, subject)
    paused = _paused(scene, claim)
    if not claim.status.provider_id or not is_true(claim.status.conditions, names.LAUNCHED):
        return _not_launched(scene, claim, subject, paused)
    nodes = _nodes(scene, claim)
    own = own_node(claim, nodes)
    nodes.sort(key=lambda node: node is not own)
    if is_true(claim.status.conditions, names.INITIALIZED):
        return _up(claim, subject, nodes, obstacle_to_use(claim, nodes[0] if nodes else None))
    if own is None:
        return _not_registered(claim, subject, nodes)
    return _not_initialized(scene, claim, subject, own, obstacle_to_use(claim, own))


def _stages(claim: NodeClaim, *, waiting: str, why: str) -> tuple[Tried, ...]:
    """The stages that are done, and the one that is not."""
    done = [names.LAUNCHED, names.REGISTERED, names.INITIALIZED]
    found = []
    for stage in done[: done.index(waiting)]:
        at = since(claim.status.conditions, stage)
        found.append(Tried(what=stage, rule="done", message=f"since {_at(at)}" if at is not None else "done"))
    return (*found, Tried(what=waiting, rule="waits", message=why))


def _at(time: dt.datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _nodes(scene: Scene, claim: NodeClaim) -> list[Node]:
    return [
        node
        for node in scene.objects.nodes
        if node.spec.provider_id == claim.status.provider_id and node.metadata.deletion_timestamp is None
    ]


def _paused(scene: Scene, claim: NodeClaim) -> str:
    """What is paused and so keeps the claim; empty for nothing."""
    machine = next((each.machine for each in scene.picture.counted.values() if each.machine.claim is claim), None)
    if claim.metadata.annotations.get(names.PAUSED_ANNOTATION, "false") != "false":
        return f"NodeClaim {claim.metadata.name}"
    ref = machine.pool if machine is not None else None
    pool = scene.pools.get(ref) if ref is not None else None
    if pool is not None and pool.metadata.annotations.get(names.PAUSED_ANNOTATION, "false") != "false":
        return f"NodePool {ref}"
    return ""


def _again(claim: NodeClaim) -> Remedy:
    """To begin anew: its pods are planned for once more."""
    name = claim.metadata.name
    change = Change(verb="delete", api_version=NODE_CLAIM.api_version, kind=NODE_CLAIM.kind, name=name)
    return Remedy(text=f"delete NodeClaim {name}: its pods are planned for again", changes=(change,))


# -- stage by stage -----------------------------------------------------------------------------------------------


def _not_launched(scene: Scene, claim: NodeClaim, subject: str, paused: str) -> Explanation:
    told = find(claim.status.conditions, names.LAUNCHED)
    remedies: list[Remedy] = []
    if paused:
        cause, why = names.PAUSED, f"{paused} is paused by the annotation {names.PAUSED_ANNOTATION}"
        machine = next(each.machine for each in scene.picture.counted.values() if each.machine.claim is claim)
        if paused.startswith("NodeClaim"):
            body: Json = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}}
            change = patch(NODE_CLAIM.api_version, NODE_CLAIM.kind, claim.metadata.name, body)
            remedies.append(Remedy(text=f"take the annotation off {paused}", changes=(change,)))
        elif machine.pool is not None:
            remedies.append(widening.to_resume(machine.pool))
    elif told is not None and (told.message or told.reason):
        cause = told.reason or NOT_TRIED
        why = f"the cloud did not give a machine: {told.message or told.reason}"
        remedies += _of_class(scene, claim)
        remedies.append(_again(claim))
    else:
        classes = _of_class(scene, claim)
        cause = names.NODE_CLASS_NOT_FOUND if classes else NOT_TRIED
        uses = claim.spec.node_class_ref
        why = (
            f"its node class {uses.kind} {uses.name} does not exist"
            if classes
            else "the machine has not been bought yet: is `growth run` at work?"
        )
        remedies += classes or [WAIT]
    return Explanation(
        subject=subject,
        cause=cause,
        sentence=f"{subject} has no machine because {why}.",
        tried=_stages(claim, waiting=names.LAUNCHED, why=why),
        notes=_pods(scene, claim),
        remedies=tuple(remedies),
    )


def _of_class(scene: Scene, claim: NodeClaim) -> list[Remedy]:
    uses = claim.spec.node_class_ref
    kinds = {(each.group, each.kind) for each in scene.objects.node_classes}
    if (uses.group, uses.kind) not in kinds or uses in scene.objects.node_classes:
        return []
    return list(widening.to_create_class(uses))


def _pods(scene: Scene, claim: NodeClaim) -> tuple[str, ...]:
    """Which pods wait for the machine, as far as a plan tells."""
    name = next((name for name, each in scene.picture.counted.items() if each.machine.claim is claim), "")
    keys = [key for filled in scene.plan.filled if filled.name == name for key in filled.pods]
    if not keys:
        return ()
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return (f"{', '.join(keys[:SHOWN])}{more} wait for it",)


def _off(claim: NodeClaim) -> Obstacle | None:
    """That the machine switched itself off, as the claim says."""
    told = find(claim.status.conditions, names.MACHINE_OFF)
    return Obstacle(told.reason, told.message) if told is not None and told.status == "True" else None


def _not_registered(claim: NodeClaim, subject: str, nodes: Sequence[Node]) -> Explanation:
    obstacle = SEVERAL_NODES if nodes else _off(claim) or NOT_REGISTERED
    at = since(claim.status.conditions, names.LAUNCHED)
    bought = f"since {_at(at)}" if at is not None else "already"
    remedies: list[Remedy] = []
    if nodes:
        for extra in nodes[1:]:
            change = Change(verb="delete", api_version=NODE.api_version, kind=NODE.kind, name=extra.metadata.name)
            told = f"delete the Node {extra.metadata.name} if {nodes[0].metadata.name} is the right one"
            remedies.append(Remedy(text=told, changes=(change,)))
    else:
        remedies += [_again(claim)] if _off(claim) else [WAIT, _again(claim)]
    return Explanation(
        subject=subject,
        cause=obstacle.reason,
        sentence=f"{subject} has a machine {bought} ({claim.status.provider_id}), but {obstacle.message}.",
        tried=_stages(claim, waiting=names.REGISTERED, why=obstacle.message),
        notes=()
        if nodes
        else (
            "the machine's own log says why its kubelet does not join: image, join token, network",
            "a claim whose Node does not come is given up after 15 m (--registration-ttl)",
        ),
        remedies=tuple(remedies),
    )


def _not_initialized(
    scene: Scene, claim: NodeClaim, subject: str, node: Node, obstacle: Obstacle | None
) -> Explanation:
    why = obstacle.message if obstacle is not None else "Growth has yet to say so"
    remedies: list[Remedy] = []
    if obstacle is not None and obstacle.reason == names.STARTUP_TAINTS_EXIST:
        remedies += _without_startup_taints(scene, claim, node)
    if obstacle is None or obstacle.reason != names.STARTUP_TAINTS_EXIST:
        remedies.append(WAIT)
    if obstacle is not None:
        remedies.append(_again(claim))
    return Explanation(
        subject=subject,
        cause=obstacle.reason if obstacle is not None else names.INITIALIZED,
        sentence=f"{subject} is node {node.metadata.name}, which takes no pods yet: {why}.",
        tried=_stages(claim, waiting=names.INITIALIZED, why=why),
        notes=("a node that does not become usable is given up after 15 m (--initialization-ttl)",),
        remedies=tuple(remedies),
    )


def _without_startup_taints(scene: Scene, claim: NodeClaim, node: Node) -> list[Remedy]:
    startup = {(taint.key, taint.effect) for taint in claim.spec.startup_taints}
    kept: list[Json] = [
        {"key": each.key, "effect": each.effect, **({"value": each.value} if each.value else {})}
        for each in node.spec.taints
        if (each.key, each.effect) not in startup
    ]
    shown = ", ".join(sorted(each.key for each in node.spec.taints if (each.key, each.effect) in startup))
    change = patch(NODE.api_version, NODE.kind, node.metadata.name, {"spec": {"taints": kept}})
    try:
        after = applied(scene, [change])
    except CannotApply:
        return []
    still = obstacle_to_use(claim, after.nodes[node.metadata.name])
    if still is not None and still.reason == names.STARTUP_TAINTS_EXIST:
        return []
    told = f"remove the startup taint {shown} of node {node.metadata.name} if whoever should do so is not at work"
    return [Remedy(text=told, changes=(change,))]


def _up(claim: NodeClaim, subject: str, nodes: Sequence[Node], obstacle: Obstacle | None) -> Explanation:
    where = nodes[0].metadata.name if nodes else claim.status.node_name
    if not nodes:
        return Explanation(
            subject=subject,
            cause=names.NODE_NOT_FOUND,
            sentence=f"{subject} was node {where}, which is gone: its kubelet or somebody deleted it.",
            remedies=(WAIT, _again(claim)),
        )
    ill = f", though {obstacle.message}" if obstacle is not None else ""
    return Explanation(
        subject=subject,
        cause=UP,
        sentence=f"{subject} is up as node {where}{ill}.",
        notes=(f"`growth explain node {where}` says why it stays",),
    )


def _leaving(claim: NodeClaim, subject: str) -> Explanation:
    for type_, word in ((names.DRAINED, "its node is drained"), (names.VOLUMES_DETACHED, "its volumes are detached")):
        told = find(claim.status.conditions, type_)
        if told is not None and told.status != "True":
            more = f" ({told.message})" if told.message else ""
            sentence = f"{subject} is being removed and waits until {word}{more}."
            return Explanation(subject=subject, cause=LEAVING, sentence=sentence, remedies=(WAIT,))
    off = _off(claim)
    why = f": {off.message}" if off is not None else ""
    return Explanation(subject=subject, cause=LEAVING, sentence=f"{subject} is being removed{why}.", remedies=(WAIT,))
