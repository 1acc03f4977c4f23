"""Why a pod has no node, or which one it will have."""

import collections
from typing import Final

from growth.api import names
from growth.api.pools import PoolRef
from growth.cluster.machines import Machine
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import is_done, is_mirror, key_of, of_daemon_set, waits_for
from growth.planning.explaining import loosening, widening
from growth.planning.explaining.explanation import Explanation, Tried
from growth.planning.explaining.mending import Mending
from growth.planning.explaining.remedies import Change, Remedy
from growth.planning.explaining.scene import Scene
from growth.planning.explaining.verdicts import Verdict, verdicts
from growth.planning.plan import Filter, PlannedClaim, Reason
from growth.units.money import Money, print_hourly

# Words for a pod that nothing keeps, or that waits for something else than a machine.
RUNNING: Final = "Running"
DONE: Final = "Done"
LEAVING: Final = "Leaving"
GATED: Final = "SchedulingGates"
PREEMPTS: Final = "Preemption"
OF_ITS_NODE: Final = "DaemonSet"
BINDS: Final = "WaitsForScheduler"
COMING: Final = "WaitsForMachine"
TO_BUY: Final = "WouldBeBought"
NO_SUCH_POOL: Final = "NodePoolNotFound"
NODE_UNKNOWN: Final = "NodeNotFound"

# How the rule that stopped the pod is said in a sentence; {0} is the pool and {1} the detail.
_CAUSES: Final = {
    Filter.TAINTS: "it does not tolerate the taint of NodePool {0}: {1}",
    Filter.REQUIREMENTS: "it asks for what NodePool {0} does not have: {1}",
    Filter.RESOURCES: "no machine of NodePool {0} is large enough: it {1}",
    Filter.TOPOLOGY: "a rule about where pods may be together keeps it from every machine of NodePool {0}: {1}",
    Filter.VOLUMES: "its volumes keep it from every machine of NodePool {0}: {1}",
    Filter.PORTS: "its host port is taken on every machine of NodePool {0}: {1}",
    Filter.MIN_VALUES: "NodePool {0} asks for more choice than there is: {1}",
    Filter.LIMITS: "NodePool {0} may not buy more: {1}",
    Filter.UNAVAILABLE: "the cloud has no machine for NodePool {0}: {1}",
    Filter.UNSUPPORTED: "it uses what is not supported: {1}",
    Filter.POOL: "NodePool {0} buys nothing: {1}",
    Filter.CAPS: "{1}",
    Filter.IN_VAIN: "NodePool {0} buys nothing for such pods now: {1}",
}


def explained(scene: Scene, key: str) -> Explanation:
    """Of the pod with this key; `KeyError` where there is none."""
    pod = scene.pods[key]
    subject = f"Pod {key}"
    settled = _settled(scene, pod, subject)
    if settled is not None:
        return settled
    unplaced = next((each for each in scene.plan.unplaced if each.pod == key), None)
    if unplaced is None:
        return _on_its_way(scene, pod, subject)
    nodes = verdicts(scene.snapshot, pod.shape)
    cause, sentence = _cause(scene, pod, unplaced.reasons)
    return Explanation(
        subject=subject,
        cause=cause,
        sentence=f"{subject} has no node because {sentence}.",
        tried=(
            *(
                Tried(
                    what=f"NodePool {reason.pool}" if reason.pool else subject,
                    rule=reason.filter,
                    message=reason.message,
                )
                for reason in unplaced.reasons
            ),
            *_of_nodes(nodes),
        ),
        nearest=_nearest(nodes),
        notes=_notes(scene, pod),
        remedies=Mending(scene, [pod]).remedies(),
    )


def pending(scene: Scene, key: str) -> tuple[str, str]:
    """The cause and the sentence alone, of a pod without a node: for lists of many pods."""
    pod = scene.pods[key]
    settled = _settled(scene, pod, f"Pod {key}")
    if settled is not None:
        return settled.cause, settled.sentence
    for each in scene.plan.unplaced:
        if each.pod == key:
            return _cause(scene, pod, each.reasons)
    found = _on_its_way(scene, pod, f"Pod {key}")
    return found.cause, found.sentence


def _settled(scene: Scene, pod: CachedPod, subject: str) -> Explanation | None:
    """What can be said without a plan; None where a machine would help."""

    def told(cause: str, sentence: str, *remedies: Remedy) -> Explanation:
        return Explanation(subject=subject, cause=cause, sentence=f"{subject} {sentence}.", remedies=remedies)

    if is_done(pod):
        return told(DONE, f"has ended ({pod.phase}): it needs no node")
    if pod.deleting is not None:
        where = f" on node {pod.node_name}" if pod.node_name else ""
        return told(LEAVING, f"is being deleted{where}")
    if pod.node_name:
        if pod.node_name not in scene.picture.counted:
            return told(NODE_UNKNOWN, f"is bound to node {pod.node_name}, which does not exist")
        return _running(scene, pod, subject)
    if of_daemon_set(pod) or is_mirror(pod):
        return told(OF_ITS_NODE, "belongs to one node, as all pods of a DaemonSet do: no machine is bought for it")
    if pod.shape.spec.scheduling_gates:
        return told(
            GATED,
            f"has no node because it waits for {waits_for(pod)}: nobody places it before they are removed",
            loosening.to_open_gates(pod),
        )
    if pod.nominated_node_name:
        coming = scene.picture.counted.get(pod.nominated_node_name)
        if coming is not None and not coming.machine.initialized:
            return _filled(subject, pod.nominated_node_name, coming.machine)  # it was planned for it
        wait = Remedy(text="wait until the pods that it displaces are gone", changes=(Change(verb="wait"),))
        return told(PREEMPTS, f"waits for pods of lower priority to leave node {pod.nominated_node_name}", wait)
    return None


def _running(scene: Scene, pod: CachedPod, subject: str) -> Explanation:
    machine = scene.picture.counted[pod.node_name].machine
    view = next((each for each in scene.snapshot.nodes if each.name == pod.node_name), None)
    kind = machine.labels.get(names.INSTANCE_TYPE_LABEL, "")
    price = f" at {print_hourly(Money(view.price, scene.snapshot.currency))}" if view and view.price is not None else ""
    of = f", {kind}{price} of NodePool {machine.pool}" if machine.pool is not None and kind else ""
    leaving = "; the node is on its way out, and the pod will need another place" if machine.leaving else ""
    return Explanation(subject=subject, cause=RUNNING, sentence=f"{subject} has a node: {pod.node_name}{of}{leaving}.")


def _cause(scene: Scene, pod: CachedPod, reasons: tuple[Reason, ...]) -> tuple[str, str]:
    asked = widening.asked_of(pod.shape)
    for label, group in ((names.POOL_LABEL, names.GROWTH), (names.NODE_POOL_LABEL, names.KARPENTER)):
        wanted = asked.get(label)
        if wanted is None or wanted.complement or not wanted.values:
            continue
        if not any(PoolRef(group, value) in scene.pools for value in wanted.values):
            named = ", ".join(sorted(wanted.values))
            return NO_SUCH_POOL, f"it asks for NodePool {named} by the label {label}, and there is no such pool"
    if not reasons:
        return str(Filter.POOL), "no pool was asked"
    first = reasons[0]
    if first.pool is None:
        words = {
            Filter.UNSUPPORTED: "it uses what is not supported: ",
            Filter.VOLUMES: "its volumes keep it from running anywhere: ",
        }
        return str(first.filter), f"{words.get(first.filter, '')}{first.message}"
    sentence = _CAUSES[first.filter].format(first.pool, first.message)
    if len(reasons) > 1:
        more = len(reasons) - 1
        sentence += f" ({more} other pool{'s' if more > 1 else ''} cannot take it either)"
    return str(first.filter), sentence


def _of_nodes(nodes: tuple[Verdict, ...]) -> list[Tried]:
    """Nodes with equal verdicts in one line; how much is lacking is told of the nearest."""
    groups: dict[str, list[Verdict]] = collections.defaultdict(list)
    for each in nodes:
        groups[each.filter if each.lacking else each.message].append(each)
    found = []
    for same in groups.values():
        first = same[0]
        what = f"Node {first.node}" if len(same) == 1 else f"{len(same)} nodes"
        message = (
            first.message if len(same) == 1 or not first.lacking else f"the nearest, {first.node}: {first.message}"
        )
        found.append(Tried(what=what, rule=first.filter, message=message))
    return found


def _nearest(nodes: tuple[Verdict, ...]) -> str:
    close = next((each for each in nodes if each.lacking), None)
    return f"node {close.node} has {close.message}" if close is not None else ""


def _notes(scene: Scene, pod: CachedPod) -> tuple[str, ...]:
    found = []
    resting = pod.annotations.get(names.BACK_OFF_ANNOTATION)
    if resting is not None:
        found.append(
            f"it is left out of plans since {resting} (annotation {names.BACK_OFF_ANNOTATION}) until something changes:"
            " a pool, the pod, room under a maximum, or stock"
        )
    alike = sum(each.shape is pod.shape and key_of(each) in scene.unplaced for each in scene.objects.pods)
    if alike > 1:
        found.append(f"{alike - 1} more pods like it wait for the same reason")
    return tuple(found)


# -- pods that have a place in the plan ---------------------------------------------------------------------------


def _on_its_way(scene: Scene, pod: CachedPod, subject: str) -> Explanation:
    key = key_of(pod)
    for filled in scene.plan.filled:
        if key in filled.pods:
            machine = scene.picture.counted[filled.name].machine
            return _filled(subject, filled.name, machine)
    claim = next((each for each in scene.plan.claims if key in each.pods), None)
    if claim is None:
        return Explanation(
            subject=subject, cause=BINDS, sentence=f"{subject} wants no place of its own that a plan could give it."
        )
    return _bought(scene, subject, claim)


def _filled(subject: str, name: str, machine: Machine) -> Explanation:
    wait = Remedy(text="wait", changes=(Change(verb="wait"),))
    if machine.initialized:
        sentence = f"{subject} has room on node {name}: kube-scheduler will bind it there, nothing is bought for it."
        return Explanation(subject=subject, cause=BINDS, sentence=sentence, remedies=(wait,))
    claim = machine.claim.metadata.name if machine.claim is not None else name
    return Explanation(
        subject=subject,
        cause=COMING,
        sentence=f"{subject} waits for the machine of NodeClaim {claim}, which is on its way and has room for it.",
        notes=(f"`growth explain claim {claim}` says how far it has come",),
        remedies=(wait,),
    )


def _bought(scene: Scene, subject: str, claim: PlannedClaim) -> Explanation:
    price = print_hourly(Money(claim.price, scene.snapshot.currency))
    others = len(claim.pods) - 1
    beside = f", for it and {others} more" if others else ""
    weight, before = _weighed(scene, claim.pool)
    worst: tuple[str, ...] = ()
    if claim.lowest_max_price > claim.price and not claim.repriced:
        most = print_hourly(Money(claim.max_price, scene.snapshot.currency))
        worst = (f"it may cost up to {most}, for minValues of the pool, where what is cheaper cannot be had",)
    return Explanation(
        subject=subject,
        cause=TO_BUY,
        sentence=(
            f"{subject} has no node yet: a {claim.instance_type} in {claim.zone} at {price} would be bought for NodePool"
            f" {claim.pool}{weight}{beside}."
        ),
        notes=("nothing keeps it but that the machine must be bought: is `growth run` at work?", *worst, *before),
        remedies=(Remedy(text="wait", changes=(Change(verb="wait"),)),),
    )


def _weighed(scene: Scene, ref: PoolRef) -> tuple[str, tuple[str, ...]]:
    """The pool's weight in brackets, and which pools it therefore comes before; both empty where it comes before none."""
    ours = [pool for pool in scene.snapshot.pools if pool.ref.group == names.KARPENTER]
    weight = next((pool.weight for pool in ours if pool.ref == ref), 0)
    after = sorted((pool for pool in ours if pool.weight < weight), key=lambda pool: (-pool.weight, pool.ref.name))
    if not after:
        return "", ()
    others = ", ".join(f"{pool.ref} ({pool.weight})" for pool in after)
    return f" (weight {weight})", (f"pools are tried by weight and not by price: {ref} before {others}",)
