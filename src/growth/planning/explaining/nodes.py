"""Why a node is kept, or why and how it would go."""

from collections.abc import Iterator
from typing import Final

from growth.api import names
from growth.cluster.machines import Machine
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import key_of
from growth.planning import occupants
from growth.planning.disruption import words
from growth.planning.disruption.model import Kept, Move
from growth.planning.disruption.room import limit_message
from growth.planning.explaining import claims
from growth.planning.explaining.applying import without_node
from growth.planning.explaining.explanation import Explanation, Tried
from growth.planning.explaining.releasing import Releasing
from growth.planning.explaining.remedies import WAIT, Remedy
from growth.planning.explaining.scene import Scene
from growth.planning.explaining.verdicts import verdicts
from growth.units.money import Money, print_hourly

GOES: Final = "Goes"
SHOWN: Final = 3
_AT_THE_LIMIT: Final = frozenset(map(limit_message, (names.DRIFTED_REASON, names.UNDERUTILIZED)))


def kept(scene: Scene, name: str) -> Kept | None:
    """What keeps the node; None where it goes, at once or when its time is over."""
    machine = scene.picture.counted[name].machine
    if scene.goes(name):
        return None
    decided = next((each for each in scene.decided.kept if each.node == name), None)
    own_rules = machine.pool is not None and machine.pool.group == names.GROWTH and machine.initialized
    if not own_rules or machine.leaving or any(each.name == name and each.drifted for each in scene.situation.nodes):
        return decided
    return scene.of_growth(machine) or decided


def explained(scene: Scene, name: str) -> Explanation:
    """Of the node with this name; `KeyError` where there is none."""
    node = scene.nodes[name]
    subject = f"Node {name}"
    machine = scene.picture.counted[name].machine
    if machine.leaving or any(each.key == names.DISRUPTED_TAINT for each in node.spec.taints):
        return _leaving(scene, machine, subject)
    stays = kept(scene, name)
    if stays is None:
        return _going(scene, name, subject)
    if stays.reason == words.NOT_INITIALIZED and machine.claim is not None:
        found = claims.explained(scene, machine.claim.metadata.name)
        return Explanation(
            subject=subject,
            cause=stays.reason,
            sentence=f"{subject} stays because its machine is not initialised yet: {found.sentence}",
            tried=found.tried,
            notes=found.notes,
            remedies=found.remedies,
        )
    waits: tuple[Remedy, ...] = ()
    remedies = Releasing(scene, name, lambda after: kept(after, name)).remedies()
    if not remedies and stays.waits:
        waits = (WAIT,)
    return Explanation(
        subject=subject,
        cause=stays.reason,
        sentence=f"{subject} stays because {_message(scene, stays)}.",
        tried=tuple(_tried(scene, stays)),
        nearest=_nearest(scene, stays),
        notes=_notes(scene, machine, stays),
        remedies=remedies or waits,
    )


def _message(scene: Scene, stays: Kept) -> str:
    """In our own words where the decision's are those of an event."""
    if stays.message in _AT_THE_LIMIT:
        return (
            f"NodePool {stays.pool} is at its node hard limit, and what replaced it would have to come before it goes"
        )
    if stays.reason != words.IN_USE:
        return stays.message
    gone = without_node(scene, stays.node)
    placed = {key for filled in gone.plan.filled for key in filled.pods}
    movers = [key_of(pod) for pod in _movers(scene, stays.node)]
    left = sum(key not in placed for key in movers)
    if not left:
        return stays.message
    return (
        f"its pods have no room on other nodes ({left} of {len(movers)}), and NodePool {stays.pool} may buy no cheaper"
        " machine that holds them"
    )


def _tried(scene: Scene, stays: Kept) -> Iterator[Tried]:
    """Where its pods would go, and what each reason for going says."""
    node = next((each for each in scene.situation.nodes if each.name == stays.node), None)
    if node is None:
        return
    for reason in (names.EMPTY, names.DRIFTED_REASON, names.UNDERUTILIZED):
        room = scene.decided.room.get((reason, node.pool))
        if room is not None and room.blocked:
            yield Tried(what=f"budget for {reason}", rule=words.BUDGET, message=room.blocked)
    if stays.reason in {words.IN_USE, words.NO_PLACE, words.NODE_LIMIT, words.BUDGET}:
        gone = without_node(scene, stays.node)
        own = [key_of(pod) for pod in scene.pods_on.get(stays.node, ()) if occupants.reschedulable(pod)]
        homes = {key: filled.name for filled in gone.plan.filled for key in filled.pods}
        buys = {key: claim for claim in gone.plan.claims for key in claim.pods}
        for key in own:
            if key in homes:
                yield Tried(what=f"Pod {key}", rule="placed", message=f"has room on node {homes[key]}")
            elif key in buys:
                claim = buys[key]
                price = print_hourly(Money(claim.price, scene.snapshot.currency))
                yield Tried(what=f"Pod {key}", rule="bought", message=f"would need a {claim.instance_type} at {price}")
            else:
                unplaced = next(each for each in gone.plan.unplaced if each.pod == key)
                why = unplaced.reasons[0].message if unplaced.reasons else ""
                yield Tried(what=f"Pod {key}", rule="unplaced", message=f"would have no place: {why}")


def _nearest(scene: Scene, stays: Kept) -> str:
    """The pod that is nearest to having room elsewhere, where room is what is lacking."""
    if stays.reason not in {words.IN_USE, words.NO_PLACE}:
        return ""
    gone = without_node(scene, stays.node)
    placed = {key for filled in gone.plan.filled for key in filled.pods}
    for pod in _movers(scene, stays.node):
        if key_of(pod) not in placed:
            close = next((each for each in verdicts(gone.snapshot, pod.shape) if each.lacking), None)
            if close is not None:
                return f"for pod {key_of(pod)} node {close.node} has {close.message}"
    return ""


def _movers(scene: Scene, name: str) -> list[CachedPod]:
    return [pod for pod in scene.pods_on.get(name, ()) if occupants.reschedulable(pod)]


def _notes(scene: Scene, machine: Machine, stays: Kept) -> tuple[str, ...]:
    found = []
    kind = machine.labels.get(names.INSTANCE_TYPE_LABEL)
    view = next((each for each in scene.snapshot.nodes if each.name == machine.name), None)
    if kind and view is not None and view.price is not None:
        price = print_hourly(Money(view.price, scene.snapshot.currency))
        found.append(f"it is a {kind} at {price} with {len(_movers(scene, machine.name))} pods that would have to move")
    if stays.reason == words.NOMINATED:
        coming = [key for filled in scene.plan.filled if filled.name == machine.name for key in filled.pods]
        if coming:
            more = f" and {len(coming) - SHOWN} more" if len(coming) > SHOWN else ""
            found.append(f"it has room for {', '.join(coming[:SHOWN])}{more}")
    if stays.waits:
        found.append("this is a matter of time")
    return tuple(found)


# -- nodes that go ------------------------------------------------------------------------------------------------


def _going(scene: Scene, name: str, subject: str) -> Explanation:
    move = next((each for each in scene.decided.moves if name in each.nodes), None)
    if name in scene.surplus:
        ref = scene.picture.counted[name].machine.pool
        told = f"would go because NodePool {ref} has more machines than it may have"
    elif move is not None:
        told = _moved(scene, move)
    else:
        told = _scaled(scene, name)
    return Explanation(subject=subject, cause=GOES, sentence=f"{subject} {told}.")


def _moved(scene: Scene, move: Move) -> str:
    currency = scene.snapshot.currency
    with_it = f" together with {len(move.nodes) - 1} more" if len(move.nodes) > 1 else ""
    bought = ", ".join(
        f"{each.planned.instance_type} at {print_hourly(Money(each.planned.price, currency))}"
        for each in move.replacements
    )
    instead = f"replaced by {bought}" if bought else "removed"
    saved = "" if move.savings is None else f", which saves {print_hourly(Money(move.savings, currency))}"
    pods = f"; {move.evictions} pods move" if move.evictions else ""
    return f"would be {instead}{with_it} ({move.reason}){saved}{pods}"


def _scaled(scene: Scene, name: str) -> str:
    ref = scene.picture.counted[name].machine.pool
    marks = [each.at for each in scene.scaling_down.mark if each.node == name]
    at = marks[0] if marks else None
    text = scene.nodes[name].metadata.annotations.get(names.SCALE_DOWN_AT_ANNOTATION, "")
    when = f"{at:%Y-%m-%dT%H:%M:%SZ}" if at is not None else text
    return f"is empty and goes at {when}, by the rule of NodePool {ref} (scaleDownAfter)"


def _leaving(scene: Scene, machine: Machine, subject: str) -> Explanation:
    """What the drain waits for."""
    holding = [pod for pod in scene.pods_on.get(machine.name, ()) if occupants.drainable(pod, scene.now)]
    budgets = scene.situation.pod_budgets
    tried = []
    for pod in holding:
        if occupants.protection(pod, scene.now).holds:
            tried.append(
                Tried(
                    what=f"Pod {key_of(pod)}",
                    rule=words.DO_NOT_DISRUPT,
                    message=f"has the annotation {names.DO_NOT_DISRUPT_ANNOTATION}",
                )
            )
        elif occupants.evictable(pod, scene.now) and (told := occupants.refusal(pod, budgets)):
            tried.append(Tried(what=f"Pod {key_of(pod)}", rule=words.POD_BUDGET, message=told))

    def blocked(after: Scene) -> Kept | None:
        if machine.name not in after.nodes:
            return None
        for each in after.pods_on.get(machine.name, ()):
            if occupants.active(each) and occupants.protection(each, after.now).holds:
                return Kept(machine.name, str(machine.pool), words.DO_NOT_DISRUPT, key_of(each))
            if occupants.evictable(each, after.now) and occupants.refusal(each, after.situation.pod_budgets):
                return Kept(machine.name, str(machine.pool), words.POD_BUDGET, key_of(each))
        return None

    if not tried:
        more = f", and {len(holding)} of its pods have yet to end" if holding else ""
        sentence = f"{subject} is being removed already{more}."
        remedies: tuple[Remedy, ...] = (WAIT,)
    else:
        sentence = f"{subject} is being removed, and its drain waits because {_lower(tried[0])}."
        remedies = Releasing(scene, machine.name, blocked).remedies()
    return Explanation(
        subject=subject,
        cause=words.LEAVING,
        sentence=sentence,
        tried=tuple(tried),
        remedies=remedies,
    )


def _lower(tried: Tried) -> str:
    return tried.message if tried.rule == words.POD_BUDGET else f"pod {tried.what.removeprefix('Pod ')} {tried.message}"
