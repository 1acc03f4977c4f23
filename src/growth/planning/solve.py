"""The seam: `solve(snapshot, demands) -> Plan`. Compiles, packs, finishes, explains; pure, and equal input gives an equal plan."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, Literal, TypeVar

from growth.api import names
from growth.api.instance_types import InstanceType, Offering
from growth.api.pools import PoolRef
from growth.api.requests import PODS, Port
from growth.cluster.shapes import Shapes
from growth.cluster.snapshot import Demand, PoolView, Snapshot
from growth.planning.attempts import Claim
from growth.planning.classes import Compiler, Draft, PodClass
from growth.planning.cost import Search, certificate
from growth.planning.drawn import AfterDrawings, Drawn
from growth.planning.existing import Existing
from growth.planning.firstfit import FirstFit
from growth.planning.ledger import Ledger
from growth.planning.listing import Listing, listing, up_to
from growth.planning.offerings import (
    Assortment,
    Constraint,
    Constraints,
    Option,
    Shelf,
    State,
    template_requirements,
)
from growth.planning.placing import Placing
from growth.planning.plan import Filled, Plan, PlannedClaim, Unplaced
from growth.planning.reasons import Explainer
from growth.planning.recent import Recent
from growth.planning.rehearsal import Stage
from growth.planning.requirements import Requirement, any_value
from growth.planning.rules import Groups
from growth.planning.taints import discourages, untolerated
from growth.planning.topology import Rule
from growth.planning.trials import Trial
from growth.units.resources import add

# Attempts of one pass: about two minutes of work on a slow core. A pass of 20,000 random pods takes a few million.
BUDGET = 200_000_000
# What a claim lists may cost so many percent of what is expected: a stock-out falls through to the next, within reason.
FLEXIBILITY = 125

Packer = Literal["first-fit", "cost"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to plan. `respect_preferences` False drops preferred terms at once; `strict_min_values` False lowers them.

    A claim lists offerings up to `flexibility` percent of its price, and dearer ones where `minValues` must hold.

    The rest is for the packer `cost`: `node_cost` is what a machine costs beside its price, in billionths an hour;
    `rehearse` False believes that kube-scheduler packs as we do; with `nominate` pods may be told their machines where it does
    not.
    """

    respect_preferences: bool = True
    strict_min_values: bool = True
    budget: int = BUDGET
    packer: Packer = "first-fit"
    node_cost: int = 0
    rehearse: bool = True
    nominate: bool = True
    flexibility: int = FLEXIBILITY


P = TypeVar("P", bound=Placing)


E = TypeVar("E", bound=Existing)


@dataclasses.dataclass(frozen=True, slots=True)
class Context(Generic[E]):
    """What every attempt of a pass packs."""

    shelves: Sequence[Shelf]
    existing: E
    resources: Sequence[str]
    ports: Mapping[Shelf, Sequence[tuple[frozenset[Port], int]]]
    classes: Sequence[PodClass]
    daemons: Sequence[PodClass]


def solve(snapshot: Snapshot, demands: Sequence[Demand], options: Options = Options()) -> Plan:  # noqa: B008 - frozen
    """Which machines for which pods."""
    return Pass(snapshot, demands, options).run()


class Pass:
    """One pass, step by step; every step reads what the ones before it made.

    Whoever asks other questions than `solve` compiles a pass (`compiled`), packs with a packer of its own (`packer`) and
    has claims finished (`finished`).
    """

    def __init__(self, snapshot: Snapshot, demands: Sequence[Demand], options: Options) -> None:
        self._snapshot = snapshot
        self._demands = demands
        self._options = options
        self.constraints = Constraints()
        self.groups = Groups(snapshot.namespaces, self.constraints)
        # Karpenter's pools by weight, ties by name from the end of the alphabet, as it does; growth pools after them.
        by_name = sorted(snapshot.pools, key=lambda pool: pool.ref.name, reverse=True)
        self._pools = sorted(by_name, key=lambda pool: (pool.ref.group != names.KARPENTER, -pool.weight))
        self._lists: dict[tuple[Shelf, State, int], Listing] = {}

    def run(self) -> Plan:
        context = self.compiled(Existing)
        if self._options.packer == "cost":
            return self._by_cost(context)
        packed = self._pack(context, FirstFit)
        return self._plan(context, packed, planned=packed.hourly)

    def compiled(self, make: Callable[[Snapshot, Sequence[str]], E]) -> Context[E]:
        """Classes, shelves and nodes; the pods on the nodes are counted."""
        tainted = itertools.chain((pool.taints for pool in self._pools), (node.taints for node in self._snapshot.nodes))
        soft = any(discourages(taint) for taints in tainted for taint in taints)
        compiler = Compiler(
            self._snapshot,
            self.constraints,
            self.groups,
            respect_preferences=self._options.respect_preferences,
            soft_taints=soft,
        )
        drafts = compiler.drafts(self._demands)
        daemon_drafts = self._daemon_drafts()
        asked = (name for draft, _ in (*drafts, *daemon_drafts) for name in draft.requests)
        resources = tuple(dict.fromkeys((PODS, *asked)))
        daemons = compiler.classes(daemon_drafts, resources)
        shelves = self._shelves()
        ports = {shelf: self._reserve(shelf, daemons) for shelf in shelves}
        for shelf in shelves:
            shelf.measure(resources)
        existing = make(self._snapshot, resources)
        existing.keep_for_daemons(daemons)
        existing.count(self.groups)
        self._know_domains(shelves)
        classes = compiler.classes(drafts, resources)
        return Context(shelves, existing, resources, ports, classes, daemons)

    def _by_cost(self, context: Context[Existing]) -> Plan:
        """The cheapest plan that the search finds, with the bound that says how far it can be from the cheapest of all."""
        restore_nodes, restore_rules = context.existing.save(), self.groups.save()

        def again() -> None:
            restore_nodes()
            restore_rules()

        def pack(drawings: Sequence[Drawn] | None, rows: Mapping[PodClass, int]) -> Trial:
            again()
            if drawings is None:
                return self._pack(context, FirstFit)
            return self._pack(context, functools.partial(AfterDrawings, drawings=drawings, rows=rows))

        stage = Stage(self._snapshot, self._demands) if self._options.rehearse else None
        asking = self.packer(context, Placing, self.ledgers())
        known = [each for each in context.classes if each.refusal is None]
        found = Search(
            known,
            {each: asking.reach(each) for each in known},
            pack=pack,
            rehearse=None if stage is None else stage.rehearse,
            queue=[each.key for each in sorted(self._demands, key=lambda each: -(each.shape.spec.priority or 0))],
            resources=len(context.resources),
            node_cost=self._options.node_cost,
            limited=any(asking.bounded(pool.ref) for pool in self._pools),
            tell=self._options.nominate,
        ).best()
        again()
        least, ignores = certificate(
            context.existing, asking, found.trial.placed(known), node_cost=self._options.node_cost
        )
        plan = self._plan(context, found.trial, planned=found.planned)
        return dataclasses.replace(
            plan,
            packer="cost",
            rehearsed=plan.hourly if stage is not None and found.searched else None,
            told=found.told,
            objective=found.planned + self._options.node_cost * found.machines,
            lower_bound=least,
            bound_ignores=ignores,
        )

    @functools.cached_property
    def _books(self) -> dict[PoolRef, Ledger]:
        return {pool.ref: Ledger(pool) for pool in self._pools}

    def ledgers(self) -> dict[PoolRef, Ledger]:
        """What may still be bought, for one trial."""
        # In books without a bound nothing is ever written.
        return {ref: ledger.copy() if ledger.bounded else ledger for ref, ledger in self._books.items()}

    def packer(
        self,
        context: Context[E],
        make: Callable[..., P],
        ledgers: Mapping[PoolRef, Ledger],
        *,
        shelves: Sequence[Shelf] | None = None,
        in_use: set[tuple[str, str]] | None = None,
    ) -> P:
        """A packer for the nodes and shelves of the context, or for other shelves; `in_use` are volume claims in use."""
        return make(
            context.shelves if shelves is None else shelves,
            context.existing,
            self.constraints,
            ledgers,
            resources=len(context.resources),
            daemon_ports=context.ports,
            budget=self._options.budget,
            in_use=self.claims_in_use() if in_use is None else in_use,
        )

    def _pack(self, context: Context[Existing], make: Callable[..., FirstFit]) -> Trial:
        ledgers = self.ledgers()
        packer = self.packer(context, make, ledgers)
        left = packer.place_all(context.classes)
        finished = [self.finished(claim, ledgers[claim.shelf.pool.ref], context.resources) for claim in packer.claims]
        return Trial(
            claims=tuple(claim for claim, _ in finished),
            bought=tuple((claim.shelf, best) for claim, (_, best) in zip(packer.claims, finished, strict=True)),
            left=left,
            filled=tuple(
                Filled(node.name, tuple(pods))
                for node, pods in zip(context.existing.nodes, context.existing.placed, strict=True)
                if pods
            ),
            order=tuple(packer.order),
            steps=packer.steps,
            exhausted=packer.exhausted,
            ledgers=ledgers,
            in_use=packer.in_use,
        )

    def _plan(self, context: Context[Existing], packed: Trial, *, planned: int) -> Plan:
        def whole(pool: PoolView) -> Shelf:
            """The pool as it would be if everything could be bought."""
            shelf = self._shelf(pool, offered(pool, unavailable=True))
            self._reserve(shelf, context.daemons)
            shelf.measure(context.resources)
            return shelf

        explainer = Explainer(
            self._pools,
            context.shelves,
            packed.ledgers,
            self.constraints,
            resources=context.resources,
            daemon_ports=context.ports,
            whole=whole,
            in_use=packed.in_use,
        )
        return Plan(
            revision=self._snapshot.revision,
            currency=self._snapshot.currency,
            packer="first-fit",
            claims=packed.claims,
            filled=packed.filled,
            unplaced=tuple(
                Unplaced(key, reasons)
                for pods, keys in packed.left
                for reasons in (explainer.reasons(pods, exhausted=packed.exhausted),)
                for key in keys
            ),
            order=packed.order,
            steps=packed.steps,
            planned=planned,
            flexibility=self._options.flexibility,
        )

    def _daemon_drafts(self) -> list[tuple[Draft, list[str]]]:
        shapes = Shapes()
        compiler = Compiler(
            self._snapshot,
            self.constraints,
            Groups(self._snapshot.namespaces, self.constraints),  # DaemonSet pods are not steered by topology
            respect_preferences=False,
            soft_taints=False,
        )
        samples = [
            Demand(f"{pod.metadata.namespace}/{pod.metadata.name}", shapes.shape(pod)) for pod in self._snapshot.daemons
        ]
        return compiler.drafts(samples)

    def _shelves(self) -> list[Shelf]:
        """The pools in the order in which they are asked; a growth pool with priorities is one shelf a priority."""
        shelves: list[Shelf] = []
        for pool in self._pools:
            if pool.problem:
                continue
            sold = offered(pool)
            by_priority: dict[int, set[str]] = {}
            for kind in pool.instance_types if pool.priorities else ():
                by_priority.setdefault(pool.priorities.get(kind.name, 0), set()).add(kind.name)
            parts = [sold.of(by_priority[priority]) for priority in sorted(by_priority, reverse=True)]
            shelves += [self._shelf(pool, part) for part in parts or [sold] if part.options]
        return shelves

    def _shelf(self, pool: PoolView, sold: Assortment) -> Shelf:
        return Shelf(
            pool, sold, architecture=self._architecture(pool), strict_min_values=self._options.strict_min_values
        )

    def _architecture(self, pool: PoolView) -> Constraint | None:
        """A growth pool with types of several architectures gives pods that name none its first type's."""
        if pool.ref.group != names.GROWTH:
            return None
        known = [kind.labels.get(names.ARCH_LABEL, ()) for kind in pool.instance_types]
        if len({values for values in known if values}) < 2 or not known[0]:
            return None
        return self.constraints.one(names.ARCH_LABEL, known[0][0])

    def _reserve(self, shelf: Shelf, daemons: Iterable[PodClass]) -> list[tuple[frozenset[Port], int]]:
        """Books what DaemonSets will take of each option; the ports that they bind, with the options they run on."""
        ports: list[tuple[frozenset[Port], int]] = []
        for daemon in daemons:
            if untolerated(daemon.tolerations, shelf.pool.taints, soft=False) is not None:
                continue
            mask = 0
            for variant in daemon.variants:
                state = shelf.step(shelf.start, variant.constraint)
                mask |= state.mask if state is not None else 0
            if not mask:
                continue
            if daemon.ports:
                ports.append((daemon.ports, mask))
            together = {name: amount * len(daemon.pods) for name, amount in daemon.requests.items()}
            shelf.reserve(mask, together)
        return ports

    def claims_in_use(self) -> set[tuple[str, str]]:
        """Volume claims that pods on nodes use: one that is for a single pod keeps others out."""
        return {
            (shape.namespace, volume.persistent_volume_claim.claim_name)
            for node in self._snapshot.nodes
            for shape, _ in node.pods
            for volume in shape.spec.volumes
            if volume.persistent_volume_claim is not None
        }

    def _know_domains(self, shelves: Iterable[Shelf]) -> None:
        """Tells each spread the domains that new machines could be in."""
        for group in self.groups.all:
            if group.rule is not Rule.SPREAD or group.by_host:
                continue
            for shelf in shelves:
                if group.honours_taints and untolerated(group.tolerations, shelf.pool.taints, soft=False) is not None:
                    continue
                for constraint in group.filters or (self.constraints.none,):
                    state = shelf.step(shelf.start, constraint)
                    if state is not None and shelf.too_rigid(state, state.mask) is None:
                        group.know(shelf.values(group.key, state, state.mask))

    def finished(
        self, claim: Claim, ledger: Ledger, resources: Sequence[str], *, listed: Listing | None = None
    ) -> tuple[PlannedClaim, int]:
        """The claim, and the index of the option that is expected. `listed`: what it lists, where that is known already."""
        shelf, held, mask = claim.shelf, claim.hold, claim.mask
        if held is not None:
            dearest = shelf.cheapest(held.mask).price * self._options.flexibility // 100
            mask = ledger.listable(shelf, mask & up_to(shelf, dearest), held).mask
        found = listed or self._listed(shelf, claim.state, mask)
        best = next(shelf.indices(found.mask))
        option = shelf.options[best]
        others = (shelf.options[index] for index in shelf.indices(found.mask))
        other = next((each for each in others if each.type is not option.type), None)
        requests = {name: used for name, used in zip(resources, claim.used, strict=True) if used}
        planned = PlannedClaim(
            pool=shelf.pool.ref,
            instance_type=option.type.name,
            zone=option.offering.zone,
            capacity_type=option.offering.capacity_type,
            price=option.price,
            max_price=found.max_price,
            lowest_max_price=found.lowest_max_price,
            instance_types=found.types,
            requirements=claim.state.requirements,
            labels=claim_labels(claim.state.requirements, option),
            repriced=found.repriced,
            min_values_relaxed=shelf.rigid(claim.state, found.mask) is not None,
            requests=add(requests, shelf.overhead(best)),
            least_requests=add(requests, shelf.least_overhead(found.mask)),
            pods=tuple(claim.pods),
            next_best=None if other is None else (other.type.name, other.price),
            spare=claim.firm,
        )
        return planned, best

    def _listed(self, shelf: Shelf, state: State, mask: int) -> Listing:
        known = self._lists.get((shelf, state, mask))
        if known is None:
            known = self._lists[shelf, state, mask] = listing(shelf, state, mask, percent=self._options.flexibility)
        return known


def offered(pool: PoolView, *, unavailable: bool = False) -> Assortment:
    """What the pool's clouds sell now, cheapest first; with `unavailable` also what they would sell if they had it.

    What the pool's own requirements rule out is left out from the start, unless that is everything: then all of it stays,
    so that it can be said what was ruled out.
    """
    asked = (pool.ref, unavailable, pool.labels, pool.requirements, pool.instance_types)
    known = _RECENT.find(asked)
    if known is None:
        template = template_requirements(pool)
        options = list(_offered(pool, template, unavailable=unavailable))
        options = options or list(_offered(pool, {}, unavailable=unavailable))
        known = _RECENT.keep(asked, Assortment(pool.instance_types, options))
    return known


_Offered = tuple[PoolRef, bool, Mapping[str, str], tuple[object, ...], tuple[InstanceType, ...]]
# What is for sale changes rarely, and every pass asks again; so many pools are usual.
_RECENT: Final[Recent[_Offered, Assortment]] = Recent(kept=32)


def _offered(pool: PoolView, template: Mapping[str, Requirement], *, unavailable: bool) -> Iterator[Option]:
    terms: dict[tuple[str, str], bool] = {}  # zone and capacity type: whether the pool allows both
    for kind in pool.instance_types:
        if not _may_be(template, kind):
            continue
        for offering in kind.offerings:
            price = offering.price
            if price is None or not (unavailable or offering.available):
                continue
            if offering.labels:
                sold = _sells(template, offering)
            else:
                at = (offering.zone, offering.capacity_type)
                known = terms.get(at)
                sold = terms[at] = _sells(template, offering) if known is None else known
            if sold and (unavailable or not _spent(offering)):
                yield Option(kind, offering, price)


def _may_be(template: Mapping[str, Requirement], kind: InstanceType) -> bool:
    """Whether none of the type's labels contradicts the pool, unless an offering says otherwise."""
    labels = kind.labels_of_today
    for key, asked in template.items():
        for value in labels.get(key, ()):
            if asked.allows(value):
                break
        else:
            if key in labels and key not in kind.labels_of_offerings:
                return False
    return True


def _sells(template: Mapping[str, Requirement], offering: Offering) -> bool:
    """Whether the pool allows the offering's zone and capacity type."""
    for key, value in ((names.ZONE_LABEL, offering.zone), (names.CAPACITY_TYPE_LABEL, offering.capacity_type)):
        asked = template.get(key)
        if asked is not None and key not in offering.labels and not asked.allows(value):
            return False
    return True


def _spent(offering: Offering) -> bool:
    """A reservation without a free place sells nothing."""
    return offering.capacity_type == names.RESERVED and offering.reservation_capacity < 1


def claim_labels(requirements: Mapping[str, Requirement], option: Option) -> dict[str, str]:
    """The labels that the machine will carry: what the option says, and a value of every other label that is narrowed."""
    labels = {key: values[0] for key, values in option.labels.items() if len(values) == 1}
    for key, requirement in requirements.items():
        offered_values = option.labels.get(key)
        if offered_values is not None:
            labels[key] = next(value for value in offered_values if requirement.allows(value))
        elif not requirement.tolerates_absence:
            labels[key] = any_value(requirement)
    return labels
