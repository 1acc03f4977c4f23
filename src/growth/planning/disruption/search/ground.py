"""A situation compiled once, and then asked many times: where would the pods of these nodes go?"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np

from growth.api.pools import PoolRef
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Demand
from growth.cluster.wanting import key_of
from growth.planning import occupants
from growth.planning.attempts import Claim
from growth.planning.classes import PodClass
from growth.planning.disruption.candidates import may_receive
from growth.planning.disruption.model import OwnedNode, Situation
from growth.planning.disruption.search.nodes import Nodes, Placed
from growth.planning.disruption.search.options import SearchOptions
from growth.planning.drawn import AfterDrawings, Drawn
from growth.planning.existing import Bools
from growth.planning.firstfit import FirstFit
from growth.planning.ledger import Hold, Ledger
from growth.planning.solve import Pass


class _Rehousing(FirstFit):
    """First fit for some of the pods of each class."""

    def rehouse(self, waiting: Sequence[Placed]) -> list[tuple[PodClass, list[str]]]:
        return self._place_waiting([(pods, list(keys)) for pods, keys in waiting])


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Nodes that are taken out for a trial, with places for all their pods; `keep` or `undo` it."""

    nodes: tuple[int, ...]
    order: Sequence[tuple[str, str | int]]
    claims: Sequence[Claim]
    ledgers: Mapping[PoolRef, Ledger]
    undo: Callable[[], None]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class More:
    """Machines that are bought besides for pods that would be left over. A pod that was so often counts as often."""

    keys: tuple[str, ...]
    drawings: Sequence[Drawn]
    rows: Mapping[PodClass, int]


def moving(node: OwnedNode, situation: Situation) -> list[CachedPod]:
    """The pods that need another place when the node goes. Those that nobody can make leave are not waited for."""
    return [
        pod
        for pod in node.pods
        if occupants.reschedulable(pod) and not occupants.cannot_leave(pod, situation.pod_budgets, situation.now)
    ]


class Ground:
    """The snapshot of a situation with overlays. `steps` counts the work so far.

    Nodes are known by their index in `nodes`. `owned` are the nodes that may go, `pods` what each of them holds that needs
    a place. Pods without a place get theirs first, wherever they may be; after that nodes that are not destinations for
    moved pods are closed.
    """

    def __init__(
        self, situation: Situation, going: Iterable[OwnedNode], options: SearchOptions, *, restless: bool = False
    ) -> None:
        """`restless`: nodes on which pods came or went a moment ago are destinations too."""
        self.situation = situation
        known = {view.name for view in situation.snapshot.nodes}
        owned = [node for node in going if node.name in known]
        evicted = {node.name: moving(node, situation) for node in owned}
        demands = [Demand(key_of(pod), pod.shape) for pods in evicted.values() for pod in pods]
        self.demands = {demand.key: demand for demand in (*situation.demands, *demands)}
        self._pass = Pass(situation.snapshot, list(self.demands.values()), options.planning)
        self.context = self._pass.compiled(Nodes)
        self.nodes = self.context.existing
        # Machines are replaced by such as their own API knows.
        groups = {PoolRef.parse(node.pool).group for node in owned}
        self.shelves = [
            each
            for each in self.context.shelves
            if each.pool.ref.group in groups and str(each.pool.ref) in situation.pools
        ]
        self.index = {view.name: at for at, view in enumerate(self.nodes.nodes)}
        self.owned = {self.index[node.name]: node for node in owned}
        self.class_of = {key: pods for pods in self.context.classes for key in pods.pods}
        self._turn = {pods: turn for turn, pods in enumerate(self.context.classes)}
        self.evicted = {self.index[name]: tuple(key_of(pod) for pod in pods) for name, pods in evicted.items()}
        self.pods = {at: self._grouped(keys) for at, keys in self.evicted.items()}
        self.origin = {key: at for at, keys in self.evicted.items() for key in keys}
        self._in_use = self._pass.claims_in_use()
        self._alone = any(pods.volumes.alone for pods in self.context.classes)
        self._held: list[tuple[PoolRef, Hold]] = []
        self._replaced: list[int] = []  # nodes of trials that were kept and buy something
        self.steps = 0
        self.waiting = self._seat_those_without_a_place()
        self.room = self.nodes.free.astype(np.float64)  # what is free before anything moves
        self._close_what_is_no_destination(restless=restless)
        self._start = (self.nodes.mark(), self._pass.groups.save(), self.steps)

    def again(self) -> None:
        """As it was in the beginning: whatever was tried or kept is undone, and its work is not counted any more."""
        mark, counts, self.steps = self._start
        self.nodes.back(mark)
        counts()
        self.nodes.order = None
        self._held, self._replaced = [], []

    def without_purchase(self, nodes: Sequence[int]) -> Trial | None:
        """The nodes taken out, and their pods on nodes that stay; None where that cannot be."""
        mark = self.nodes.mark()
        return self._trial(nodes, self._on_what_is_there, {}, lambda: self.nodes.back(mark))

    def with_purchase(
        self, nodes: Sequence[int], drawings: Sequence[Drawn] = (), rows: Mapping[PodClass, int] | None = None
    ) -> Trial | None:
        """The same with machines bought for those who find no room: as drawn, or else as few as first fit opens.

        `rows` says of which row of the drawings a class is.
        """
        mark, counts = self.nodes.mark(), self._pass.groups.save()

        def undo() -> None:
            self.nodes.back(mark)
            counts()  # machines that are only planned count too

        pack: _Pack = functools.partial(self._as_drawn, drawings=drawings, rows=rows or {}) if drawings else self._first
        return self._trial(nodes, pack, self._ledgers(nodes), undo)

    def with_more(self, trial: Trial, more: "More") -> Trial | None:
        """The trial with machines besides, on which some of its pods find places too.

        None where they do not; then the trial is undone. The pods are counted where they were before.
        """
        extra = self._beside(more, trial.ledgers)
        if extra is None:
            trial.undo()
            return None
        return dataclasses.replace(trial, claims=[*trial.claims, *extra])

    def more(self, nodes: Sequence[int], more: "More") -> Trial | None:
        """Only the machines besides, for nodes whose trial was kept."""
        ledgers = self._ledgers([at for at in nodes if at not in self._replaced])
        extra = self._beside(more, ledgers)
        if extra is None:
            return None
        return Trial(tuple(nodes), (), extra, ledgers, lambda: None)

    def keep(self, trial: Trial) -> None:
        """What the trial holds of limits stays held."""
        if trial.claims:
            self._replaced += [at for at in trial.nodes if at not in self._replaced]
        for claim in trial.claims:
            if claim.hold is not None:
                self._held.append((claim.shelf.pool.ref, claim.hold))

    def let_go(self, trial: Trial) -> None:
        """What the machines besides held of limits is free again."""
        for claim in trial.claims:
            if claim.hold is not None and (claim.shelf.pool.ref, claim.hold) in self._held:
                self._held.remove((claim.shelf.pool.ref, claim.hold))

    @property
    def planning(self) -> Pass:
        return self._pass

    def takes(self, at: int) -> bool:
        """Whether pods are to come there: of other nodes, or such as have no place."""
        return bool(self.nodes.arrived[at])

    def parts(self) -> list[list[int]]:
        """The nodes that may go, apart from each other where no pod of the one could ever be on the other."""
        label = np.arange(len(self.nodes.nodes), dtype=np.int64)
        masks: dict[bytes, tuple[Bools, list[int]]] = {}
        for at, own in self.pods.items():
            for pods, _ in own:
                hosts = self.nodes.candidates(pods, pods.variants[-1])
                masks.setdefault(hosts.tobytes(), (hosts, []))[1].append(at)
        for hosts, held in masks.values():
            together = hosts.copy()
            together[held] = True
            labels = np.unique(label[together])
            label[np.isin(label, labels)] = labels[0]
        found: dict[int, list[int]] = {}
        for at in sorted(self.owned):
            found.setdefault(int(label[at]), []).append(at)
        return list(found.values())

    # -- inside ---------------------------------------------------------------------------------------------------------

    def _grouped(self, keys: Iterable[str]) -> list[Placed]:
        found: dict[PodClass, list[str]] = {}
        for key in keys:
            found.setdefault(self.class_of[key], []).append(key)
        return [(pods, tuple(found[pods])) for pods in sorted(found, key=self._turn.__getitem__)]

    def _ledgers(self, nodes: Sequence[int]) -> Mapping[PoolRef, Ledger]:
        """What may be bought for these nodes: where a limit is Soft, as many more as go themselves."""
        ledgers = self._pass.ledgers()
        for at in (*self._replaced, *nodes):
            if self.owned[at].pool in self.situation.soft:
                ledgers[PoolRef.karpenter(self.owned[at].pool)].give_back(1)
        for pool, hold in self._held:
            ledgers[pool].take(None, hold)
        return ledgers

    def _trial(
        self, nodes: Sequence[int], pack: "_Pack", ledgers: Mapping[PoolRef, Ledger], undo: Callable[[], None]
    ) -> Trial | None:
        gone: dict[PodClass, list[str]] = {}
        for at in nodes:
            for pods, keys in (*self.pods[at], *self.nodes.take_out(at)):
                # Drawings are packed with parts of a class: the whole class is meant here.
                gone.setdefault(self.class_of.get(keys[0], pods), []).extend(keys)
        if any(pods.refusal is not None for pods in gone):
            undo()
            return None
        waiting = [(pods, tuple(gone[pods])) for pods in sorted(gone, key=self._turn.__getitem__)]
        packing, left = pack(waiting, ledgers)
        self.steps += packing.steps + len(waiting)
        if left:
            undo()
            return None
        return Trial(tuple(nodes), packing.order, packing.claims, ledgers, undo)

    def _on_what_is_there(self, waiting: Sequence[Placed], ledgers: Mapping[PoolRef, Ledger]) -> "_Packed":
        in_use = self._in_use_without(waiting)
        packing = self._pass.packer(self.context, _Rehousing, ledgers, shelves=(), in_use=in_use)
        return packing, packing.rehouse(waiting)

    def _first(self, waiting: Sequence[Placed], ledgers: Mapping[PoolRef, Ledger]) -> "_Packed":
        in_use = self._in_use_without(waiting)
        packing = self._pass.packer(self.context, _Rehousing, ledgers, shelves=self.shelves, in_use=in_use)
        return packing, packing.rehouse(waiting)

    def _as_drawn(
        self,
        waiting: Sequence[Placed],
        ledgers: Mapping[PoolRef, Ledger],
        *,
        drawings: Sequence[Drawn],
        rows: Mapping[PodClass, int],
    ) -> "_Packed":
        some = [msgspec.structs.replace(pods, pods=tuple(sorted(keys))) for pods, keys in waiting]
        known = {each: rows[pods] for each, (pods, _) in zip(some, waiting, strict=True) if pods in rows}
        make = functools.partial(AfterDrawings, drawings=drawings, rows=known)
        in_use = self._in_use_without(waiting)
        packing = self._pass.packer(self.context, make, ledgers, shelves=self.shelves, in_use=in_use)
        return packing, packing.place_all(some)

    def _beside(self, more: "More", ledgers: Mapping[PoolRef, Ledger]) -> Sequence[Claim] | None:
        """The machines besides, each with some of the pods; nobody finds room on a node that is there."""
        mark, counts = self.nodes.mark(), self._pass.groups.save()
        self.nodes.close_all()
        waiting = self._grouped(dict.fromkeys(more.keys))
        packing, left = self._as_drawn(waiting, ledgers, drawings=more.drawings, rows=more.rows)
        self.nodes.back(mark)
        counts()
        self.steps += packing.steps + len(waiting)
        return None if left else packing.claims

    def _in_use_without(self, waiting: Iterable[Placed]) -> set[tuple[str, str]]:
        """Volume claims that pods use which stay: whoever moves takes its own along."""
        if not self._alone:
            return self._in_use  # nobody asks or adds
        return self._in_use - {claim for pods, _ in waiting for claim in pods.volumes.alone}

    def _seat_those_without_a_place(self) -> frozenset[str]:
        """Pending pods on the nodes that are there; the keys of those that need new machines, whoever buys them."""
        waiting = self._grouped(demand.key for demand in self.situation.demands)
        fine = [(pods, keys) for pods, keys in waiting if pods.refusal is None]
        packing = self._pass.packer(self.context, _Rehousing, {}, shelves=(), in_use=set(self._in_use))
        # On nodes that stay in any case, if they can: whoever sits on another may have to be moved again.
        everybody = range(len(self.nodes.nodes))
        self.nodes.order = np.array(sorted(everybody, key=lambda at: at in self.owned), dtype=np.int64)
        left = packing.rehouse(fine)
        self.nodes.order = None
        self.steps += packing.steps
        refused = [key for pods, keys in waiting if pods.refusal is not None for key in keys]
        return frozenset([*refused, *(key for _, keys in left for key in keys)])

    def _close_what_is_no_destination(self, *, restless: bool) -> None:
        ours = {node.name: node for node in self.situation.nodes}
        for at, view in enumerate(self.nodes.nodes):
            node = ours.get(view.name)
            if not view.initialized or (
                node is not None
                and (node.leaving or not node.ready or not (restless or may_receive(node, self.situation)))
            ):
                self.nodes.close(at)


_Packed = tuple[FirstFit, list[tuple[PodClass, list[str]]]]
_Pack = Callable[[Sequence[Placed], Mapping[PoolRef, Ledger]], _Packed]
