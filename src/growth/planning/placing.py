"""Machines that fill up: what one would be narrowed to by taking pods, and the books when it takes them.

The feasibility that every packer shares. A packer decides where pods are tried; whether they fit is decided here, with
integers only.
"""

import itertools
from collections.abc import Mapping, Sequence

from growth.api.pools import PoolRef
from growth.api.requests import Port, ports_conflict
from growth.planning.attempts import Attempt, Claim, Fit, Pinned, open_to, settled, without_ports
from growth.planning.classes import PodClass
from growth.planning.existing import Existing
from growth.planning.ledger import Ledger
from growth.planning.offerings import Constraints, Shelf, State
from growth.planning.requirements import ABSENT
from growth.planning.taints import untolerated
from growth.planning.topology import Group, Rule


class Placing:
    """The machines of one pass. `steps` counts attempts on machines; beyond `budget` of them no more pods are tried."""

    def __init__(
        self,
        shelves: Sequence[Shelf],
        existing: Existing,
        constraints: Constraints,
        ledgers: Mapping[PoolRef, Ledger],
        *,
        resources: int,
        daemon_ports: Mapping[Shelf, Sequence[tuple[frozenset[Port], int]]],
        budget: int,
        in_use: set[tuple[str, str]],
    ) -> None:
        self._shelves = shelves
        self._existing = existing
        self._constraints = constraints
        self._ledgers = ledgers
        self._resources = resources
        self._daemon_ports = daemon_ports
        self._budget = budget
        self.in_use = in_use  # volume claims that some pod uses
        self.claims: list[Claim] = []
        self.order: list[tuple[str, str | int]] = []
        self.steps = 0
        self._by_key: dict[str, list[tuple[int, str]]] = {}

    @property
    def exhausted(self) -> bool:
        return self.steps >= self._budget

    def bounded(self, pool: PoolRef) -> bool:
        """Whether the pool has limits, maxima or reservations."""
        return self._ledgers[pool].bounded

    def reach(self, pods: PodClass) -> dict[Shelf, int]:
        """Where new machines for pods of the class come from: the first shelf that can hold one, with its options.

        With the preferences that can be honoured there; empty where nothing can hold one.
        """
        for variant in pods.variants:
            attempt = Attempt(pods, variant, self._shelves, self._existing.candidates(pods, variant))
            for shelf in attempt.open:
                fit = self._fits(Claim(shelf, self._resources), attempt, (), 1)
                if fit is not None:
                    return {shelf: fit[1]}
        return {}

    def farthest(self, pods: PodClass) -> tuple[dict[Shelf, int], list[Shelf]]:
        """Every option that could hold one pod of the class, and the shelves on which new machines may be begun for it.

        Both err on the side of more: without topology, ports and volumes, and with every step of its preferences.
        """
        masks: dict[Shelf, int] = {}
        begun: list[Shelf] = []
        for variant in pods.variants:
            free = not (variant.rules or pods.kept_away or pods.places or pods.ports or len(pods.variants) > 1)
            sure = False
            for shelf in self._shelves:
                if not open_to(shelf, pods, variant):
                    continue
                state = shelf.step(shelf.start, variant.constraint)
                mask = 0 if state is None else state.mask
                for resource, amount in pods.needs:
                    mask &= shelf.with_room(resource, amount)
                if not mask or state is None:
                    continue
                masks[shelf] = masks.get(shelf, 0) | mask
                if not sure and shelf not in begun:
                    begun.append(shelf)
                fine = shelf.too_rigid(state, mask) is None and shelf.implied(variant.constraint) is None
                sure |= free and fine and not self._ledgers[shelf.pool.ref].bounded and not pods.volumes.attach
        return masks, begun

    def _most(self, claim: Claim, attempt: Attempt, wanted: int) -> tuple[int, Fit | None]:
        """How many pods of the class the machine takes, at most `wanted`, by halving."""
        best = self._takes(claim, attempt, (), 1)
        if best is None or wanted == 1 or attempt.one_by_one:
            return 1, best
        whole = self._takes(claim, attempt, (), wanted)
        if whole is not None:
            return wanted, whole
        low, high = 1, wanted
        while high - low > 1:
            middle = (low + high) // 2
            fit = self._takes(claim, attempt, (), middle)
            if fit is None:
                high = middle
            else:
                low, best = middle, fit
        return low, best

    def _choices(self, pods: PodClass, rules: tuple[Group, ...]) -> list[Pinned]:
        """The combinations of domains that the rules allow, emptiest first, then cheapest for the first pool."""
        keys = list(dict.fromkeys(group.key for group in rules if not group.by_host))
        allowed = []
        for key in keys:
            about = [(group, pods.selects_itself(group)) for group in rules if group.key == key]
            spreads = [group.counts for group, _ in about if group.rule is Rule.SPREAD]
            fine = [
                (sum(counts.get(domain, 0) for counts in spreads), rank, domain)
                for rank, domain in self._domains(key)
                if all(group.allows(domain, selects_itself=own) for group, own in about)
            ]
            fine.sort()
            choices = [self._constraints.one(key, domain) for *_, domain in fine]
            if all(group.tolerates_absence for group, _ in about):
                choices.append(self._constraints.of({key: ABSENT}))  # a machine without the label has no domain
            allowed.append(choices)
        return list(itertools.product(*allowed))

    def _domains(self, key: str) -> list[tuple[int, str]]:
        """The domains that new machines can be in, each with the rank of its cheapest option in the first such pool."""
        known = self._by_key.get(key)
        if known is None:
            found: dict[str, int] = {}
            for shelf in self._shelves:
                for value in shelf.values(key, shelf.start, shelf.start.mask):
                    found.setdefault(value, _lowest(shelf.options_with(key, value) & shelf.start.mask))
            known = self._by_key[key] = [(rank, value) for value, rank in found.items()]
        return known

    def _open_new(self, attempt: Attempt, pinned: Pinned) -> Claim | None:
        return next((claim for shelf in attempt.open if (claim := self._open_on(attempt, shelf, pinned))), None)

    def _new(self, shelf: Shelf) -> Claim:
        return Claim(shelf, self._resources)

    def _open_on(self, attempt: Attempt, shelf: Shelf, pinned: Pinned) -> Claim | None:
        if (pinned, shelf) in attempt.closed:
            return None
        claim = self._new(shelf)
        if self._takes(claim, attempt, pinned, 1) is not None:
            return claim
        attempt.closed.add((pinned, shelf))
        return None

    def _takes(self, claim: Claim, attempt: Attempt, pinned: Pinned, number: int) -> Fit | None:
        """What `_fits` says, with the machine narrowed to one value of each label by which somebody counts these pods.

        The cheapest value that fits. Otherwise a pod would count nowhere, and kube-scheduler, which sees it somewhere,
        would disagree.
        """
        fit = self._fits(claim, attempt, pinned, number)
        for key, asked in attempt.pins.items():
            if fit is None:
                return None
            state, mask, _ = fit
            shelf = claim.shelf
            values = shelf.values(key, state, mask)
            domains = [
                (_lowest(shelf.options_with(key, value) & mask), self._constraints.one(key, value)) for value in values
            ]
            without = shelf.without(key, mask)
            if without:
                domains.append((_lowest(without), self._constraints.of({key: ABSENT})))
            if len(domains) < 2 or (asked is not None and settled(asked, values, absent=bool(without))):
                continue
            domains.sort(key=lambda domain: domain[0])
            for _, domain in domains:
                fit = self._fits(claim, attempt, (*pinned, domain), number)
                if fit is not None:
                    pinned = (*pinned, domain)
                    break
        return fit

    def _fits(self, claim: Claim, attempt: Attempt, pinned: Pinned, number: int) -> Fit | None:
        """What the machine would be narrowed to by taking `number` pods; None when it cannot take them."""
        self.steps += 1
        shelf = claim.shelf
        if shelf not in attempt.open:
            return None
        pods = attempt.pods
        state = shelf.step(claim.state, attempt.variant.constraint)
        implied = attempt.open[shelf]
        for narrower in pinned if implied is None else (implied, *pinned):
            if state is None:
                return None
            state = shelf.step(state, narrower)
        if state is None:
            return None
        mask = claim.mask & state.mask
        used = claim.used
        for resource, amount in pods.needs:
            mask &= shelf.with_room(resource, used[resource] + amount * number)
            if not mask:
                return None
        if not pods.places:
            return self._settled(claim, pods, state, mask & state.mask, number) if mask & state.mask else None
        reached = [
            there for place in pods.places if (there := shelf.step(state, place)) is not None and mask & there.mask
        ]
        for there in sorted(reached, key=lambda there: _lowest(mask & there.mask)):
            fit = self._settled(claim, pods, there, mask & there.mask, number)
            if fit is not None:
                return fit
        return None

    def _settled(self, claim: Claim, pods: PodClass, state: State, mask: int, number: int) -> Fit | None:
        shelf = claim.shelf
        if pods.ports:
            if ports_conflict(claim.ports, pods.ports):
                return None
            mask = without_ports(self._daemon_ports.get(shelf, ()), pods.ports, mask)
            if not mask:
                return None
        if pods.volumes.attach or pods.volumes.fresh:
            mask = self._attachable(claim, pods, mask, number)
            if not mask:
                return None
        if not mask & claim.expected:
            return None
        ledger = self._ledgers[shelf.pool.ref]
        if not ledger.bounded:
            return None if shelf.too_rigid(state, mask) is not None else (state, mask, None)
        hold = ledger.within(shelf, state, mask, claim.hold)
        return None if hold is None or not hold.mask & claim.expected else (state, mask, hold)

    def _attachable(self, claim: Claim, pods: PodClass, mask: int, number: int) -> int:
        """The options whose volume limits hold with the pods' volumes attached."""
        for driver in sorted({*pods.volumes.attach, *pods.volumes.fresh}):
            count = len(claim.attached.get(driver, set()) | pods.volumes.attach.get(driver, frozenset()))
            count += claim.fresh.get(driver, 0) + pods.volumes.fresh.get(driver, 0) * number
            for option in claim.shelf.chosen(mask):
                limit = option.type.volume_limits.get(driver)
                if limit is not None and count > limit:
                    mask &= ~(1 << claim.shelf.options.index(option))
        return mask

    def _put_planned(self, claim: Claim, attempt: Attempt, fit: Fit, keys: Sequence[str]) -> None:
        pods = attempt.pods
        number = len(keys)
        if claim.at < 0:
            claim.at = len(self.claims)
            self.claims.append(claim)
        claim.state, claim.mask, hold = fit
        if hold is not None:
            self._ledgers[claim.shelf.pool.ref].take(claim.hold, hold)
            claim.hold = hold
        for resource, amount in pods.needs:
            claim.used[resource] += amount * number
        claim.ports |= pods.ports
        for driver, handles in pods.volumes.attach.items():
            claim.attached.setdefault(driver, set()).update(handles)
        for driver, count in pods.volumes.fresh.items():
            claim.fresh[driver] = claim.fresh.get(driver, 0) + count * number
        claim.pods.extend(keys)
        self.order.extend(zip(keys, itertools.repeat(claim.at)))
        self._count(claim, pods, number)

    def _count(self, claim: Claim, pods: PodClass, number: int) -> None:
        for group in (*pods.counted, *pods.keeps_away):
            if not self._counts(group, claim):
                continue
            if group.by_host:
                claim.counts[group] = claim.counts.get(group, 0) + number
                group.total += number
                continue
            values = claim.shelf.values(group.key, claim.state, claim.mask)
            if len(values) == 1 and not claim.shelf.without(group.key, claim.mask):
                group.record(values[0], number)

    def _counts(self, group: Group, claim: Claim) -> bool:
        """Whether the rule counts pods on such a machine."""
        shelf = claim.shelf
        if group.honours_taints and untolerated(group.tolerations, shelf.pool.taints, soft=False) is not None:
            return False
        reached = (shelf.step(claim.state, each) for each in group.filters)
        return not group.filters or any(each is not None and each.mask & claim.mask for each in reached)

    def _put_existing(self, index: int, pods: PodClass, keys: Sequence[str]) -> None:
        self._existing.put(index, pods, keys)
        name = self._existing.nodes[index].name
        self.order.extend(zip(keys, itertools.repeat(name)))


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length()
