"""Machines that were bought in vain: looks at what came before more is bought for the same pods, and keeps that in the pool.

A machine was bought in vain for a sort of pods when its Node is up for `nomination` seconds and takes none of them by what the
Node itself is (`planning.vain`), or when its claim was given up before that, while such pods still wait. The claim says for
which sorts it was bought and after how many rounds, so that one machine counts once. The pool's annotation keeps the rounds: it
outlives the machine, which is empty and goes, and the process. Plans read it (`cluster.vain`).
"""

import dataclasses
import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final

import msgspec

from growth.api import names
from growth.api.conditions import TRUE, find, is_true, since
from growth.api.events import WARNING, regarding
from growth.api.growthpools import GROWTH_POOL, GrowthPool
from growth.api.karpenter import NODE_POOL, NodeClaim, NodePool
from growth.api.kinds import Kind
from growth.api.nodes import Node
from growth.api.pools import PoolRef
from growth.api.vain import MOST_CHARACTERS, STANDING, BoughtFor, InVain, annotation, bought_for, parse, printed
from growth.cluster.assemble import Picture
from growth.cluster.machines import Machine
from growth.cluster.pools import Market
from growth.cluster.pricing import by_name
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import PoolView, Snapshot
from growth.cluster.vain import annotated, backed_off, rest_of, standing
from growth.cluster.wanting import movable, wants_machine
from growth.controllers.environment import Environment
from growth.controllers.ownership import pool_of
from growth.kube.errors import Conflict, NotFound
from growth.kube.store import Change, Changed, Deleted
from growth.planning.vain import keeps_off
from growth.telemetry.logs import logger
from growth.telemetry.metrics import Counter, Declaration, Gauge

_log = logger("provisioner")

IN_VAIN: Final = Counter(
    "growth_machines_in_vain_total", "Machines that were bought and took none of their pods.", labels=("nodepool",)
)
BACKED_OFF: Final = Gauge(
    "growth_pod_sorts_in_vain", "Sorts of pods for which the last machine was bought in vain.", labels=("nodepool",)
)
METRICS: Final[tuple[Declaration, ...]] = (IN_VAIN, BACKED_OFF)

# What came longer ago says nothing of what comes now.
FRESH_SECONDS: Final = 3600.0
# Machines that ended lately, and sorts that they served, are remembered up to so many.
_REMEMBERED: Final = 2000
_ATTEMPTS: Final = 5

_KINDS: Final[Mapping[str, Kind[Any]]] = {names.KARPENTER: NODE_POOL, names.GROWTH: GROWTH_POOL}
Sort = tuple[PoolRef, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Ruling:
    """What a look came to. `held` are pods whose machine is up so lately that it may yet take them, by key.

    `in_vain` and `over` are what is written into pools: sorts for which a machine came in vain, and those for which one did not.
    """

    held: Set[str] = frozenset()
    in_vain: Mapping[PoolRef, Mapping[str, InVain]] = dataclasses.field(default_factory=dict)
    over: Mapping[PoolRef, Mapping[str, int]] = dataclasses.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.held or self.in_vain or self.over)


class Vain:
    """Asked before anything is bought; `follow` is called once a process."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._memory = env.vain

    def follow(self) -> None:
        self._env.state.claims.subscribe(self._on_claim)
        self._env.metrics.read(BACKED_OFF, self._backed_off)

    def _backed_off(self) -> Iterable[tuple[dict[str, str], float]]:
        state = self._env.state
        for ref, meta in (
            *((PoolRef.karpenter(each.metadata.name), each.metadata) for each in state.pools.store),
            *((PoolRef.growth(each.metadata.name), each.metadata) for each in state.growth_pools.store),
        ):
            entries = parse(meta.annotations.get(names.IN_VAIN_ANNOTATION, ""))
            if entries:
                yield {"nodepool": str(ref)}, float(len(entries))

    def _on_claim(self, change: Change[NodeClaim]) -> None:
        memory, now = self._memory, self._env.clock.monotonic()
        if isinstance(change, Deleted):
            memory.up.pop(change.old.metadata.uid, None)
            return
        claim = change.new
        if not is_true(claim.status.conditions, names.INITIALIZED):
            return
        memory.up.setdefault(claim.metadata.uid, now)
        was = change.old.metadata.deletion_timestamp if isinstance(change, Changed) else None
        if claim.metadata.deletion_timestamp is None or was is not None or not bought_for(claim.metadata):
            return
        node = self._env.state.nodes.store.get(claim.status.node_name)
        if node is not None:
            memory.ended = {uid: each for uid, each in memory.ended.items() if now - each[1] < FRESH_SECONDS}
            memory.ended[claim.metadata.uid] = (Machine(_standing(node), claim), now)
            if len(memory.ended) > _REMEMBERED:
                memory.ended.pop(next(iter(memory.ended)))

    # For plans.

    def laid(self, picture: Picture) -> Picture:
        """The picture with what pools say of machines in vain by now: as we wrote it, where the watch has not shown more."""
        written, newest = self._memory.written, {}
        for ref, own in list(written.items()):
            pools = self._env.state.pools if ref.group == names.KARPENTER else self._env.state.growth_pools
            shown = pools.store.get(ref.name)
            newest[ref] = own
            if shown is None or _revision(shown) >= _revision(own):
                del written[ref]
                newest[ref] = shown or own
        if not newest:
            return picture
        return dataclasses.replace(
            picture,
            pools=tuple(_with(each, newest.get(PoolRef.karpenter(each.metadata.name))) for each in picture.pools),
            growth_pools=tuple(
                _with(each, newest.get(PoolRef.growth(each.metadata.name))) for each in picture.growth_pools
            ),
        )

    def annotation(self, view: PoolView | None, shapes: Iterable[PodShape]) -> dict[str, str]:
        """What a claim says that is bought for pods of these shapes."""
        return annotated(view, tuple(shapes), self._memory.sorts)

    async def standing(self, ref: PoolRef, claims: Iterable[NodeClaim], number: int) -> tuple[int, dict[str, str]]:
        """How many of so many machines that no pod asks for may be bought now, and what their claims say. `claims` are the
        pool's.

        In vain are those whose claim was given up; one that came up ends the rest.
        """
        pool, basis = self._pool(ref), None
        if pool is not None and names.IN_VAIN_ANNOTATION in pool.metadata.annotations:
            basis = self._basis(ref)
        if pool is None or basis is None:
            return number, annotation((BoughtFor(sort=STANDING),))
        staying = [each for each in claims if each.metadata.deletion_timestamp is None]
        held = backed_off(pool.metadata, basis, staying, self._env.clock.now()).get(STANDING)
        if held is None:
            return number, annotation((BoughtFor(sort=STANDING),))
        if any(_came_up(each, held.rounds) for each in staying):
            await self._write(ref, {}, {STANDING: held.rounds})
            return number, annotation((BoughtFor(sort=STANDING),))
        if not held.probe and number:
            _log.info("machines are not bought", NodePool=str(ref), machines=number, why=held.why)
        return min(number, int(held.probe)), annotation((BoughtFor(sort=STANDING, rounds=held.rounds),))

    def _pool(self, ref: PoolRef) -> NodePool | GrowthPool | None:
        """As we wrote it, where the watch has not shown more."""
        state = self._env.state
        shown = (
            state.pools.store.get(ref.name) if ref.group == names.KARPENTER else state.growth_pools.store.get(ref.name)
        )
        written = self._memory.written.get(ref)
        if shown is None or written is None or written.metadata.uid != shown.metadata.uid:
            return shown
        return max(shown, written, key=_revision)

    # Looking.

    def looked(
        self,
        picture: Picture,
        snapshot: Snapshot,
        wanted: Iterable[tuple[PoolRef, Sequence[str]]],
        shapes: Mapping[str, PodShape],
    ) -> Ruling:
        """What came of machines that were bought for the pods that want some again, or that are held back.

        `wanted` are the machines of a plan: the pool, and its pods by key. `shapes` are of all pods that want a place.
        """
        sorts = self._memory.sorts
        keys: dict[Sort, list[str]] = {}
        for ref, pods in wanted:
            for key in pods:
                if key in shapes:
                    keys.setdefault((ref, sorts.digest(shapes[key])), []).append(key)
        views = {pool.ref: pool for pool in snapshot.pools}
        if not keys and not any(view.in_vain for view in views.values()):
            return Ruling()
        return _Look(
            self._env, picture, snapshot, keys, {sorts.digest(each): each for each in shapes.values()}
        ).ruling()

    async def settle(self, ruling: Ruling) -> None:
        """Writes it into the pools."""
        for ref in dict.fromkeys((*ruling.in_vain, *ruling.over)):
            await self._write(ref, ruling.in_vain.get(ref, {}), ruling.over.get(ref, {}))

    async def gave_up(self, claim: NodeClaim, why: str) -> None:
        """A claim is about to go whose machine never took pods, and why: in vain for those of its sorts that still wait,
        or must leave it.
        """
        ref, sorts = pool_of(claim), self._memory.sorts
        bought = bought_for(claim.metadata)
        if ref is None or not bought or not claim.status.provider_id:
            return
        state = self._env.state
        name = claim.status.node_name
        leaving = [pod for pod in (state.pods.store.find("node", name) if name else ()) if movable(pod)]
        pending = [pod for pod in state.pods.store.find("node", "") if wants_machine(pod)]
        waiting = {sorts.digest(pod.shape) for pod in (*leaving, *pending)}
        waiting |= {STANDING, *(sorts.digest(each.shape) for each in state.buffered)}
        basis = self._basis(ref)
        if basis is None:
            return
        found = {
            each.sort: _entry(self._env, each, claim, why=f"{why}{_missing(claim)}", basis=basis)
            for each in bought
            if each.sort in waiting
        }
        if found:
            await self._write(ref, found, {})

    def _basis(self, ref: PoolRef) -> str | None:
        env = self._env
        return None if env.state.catalogue is None else _bases(env.state.picture(env.clock.now())).get(ref)

    # Writing.

    async def _write(self, ref: PoolRef, in_vain: Mapping[str, InVain], over: Mapping[str, int]) -> None:
        """`Conflict` when others were first again and again."""
        env, kind = self._env, _KINDS[ref.group]
        for _ in range(_ATTEMPTS):
            try:
                pool = await env.api.get(kind, ref.name)
            except NotFound:
                return
            known = standing(parse(pool.metadata.annotations.get(names.IN_VAIN_ANNOTATION, "")), env.clock.now())
            merged = _merged(known, in_vain, over)
            if merged == known:
                self._memory.written[ref] = pool
                return
            patch = {"metadata": {"annotations": {names.IN_VAIN_ANNOTATION: printed(merged)}}}
            try:
                self._memory.written[ref] = await env.api.patch(
                    kind, ref.name, patch, revision=pool.metadata.resource_version, uid=pool.metadata.uid
                )
            except Conflict:
                continue
            self._tell(ref, kind, pool, {sort: each for sort, each in in_vain.items() if known.get(sort) != each})
            return
        raise Conflict(f"NodePool {ref} changed {_ATTEMPTS} times while it was noted that machines were bought in vain")

    def _tell(self, ref: PoolRef, kind: Kind[Any], pool: NodePool | GrowthPool, told: Mapping[str, InVain]) -> None:
        for claim in {each.claim: each for each in told.values()}.values():
            _log.warning("a machine was bought in vain", NodePool=str(ref), NodeClaim=claim.claim, why=claim.why)
            self._env.metrics.add(IN_VAIN, nodepool=str(ref))
            self._env.events.event(
                regarding(kind, pool.metadata),
                names.BOUGHT_IN_VAIN,
                f"The machine of NodeClaim {claim.claim} was bought in vain: {claim.why}",
                type=WARNING,
            )


class _Look:
    """One look at the machines that were bought for certain sorts."""

    def __init__(
        self,
        env: Environment,
        picture: Picture,
        snapshot: Snapshot,
        keys: Mapping[Sort, Sequence[str]],
        waiting: Mapping[str, PodShape],
    ) -> None:
        self._env = env
        self._memory = env.vain
        self._picture = picture
        self._snapshot = snapshot
        self._views = {pool.ref: pool for pool in snapshot.pools}
        self._keys = keys
        self._waiting = waiting
        self._types = by_name(picture.catalogue.types)
        self._bases: Mapping[PoolRef, str] | None = None
        self._held: dict[str, None] = {}
        self._in_vain: dict[PoolRef, dict[str, InVain]] = {}
        self._over: dict[PoolRef, dict[str, int]] = {}
        self._now = env.clock.monotonic()

    def ruling(self) -> Ruling:
        for ref, machine, bought, serves in self._concerned():
            self._judge(ref, machine, bought, serves=serves)
        return Ruling(
            frozenset(self._held),
            {ref: each for ref, each in self._in_vain.items() if each},
            {ref: each for ref, each in self._over.items() if each},
        )

    def _concerned(self) -> Iterable[tuple[PoolRef, Machine, BoughtFor, bool]]:
        """The machines that were bought for the sorts in question, oldest first, and whether pods of the sort are there."""
        found = []
        for name in sorted(self._picture.counted):
            counted = self._picture.counted[name]
            claim = counted.machine.claim
            if claim is None or counted.view is None or names.BOUGHT_FOR_ANNOTATION not in claim.metadata.annotations:
                continue
            here: Set[str] | None = None
            for ref, bought in self._in_question(claim):
                if here is None:
                    here = {self._memory.sorts.digest(shape) for shape, _ in counted.view.pods}
                if bought.sort in here:
                    self._memory.served[claim.metadata.uid, bought.sort] = None
                found.append((ref, counted.machine, bought, bought.sort in here))
        known = {machine.claim.metadata.uid for _, machine, _, _ in found if machine.claim is not None}
        for uid, (machine, at) in self._memory.ended.items():
            if uid not in known and machine.claim is not None and self._now - at < FRESH_SECONDS:
                found += [(ref, machine, bought, False) for ref, bought in self._in_question(machine.claim)]
        while len(self._memory.served) > _REMEMBERED:
            self._memory.served.pop(next(iter(self._memory.served)))
        served: dict[Sort, float] = {}
        for ref, machine, bought, serves in found:
            if serves:
                served[ref, bought.sort] = max(served.get((ref, bought.sort), 0.0), _born(machine))
        # One that came later and took its pods says that they come as planned by now.
        left = [each for each in found if each[3] or _born(each[1]) >= served.get((each[0], each[2].sort), 0.0)]
        return sorted(left, key=lambda each: _born(each[1]))

    def _in_question(self, claim: NodeClaim) -> Iterable[tuple[PoolRef, BoughtFor]]:
        ref = pool_of(claim)
        view = self._views.get(ref) if ref is not None else None
        if ref is None or view is None:
            return
        for each in bought_for(claim.metadata):
            known = view.in_vain.get(each.sort)
            last = known is not None and (each.rounds >= known.rounds or known.claim == claim.metadata.name)
            if last or (known is None and (ref, each.sort) in self._keys):
                yield ref, each

    def _judge(self, ref: PoolRef, machine: Machine, bought: BoughtFor, *, serves: bool) -> None:
        """Of several machines for one sort the one that came last decides, whether or not the pool holds the sort back: else
        two of them would take the word back of each other in turn.
        """
        claim, node, sort = machine.claim, machine.node, bought.sort
        assert claim is not None
        held_back = sort in self._views[ref].in_vain
        if serves:
            self._is_fine(ref, bought)
            return
        shape = self._waiting.get(sort)
        if node is None or shape is None or not machine.registered:
            return
        if not held_back and (self._old(machine) or (claim.metadata.uid, sort) in self._memory.served):
            return
        # The claim says whether the machine was ever up: a Node may lose its label, and no pod waits for a machine that is gone.
        was_up = is_true(claim.status.conditions, names.INITIALIZED) or claim.metadata.uid in self._memory.ended
        settled = (machine.initialized or was_up) and self._up_for(claim) >= self._env.settings.nomination
        why = self._why(machine, claim, node, sort, shape)
        if not why:
            if settled:
                self._is_fine(ref, bought)
        elif settled and bought.rounds < (self._views[ref].in_vain[sort].rounds if held_back else 0):
            self._over.get(ref, {}).pop(sort, None)  # it was counted
        elif settled:
            self._over.get(ref, {}).pop(sort, None)
            self._in_vain.setdefault(ref, {}).setdefault(
                sort, _entry(self._env, bought, claim, why=why, basis=self._basis(ref))
            )
        elif not held_back:
            wanted = [key for (_, each), keys in self._keys.items() if each == sort for key in keys]
            free = [key for key in wanted if key not in self._held]
            self._held.update(dict.fromkeys(free[: bought.pods]))

    def _is_fine(self, ref: PoolRef, bought: BoughtFor) -> None:
        self._in_vain.get(ref, {}).pop(bought.sort, None)
        if bought.sort in self._views[ref].in_vain:
            self._over.setdefault(ref, {})[bought.sort] = bought.rounds

    def _up_for(self, claim: NodeClaim) -> float:
        """For how many seconds its Node can take pods: as this process saw, or as the claim says, who was there before it. One
        that goes has had its time.
        """
        uid = claim.metadata.uid
        if uid in self._memory.ended:
            return math.inf
        told = since(claim.status.conditions, names.INITIALIZED)
        said = 0.0 if told is None else (self._picture.now - told).total_seconds()
        return max(said, self._now - self._memory.up.get(uid, self._now))

    def _old(self, machine: Machine) -> bool:
        return self._picture.now.timestamp() - _born(machine) > FRESH_SECONDS

    def _why(self, machine: Machine, claim: NodeClaim, node: Node, sort: str, shape: PodShape) -> str:
        """What keeps the sort off the Node; worked out once for each state of the Node."""
        key = (node.metadata.uid, f"{node.metadata.resource_version}/{machine.initialized}", sort)
        known = self._memory.judged.get(key)
        if known is None:
            kind = self._types.get(claim.metadata.labels.get(names.INSTANCE_TYPE_LABEL, "").lower())
            planned = Machine(None, claim, () if kind is None else (kind,))
            known = keeps_off(self._snapshot, planned, machine, shape)
            if len(self._memory.judged) >= _REMEMBERED:
                self._memory.judged.clear()
            self._memory.judged[key] = known
        return known

    def _basis(self, ref: PoolRef) -> str:
        if self._bases is None:
            self._bases = _bases(self._picture)
        return self._bases[ref]


def _bases(picture: Picture) -> dict[PoolRef, str]:
    market = Market(picture.catalogue, picture.node_classes, picture.now)
    found = {
        PoolRef.karpenter(pool.metadata.name): market.basis(pool.metadata, pool.spec.template.spec.node_class_ref)
        for pool in picture.pools
    }
    return found | {
        PoolRef.growth(pool.metadata.name): market.basis(pool.metadata, pool.spec.node_class_ref)
        for pool in picture.growth_pools
    }


def _entry(env: Environment, bought: BoughtFor, claim: NodeClaim, *, why: str, basis: str) -> InVain:
    rounds, now = bought.rounds + 1, env.clock.now()
    text = why if len(why) <= MOST_CHARACTERS else f"{why[: MOST_CHARACTERS - 1]}…"
    return InVain(
        rounds=rounds,
        why=text,
        claim=claim.metadata.name,
        node=claim.status.node_name,
        basis=basis,
        at=now,
        until=now + dt.timedelta(seconds=rest_of(rounds, env.settings.vain_back_off)),
    )


def _missing(claim: NodeClaim) -> str:
    """What the claim itself says is missing, as the end of a sentence."""
    for type_ in (names.REGISTERED, names.INITIALIZED):
        told = find(claim.status.conditions, type_)
        if told is not None and told.status != TRUE and told.message:
            return f": {told.message}"
    return ""


def _came_up(claim: NodeClaim, rounds: int) -> bool:
    """Whether it is the machine that was tried after so many rounds in vain, and it can take pods."""
    bought = any(each.sort == STANDING and each.rounds >= rounds for each in bought_for(claim.metadata))
    return bought and is_true(claim.status.conditions, names.INITIALIZED)


def _merged(known: Mapping[str, InVain], in_vain: Mapping[str, InVain], over: Mapping[str, int]) -> dict[str, InVain]:
    """What is known with what was found; a round counts once, and one that was found before counts no less."""
    merged = {sort: each for sort, each in known.items() if sort not in over or each.rounds > over[sort]}
    for sort, each in in_vain.items():
        other = merged.get(sort)
        if other is None or other.rounds < each.rounds:
            merged[sort] = each
    return merged


def _standing(node: Node) -> Node:
    """The Node as it was before it was asked to go."""
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, deletion_timestamp=None))


def _born(machine: Machine) -> float:
    assert machine.claim is not None
    born = machine.claim.metadata.creation_timestamp
    return 0.0 if born is None else born.timestamp()


def _revision(pool: NodePool | GrowthPool) -> int:
    text = pool.metadata.resource_version
    return int(text) if text.isdigit() else 0


def _with(pool: Any, written: Any) -> Any:
    """The pool with the annotation as it was written, where that is the same pool."""
    if written is None or written.metadata.uid != pool.metadata.uid:
        return pool
    annotations = {key: value for key, value in pool.metadata.annotations.items() if key != names.IN_VAIN_ANNOTATION}
    if names.IN_VAIN_ANNOTATION in written.metadata.annotations:
        annotations[names.IN_VAIN_ANNOTATION] = written.metadata.annotations[names.IN_VAIN_ANNOTATION]
    return msgspec.structs.replace(pool, metadata=msgspec.structs.replace(pool.metadata, annotations=annotations))
