"""Packing after drawings: pods go where they were meant to go, as far as the feasibility code agrees.

Existing nodes come first, as always. Then each class fills the machines that were drawn with it in mind. What found no
place so is packed by first fit, onto the drawn machines and new ones; no machine grows dearer than it was drawn.
"""

import bisect
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from growth.api import names
from growth.planning.attempts import Attempt, Claim, Fit, Pinned
from growth.planning.classes import PodClass
from growth.planning.firstfit import FirstFit
from growth.planning.offerings import Shelf


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """One machine to buy: the option, and how many pods of each row of the drawing are meant for it.

    `firm`: it is to be no smaller than that option, even if its pods would do with less.
    """

    shelf: Shelf
    option: int
    pods: Mapping[int, int]
    firm: bool = False


class AfterDrawings(FirstFit):
    """One pass. `rows` says of which row of the drawings a class is."""

    def __init__(self, *args: Any, drawings: Sequence[Drawn], rows: Mapping[PodClass, int], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rows = rows
        self._meant: dict[int, list[tuple[Claim, list[int]]]] = {}
        self._drawn: list[Claim] = []
        self._dearest: dict[Shelf, int] = {}
        limits: dict[tuple[Shelf, int, bool], tuple[int, int]] = {}
        for drawn in drawings:
            shelf = drawn.shelf
            key = (shelf, drawn.option, drawn.firm)
            if key not in limits:
                limits[key] = (
                    self._at_least(shelf, drawn.option) if drawn.firm else -1,
                    _no_dearer(shelf, drawn.option),
                )
            mask, expected = limits[key]
            claim = Claim(shelf, self._resources, mask=mask, expected=expected, firm=drawn.firm)
            self._drawn.append(claim)
            self._dearest[shelf] = max(self._dearest.get(shelf, 0), drawn.option)
            for row, number in drawn.pods.items():
                self._meant.setdefault(row, []).append((claim, [number]))

    def place_all(self, classes: Sequence[PodClass]) -> list[tuple[PodClass, list[str]]]:
        """As first fit does, after the drawings are filled."""
        left = [(each, list(each.pods)) for each in classes if each.refusal is not None]
        waiting = []
        for pods in classes:
            if pods.refusal is None:
                rest = self._as_meant(pods, list(pods.pods))
                if rest:
                    waiting.append((pods, rest))
        left += self._place_waiting(waiting)
        self._as_drawn()
        return left

    def _as_drawn(self) -> None:
        """Puts the machines in the order in which they were drawn; those that nobody drew come last."""
        drawn = [claim for claim in self._drawn if claim.at >= 0]
        known = {claim.at for claim in drawn}
        self.claims = [*drawn, *(claim for claim in self.claims if claim.at not in known)]
        place = {claim.at: at for at, claim in enumerate(self.claims)}
        self.order = [(key, where if isinstance(where, str) else place[where]) for key, where in self.order]
        for at, claim in enumerate(self.claims):
            claim.at = at

    def _as_meant(self, pods: PodClass, keys: list[str]) -> list[str]:
        if pods.volumes.alone or pods not in self._rows:
            return keys
        meant = self._meant.get(self._rows[pods], [])
        for variant in pods.variants:
            attempt = Attempt(pods, variant, self._shelves, self._existing.candidates(pods, variant))
            if attempt.near:
                return keys  # a group that must share a host is begun by first fit, where all of it fits
            if attempt.rules:
                keys = self._one_by_one(attempt, keys, meant)
            else:
                keys = self._in_bulk(attempt, self._fill_existing(attempt, keys), meant)
            # A preference is given up only where not even a new machine could honour it.
            if not keys or any(self._open_on(attempt, shelf, ()) is not None for shelf in attempt.open):
                break
        return keys

    def _in_bulk(self, attempt: Attempt, keys: list[str], meant: list[tuple[Claim, list[int]]]) -> list[str]:
        for claim, quota in meant:
            while keys and quota[0]:
                number, fit = self._most(claim, attempt, min(quota[0], len(keys)))
                if fit is None:
                    break
                self._put_planned(claim, attempt, fit, keys[:number])
                quota[0] -= number
                keys = keys[number:]
        return keys

    def _one_by_one(self, attempt: Attempt, keys: list[str], meant: list[tuple[Claim, list[int]]]) -> list[str]:
        pods = attempt.pods
        for at, key in enumerate(keys):
            self.steps += 1
            index = self._existing.first(attempt.candidates, pods, attempt.rules) if self._existing.nodes else None
            if index is not None:
                self._put_existing(index, pods, [key])
                continue
            found = next(
                (
                    found
                    for pinned in self._choices(pods, attempt.rules)
                    if (found := self._find(attempt, pinned, meant))
                ),
                None,
            )
            if found is None:
                return keys[at:]
            claim, quota, fit = found
            self._put_planned(claim, attempt, fit, [key])
            quota[0] -= 1
        return []

    def _find(
        self, attempt: Attempt, pinned: Pinned, meant: list[tuple[Claim, list[int]]]
    ) -> tuple[Claim, list[int], Fit] | None:
        """The first machine meant for the class that takes one more; one that refused is not asked again."""
        at = attempt.tried.get(pinned, 0)
        while at < len(meant):
            claim, quota = meant[at]
            if quota[0] and attempt.hosts_allow(claim.counts):
                fit = self._takes(claim, attempt, pinned, 1)
                if fit is not None:
                    attempt.tried[pinned] = at
                    return claim, quota, fit
            at += 1
        attempt.tried[pinned] = at
        return None

    def _new(self, shelf: Shelf) -> Claim:
        """A machine that nobody drew: it may become as dear as the dearest that was, where that holds a pod at all."""
        dearest = self._dearest.get(shelf)
        return super()._new(shelf) if dearest is None else Claim(shelf, self._resources, expected=(2 << dearest) - 1)

    def _open_on(self, attempt: Attempt, shelf: Shelf, pinned: Pinned) -> Claim | None:
        claim = super()._open_on(attempt, shelf, pinned)
        if claim is None and self._dearest.get(shelf) is not None:
            unbounded = Claim(shelf, self._resources)
            if self._takes(unbounded, attempt, pinned, 1) is not None:
                return unbounded
        return claim

    def _at_least(self, shelf: Shelf, option: int) -> int:
        """The options that have at least as much room as the one, unless `minValues` wants more to choose from."""
        mask = -1
        for resource in range(self._resources):
            mask &= shelf.with_room(resource, _room(shelf, option, resource))
        return -1 if shelf.too_rigid(shelf.start, shelf.start.mask & mask) is not None else mask


def _room(shelf: Shelf, option: int, resource: int) -> int:
    """How much of the resource the option has."""
    amounts = shelf.amounts(resource)
    low, high = 0, len(amounts)
    while high - low > 1:
        middle = (low + high) // 2
        if shelf.with_room(resource, amounts[middle]) >> option & 1:
            low = middle
        else:
            high = middle
    return amounts[low]


def _no_dearer(shelf: Shelf, option: int) -> int:
    """The options that cost no more than the one, and those of its type elsewhere."""
    chosen = shelf.options[option]
    dearest = bisect.bisect_right(shelf.options, chosen.price, key=lambda each: each.price)
    return ((1 << dearest) - 1) | shelf.options_with(names.INSTANCE_TYPE_LABEL, chosen.type.name)
