"""The `cost` packer: a search among plans for the cheapest that kube-scheduler would really fill.

First fit is tried first, so the result is never worse. Then come machines that suit kube-scheduler's queue (`queued`),
machines of one type, and machines drawn (`drawing`) by what pods are worth (`bound`, `patterns`); each proposal is packed
by the feasibility code. The cheapest plans are rehearsed; for pods that kube-scheduler would leave over machines are
added, and the cheapest plan after that wins. Among plans near the bound one wins that would change little if demand
changed a little: many machines, and most of them alike. Plans within one part in a hundred are equal otherwise, and then
the one wins whose largest machine holds the fewest pods.

kube-scheduler spreads pods where a plan packs them. Where the cheapest plan that it fills by itself is much dearer than one
whose pods are told their machines (`Found.told`), that one wins.

The search is a fixed list of attempts, so equal input gives an equal plan.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from growth.planning.bound import Bound, bound, ignored
from growth.planning.calm import Calm
from growth.planning.classes import PodClass
from growth.planning.drawing import Drawing, Sort, alike, calmest, draw, roomy, whole
from growth.planning.drawn import Drawn
from growth.planning.existing import Existing
from growth.planning.floor import few
from growth.planning.market import Bools, Floats, Ints, grouped, market
from growth.planning.offerings import Shelf
from growth.planning.patterns import Patterns
from growth.planning.placing import Placing
from growth.planning.queued import queued
from growth.planning.rehearsal import Arrival
from growth.planning.trials import Found, Rehearse, Trial

# So many pods are a small batch, which is to be planned in a moment: less is drawn and rehearsed for it.
SMALL = 300
# A search takes time as pods times machines. Where there is more of that it is not begun: first fit's plan is the answer.
MOST_WORK = 4_000_000
# How many attempts with machines of one type only.
ALIKE = 4
# Drawings of one pass: so many pods are drawn in all, in so many drawings at least and at most. The least where the
# search by the queue knows everything: it finds more.
DRAWN_PODS, FEWEST_DRAWN, MOST_DRAWN, DRAWN_FOR_FEW = 3_000, 2, 6, 2
# Machines of which every pod takes at most one part of so many, where there are such.
PARTS = 6
# How machines come, turn by turn.
ARRIVALS = (Arrival.AT_ONCE, Arrival.ONE_BY_ONE)
# Rehearsals of one pass: so many pods are bound in all, within so many rehearsals at least and at most.
BOUND_PODS, FEWEST, MOST, BOUND_FOR_FEW = 12_000, 4, 12, 4
# Under rules every machine that comes by itself is tried by everybody: so many pods times machines are too many for that.
MOST_TURNS = 300_000
# A plan of so many parts in a thousand of the bound is fine: it wins if it is calm, even over cheaper ones.
FINE = 1060
# Nothing is drawn by other means where a plan is so near to the bound.
NEAR = 25
# So many machines of one type are calm.
MANY = 9
# Where every plan is so far above the bound, one wins that is calm and costs at most so many percent of the cheapest.
ROUGH, DEARER = 1090, 103
# The same where the cheapest plan would leave many pods to a second purchase: what that costs is a guess.
MANY_WAIT = 110
# The share of machines that may change when a plan is said to stay as it is.
UPHEAVAL = Fraction(1, 3)
# How often machines are added for pods that are left over.
ROUNDS = 6
# A plan that was rehearsed to the end wins over one that was not and seems to save less than one part in so many. Under
# rules less: a machine that is added there draws other pods away, and who is left when it happens is bought for cheaper.
UNSETTLED, UNSETTLED_UNDER_RULES = 16, 40
# Plans whose prices differ by less than one part in so many are equal.
EQUAL = 100
# Pods are told their machines where it saves so much: another plan costs at least so many percent. Telling is a write a pod.
TELLING = 103
# So many plans, the cheapest, are rehearsed with their pods told.
TOLD = 2
# For pods that are left over one machine is bought where it costs at most so many percent of several.
SECOND = 120


class Search:
    """One pass. `pack` tries drawings (None: first fit); `rehearse` says what kube-scheduler would do with a plan; `queue`
    is its order of pods; `limited` where a pool has limits; `tell` where pods may be told their machines.
    """

    def __init__(
        self,
        classes: Sequence[PodClass],
        masks: Mapping[PodClass, Mapping[Shelf, int]],
        *,
        pack: Callable[[Sequence[Drawn] | None, Mapping[PodClass, int]], Trial],
        rehearse: Rehearse | None,
        queue: Sequence[str],
        resources: int,
        node_cost: int,
        limited: bool,
        tell: bool = False,
    ) -> None:
        self._queue = queue
        self._packed = pack
        self._trials: list[Trial] = []
        self._tell = tell and rehearse is not None
        self._rehearse = rehearse
        self._node_cost = node_cost
        self._classes = [each for each in classes if masks.get(each)]
        goods = market(self._classes, [masks[each] for each in self._classes], resources=resources, node_cost=node_cost)
        self._goods, members = grouped(goods, least=False)
        self._rows = {self._classes[at]: row for row, each in enumerate(members) for at in each}
        self._row_of = {key: row for pods, row in self._rows.items() for key in pods.pods}
        self._pods = sum(len(each.pods) for each in classes)
        most = BOUND_FOR_FEW if self._pods <= SMALL else MOST
        self._rehearsals = max(FEWEST, min(most, BOUND_PODS // max(1, self._pods)))
        self._ruled = any(each.kept_away or variant.rules for each in classes for variant in each.variants)
        self._arrivals: tuple[Arrival, ...] = ARRIVALS
        self._few = few(self._pods)
        self._tried: set[tuple[object, ...]] = set()  # machines that were rehearsed, as they come
        # What the quick rehearsals know: neither rules among pods nor limits nor several pools.
        self._plain = not self._ruled and not limited and len({shelf for shelf, _ in self._goods.columns}) == 1

    def best(self) -> Found:
        """The cheapest plan that was found."""
        first = self._pack(None, {})
        if not self._goods.columns or not first.claims:
            return self._as_planned(first)
        if self._pods * len(first.claims) > MOST_WORK:
            return dataclasses.replace(self._as_planned(first), searched=False)
        if self._ruled and self._pods * len(first.claims) > MOST_TURNS:
            self._arrivals = (Arrival.AT_ONCE,)
        elif self._ruled and self._pods > SMALL:
            self._rehearsals *= 2  # one by one counts too then
        counts = self._counts(key for claim in first.claims for key in claim.pods)
        limit = self._limit(counts)
        worth = limit.worth
        found = [self._at_first(first, worth)]
        queue = self._waiting(first)
        fine = (limit.least or 0) * FINE // 1000
        sorts = alike(self._goods, counts, most=len(self._goods.columns))
        if self._plain:
            for trial in self._uniform(queue, sorts, most=min(fine, found[0].cost)):
                tried = self._try(trial, found, worth, calm=fine)
                if tried is not None and tried.settled:
                    return self._held(tried, found[0], worth)
            for trial in self._by_queue(queue, worth):
                self._try(trial, found, worth, calm=0)
        if not self._plain or limit.least is None or self._cheapest(found) > limit.least + limit.least // NEAR:
            drawn = [self._pack(self._drawn(each), self._rows) for each in self._proposals(counts, worth, sorts)]
            if not self._plain:  # the queue is a hint there, and no more
                drawn += self._by_queue(queue, worth)
            if not self._plain and self._pods > SMALL:
                drawn += self._uniform(queue, sorts, most=found[0].cost)
            for trial in sorted(drawn, key=self._order):
                self._try(trial, found, worth, calm=0)
        chosen = self._chosen(found, fine)
        rough = self._plain and chosen.cost > (fine if chosen.many else (limit.least or 0) * ROUGH // 1000)
        if rough:
            chosen = self._calmer(chosen, found, queue, sorts, worth)
        if chosen.cost > fine or not chosen.settled:
            chosen = self._told(chosen, counts, worth)
        return self._held(chosen, found[0], worth)

    def _held(self, chosen: Found, first: Found, worth: Floats) -> Found:
        """The plan; with its pods told where on a bad day it would be dearer than first fit's."""
        if chosen.worst <= first.worst or not self._tell or self._rehearsals < len(self._arrivals):
            return chosen
        _, found = self._settled(chosen.trial, worth, most=chosen.cost, told=True)
        return chosen if found is None or found.worst >= chosen.worst else found

    def _told(self, chosen: Found, counts: Ints, worth: Floats) -> Found:
        """The cheapest plan whose pods are told their machines, where that saves much; else the one that was chosen.

        Then nothing is lost to spreading, and the closest fillings win.
        """
        if not self._ruled or self._pods > SMALL:
            self._rehearsals = max(self._rehearsals, TOLD * len(self._arrivals))
        if not self._tell or self._rehearsals < len(self._arrivals):
            return chosen
        most = chosen.cost * 100 // TELLING
        every = np.ones(len(self._goods.columns), dtype=np.bool_)
        self._pack(self._drawn(draw(self._goods, counts, worth, columns=every)), self._rows)
        cheap = [each for each in self._trials if self._order(each) <= (chosen.trial.unplaced, most)]
        told = []
        for trial in sorted(cheap, key=self._order)[:TOLD]:
            _, found = self._settled(trial, worth, most=most, told=True)
            if found is not None and found.settled:
                return found
            told += [] if found is None else [found]
        return min(told, key=self._rank, default=chosen)

    def _pack(self, drawings: Sequence[Drawn] | None, rows: Mapping[PodClass, int]) -> Trial:
        trial = self._packed(drawings, rows)
        self._trials.append(trial)
        return trial

    def _calmer(self, chosen: Found, found: list[Found], queue: Ints, sorts: Sequence[Sort], worth: Floats) -> Found:
        """One that is calm, and neither much dearer than the plan nor dearer than first fit; else the plan itself."""
        if chosen.trial.upheaval <= UPHEAVAL:
            return chosen
        dearer = chosen.cost * (MANY_WAIT if chosen.many else DEARER) // 100
        most = min(found[0].cost, dearer)
        self._rehearsals = max(self._rehearsals, len(self._arrivals))
        for trial in self._uniform(queue, sorts, most=most):
            tried = self._try(trial, found, worth, calm=most)
            if tried is not None and tried.settled:
                return tried
        return chosen

    def _uniform(self, queue: Ints, sorts: Sequence[Sort], *, most: int) -> Iterator[Trial]:
        """Plans of machines of one type with few others, of those types that would be many but not too many."""
        able: Bools = np.asarray(self._goods.allowed.any(axis=1))
        calm = Calm(self._goods, queue[able[queue]])
        for sort in calmest(sorts):
            drawings = calm.plan(sort.column, most=most) if sort.machines >= MANY else []
            if drawings:
                yield self._pack(self._firmly(drawings), self._rows)

    def _by_queue(self, queue: Ints, worth: Floats) -> Iterator[Trial]:
        """Plans that are made for how kube-scheduler fills machines."""
        for drawings in queued(self._goods, queue, worth):
            yield self._pack(self._firmly(drawings), self._rows)

    def _try(self, trial: Trial, found: list[Found], worth: Floats, *, calm: int) -> Found | None:
        """Rehearses a plan that may be the cheapest so far, or may cost so much because it is calm; None if it is not."""
        fewest = min(each.trial.unplaced for each in found)
        most = min(max(self._cheapest(found), calm), found[0].cost if found[0].trial.unplaced == fewest else 1 << 62)
        bought = tuple((claim.pool, claim.price, *sorted(claim.labels.items())) for claim in trial.claims)
        if self._rehearsals <= 0 or self._order(trial) > (fewest, most) or bought in self._tried:
            return None
        self._tried.add(bought)
        repaired = self._repaired(trial, worth, most=most if trial.unplaced == fewest else None)
        found += [] if repaired is None else [repaired]
        return repaired

    def _cheapest(self, found: Sequence[Found]) -> int:
        return min(map(self._rank, found))[1]

    def _waiting(self, first: Trial) -> Ints:
        """The pods that need new machines, as kube-scheduler will take them: rows of the market."""
        bought = {key for claim in first.claims for key in claim.pods}
        rows = [self._row_of[key] for key in self._queue if key in bought and key in self._row_of]
        return np.array(rows, dtype=np.int64)

    def _proposals(self, counts: Ints, worth: Floats, sorts: Sequence[Sort]) -> Iterator[list[Drawing]]:
        """Drawings of several kinds, the most promising first, as many as the size of the problem allows."""
        every = np.ones(len(self._goods.columns), dtype=np.bool_)
        number = int(counts.sum())
        markets = [roomy(self._goods, parts=PARTS), self._goods]
        if number <= SMALL:
            markets.reverse()  # a few pods do not fill machines of which each takes a small part

        def each() -> Iterator[list[Drawing]]:
            yield draw(self._goods, counts, worth, columns=sorts[0].columns)
            for goods in markets:
                patterns = Patterns(goods, counts, worth, columns=every)
                yield patterns.rounded()
                yield draw(goods, counts, patterns.worth, columns=every)
            for sort in sorts[1:ALIKE]:
                yield draw(self._goods, counts, worth, columns=sort.columns)

        most = min(MOST_DRAWN, DRAWN_PODS // max(1, number)) if number > SMALL else DRAWN_FOR_FEW
        if self._plain:
            most = 0
        return itertools.islice(each(), max(FEWEST_DRAWN, most))

    def _dearer(self, cost: int) -> int:
        """What a plan may cost that was rehearsed to the end, where a cheaper one was not."""
        return cost + cost // (UNSETTLED_UNDER_RULES if self._ruled else UNSETTLED)

    def _rank(self, found: Found) -> tuple[int, int]:
        return found.trial.unplaced, found.cost

    def _as_planned(self, trial: Trial) -> Found:
        cost = self._cost(trial)
        return Found(trial, trial.hourly, len(trial.claims), cost, settled=True, worst=cost)

    def _cost(self, trial: Trial) -> int:
        return trial.hourly + self._node_cost * len(trial.claims)

    def _order(self, trial: Trial) -> tuple[int, int]:
        return trial.unplaced, self._cost(trial)

    def _chosen(self, found: Sequence[Found], fine: int) -> Found:
        """The cheapest; but among those that are fine, and not dearer than first fit (which comes first), one that would
        change little if demand changed a little. Among equals the one whose largest machine holds least.
        """
        settled = [each for each in found if each.settled]
        fewest, least = min(map(self._rank, found))
        if settled and min(map(self._rank, settled)) <= (fewest, self._dearer(least)):
            found = [found[0], *settled]
        fewest, least = min(map(self._rank, found))
        first = found[0].cost if found[0].trial.unplaced == fewest else fine
        good = [each for each in found if each.trial.unplaced == fewest]
        calm = [each for each in good if each.cost <= min(fine, first) and each.trial.upheaval <= UPHEAVAL]
        if calm:
            return min(calm, key=lambda each: (each.trial.upheaval, each.cost))
        equal = [each for each in good if each.cost <= least + least // EQUAL]
        return min(equal, key=lambda each: (each.trial.largest, each.cost))

    def _counts(self, keys: Iterable[str]) -> Ints:
        counts = np.zeros(len(self._goods.classes), dtype=np.int64)
        for key in keys:
            row = self._row_of.get(key)
            if row is not None:
                counts[row] += 1
        return counts

    def _limit(self, counts: Ints) -> Bound:
        """What pods are worth on new machines, and about how cheap they can be."""
        none = np.zeros(self._goods.needs.shape[1], dtype=np.int64)
        return bound(self._goods, counts, heap=none, on_heap=[False] * len(counts))

    def _firmly(self, drawings: Sequence[Drawing]) -> list[Drawn]:
        """The drawings as they are, even if their pods would do with less."""
        return [dataclasses.replace(each, firm=True) for each in self._drawn(drawings)]

    def _drawn(self, drawings: Sequence[Drawing]) -> list[Drawn]:
        return [
            Drawn(
                *self._goods.columns[each.column],
                pods={row: int(each.pods[row]) for row in np.flatnonzero(each.pods).tolist()},
            )
            for each in drawings
        ]

    def _repaired(self, trial: Trial, worth: Floats, *, most: int | None) -> Found | None:
        """The plan with machines added until kube-scheduler would leave no pod over, however they arrive.

        Or as far as rounds go. None where it cannot be cheaper than `most`.
        """
        return self._settled(trial, worth, most=most)[1]

    def _at_first(self, first: Trial, worth: Floats) -> Found:
        """First fit's plan, with machines added if that is cheaper than to buy for who is left over at once."""
        at_once, repaired = self._settled(first, worth, most=None, keep=self._rehearsals // 2)
        return min((each for each in (repaired, at_once) if each is not None), key=lambda each: each.cost)

    def _settled(
        self, trial: Trial, worth: Floats, *, most: int | None, keep: int = 0, told: bool = False
    ) -> tuple[Found | None, Found | None]:
        """The plan as it is, by what happens at once; and with machines added. So many rehearsals are kept for others."""
        planned, machines = trial.hourly, len(trial.claims)
        seen: list[Found] = []
        clean, nearly, worst = 0, 0, 0
        for turn in itertools.count():
            arrival = self._arrivals[turn % len(self._arrivals)]
            over = self._left_over(trial, arrival, told=told)
            # A few that wait on a bad day are no reason to buy otherwise.
            bearable = arrival is Arrival.ONE_BY_ONE and len(over) <= self._few
            later = self._later(trial, over, worth)
            cost, worst = self._cost(trial) if bearable else later, max(worst, later)
            if most is not None and cost > most:
                return None, None
            clean = clean + 1 if bearable or not over else 0
            nearly = nearly + 1 if len(over) <= self._few else 0
            done = clean >= len(self._arrivals)
            many = len(over) > self._few
            seen.append(Found(trial, planned, machines, cost, settled=done, many=many, told=told, worst=worst))
            again = self._with_more(trial, over, worth) if over and not bearable else trial
            if done or again is None or turn >= ROUNDS or self._rehearsals <= keep:
                break
            worst = worst if again is trial else 0
            trial = again
        # Machines that are added may only draw other pods away: then it is cheaper to buy for who is left when it happens.
        cheapest = min(_by_bad_days(seen), key=lambda each: each.cost)
        if nearly >= len(self._arrivals) and cheapest.many:
            seen[-1] = dataclasses.replace(seen[-1], settled=True)  # better a few at once than many
        last = seen[-1]
        fine = last.settled and last.cost <= self._dearer(cheapest.cost)
        return seen[0], last if fine else cheapest

    def _with_more(self, trial: Trial, over: Sequence[str], worth: Floats) -> Trial | None:
        """The plan with machines for the pods that are left over; None where none can be bought.

        They come last: machines that arrive one by one find the same pods as before.
        """
        again = self._pack([*self._kept(trial, set(over)), *self._more(over, worth)], self._rows)
        return again if again.unplaced <= trial.unplaced and self._cost(again) > self._cost(trial) else None

    def _more(self, over: Sequence[str], worth: Floats) -> list[Drawn]:
        """Machines for the pods: one, if that is not much dearer than several; none for nobody."""
        if not over:
            return []
        counts = self._counts(over)
        several = draw(self._goods, counts, worth, columns=np.ones(len(self._goods.columns), dtype=np.bool_))
        one = whole(self._goods, counts)
        price = sum(int(self._goods.prices[each.column]) for each in several)
        if one is not None and int(self._goods.prices[one.column]) * 100 <= price * SECOND:
            return self._drawn([one])
        return self._drawn(several)

    def _left_over(self, trial: Trial, arrival: Arrival, *, told: bool) -> list[str]:
        """The pods of the plan that kube-scheduler would leave over."""
        if self._rehearse is None or (told and self._plain and not trial.filled):
            return []  # who is told a machine that holds him goes there
        self._rehearsals -= arrival is Arrival.AT_ONCE or self._ruled  # one by one is quick without rules
        nowhere = {key for _, keys in trial.left for key in keys}
        return [key for key in self._rehearse(trial.claims, arrival, told=told).left if key not in nowhere]

    def _later(self, trial: Trial, over: Sequence[str], worth: Floats) -> int:
        """What the plan costs with a second purchase for the pods that are left over."""
        more = sum(each.shelf.options[each.option].price + self._node_cost for each in self._more(over, worth))
        return self._cost(trial) + more

    def _kept(self, trial: Trial, over: set[str]) -> list[Drawn]:
        """The machines of a plan as drawings, without the pods that would be left over."""
        kept = []
        for claim, (shelf, option) in zip(trial.claims, trial.bought, strict=True):
            pods: dict[int, int] = {}
            for key in claim.pods:
                row = self._row_of.get(key)
                if row is not None and key not in over:
                    pods[row] = pods.get(row, 0) + 1
            kept.append(Drawn(shelf, option, pods, firm=True))
        return kept


def certificate(
    existing: Existing, asking: Placing, placed: Mapping[PodClass, int], *, node_cost: int
) -> tuple[int | None, tuple[str, ...]]:
    """The bound for these pods on nodes that nobody has filled yet, and the rules that it leaves out."""
    classes = [pods for pods, number in placed.items() if number]
    counts = np.array([placed[pods] for pods in classes], dtype=np.int64)
    far = {pods: asking.farthest(pods) for pods in classes}
    begun = dict.fromkeys(shelf for _, shelves in far.values() for shelf in shelves)
    masks = [{shelf: mask for shelf, mask in far[pods][0].items() if shelf in begun} for pods in classes]
    goods = market(classes, masks, resources=existing.free.shape[1], node_cost=node_cost)
    here = [existing.holding(pods) for pods in classes]
    anybody = np.logical_or.reduce(here) if here else np.zeros(len(existing.nodes), dtype=np.bool_)
    heap = np.maximum(existing.free[anybody], 0).sum(axis=0)
    found = bound(goods, counts, heap=heap, on_heap=[bool(each.any()) for each in here])
    pools = list({shelf.pool.ref: shelf.pool for shelf in begun}.values())
    rules = [f"limits of NodePool {pool.ref}" for pool in pools if asking.bounded(pool.ref)]
    rules += [
        f"minValues of NodePool {pool.ref}" for pool in pools if any(each.min_values for each in pool.requirements)
    ]
    if len({shelf.pool.weight for shelf in begun}) > 1 or len(begun) > len(pools):
        rules.append("the order of pools")
    return found.least, (*ignored([(pods, placed[pods]) for pods in classes]), *sorted(rules))


def _by_bad_days(seen: Sequence[Found]) -> Iterator[Found]:
    """The plans once each: as they are at best, unless machines may also arrive so that many pods are left over."""
    for _, views in itertools.groupby(seen, key=lambda each: id(each.trial)):
        found = list(views)
        bad = [each for each in found if each.many]
        yield max(bad, key=lambda each: each.cost) if bad else min(found, key=lambda each: each.cost)
