"""First fit: Karpenter's order of doing things, class by class instead of pod by pod.

A pod goes to the first existing node that takes it, else to the first planned machine, else to a new machine of the
first pool (by weight) that can hold it. A planned machine stays open as long as one option holds all its pods.

What makes it quick: a class tries planned machines from where it last stopped (`Attempt`), because a machine that refused
a class for room, labels or a host's rules refuses it for ever; and pods without rules of topology are placed in bulk.
"""

from collections.abc import Sequence

from growth.planning.attempts import Attempt, Claim, Fit, Pinned
from growth.planning.classes import PodClass, Variant
from growth.planning.placing import Placing


class FirstFit(Placing):
    """One pass, in Karpenter's order."""

    def place_all(self, classes: Sequence[PodClass]) -> list[tuple[PodClass, list[str]]]:
        """Places what it can; what is left, by class. A class that was refused is tried again when others were placed:
        the pods it wants to be near may have come since.
        """
        waiting = [(each, list(each.pods)) for each in classes if each.refusal is None]
        left = [(each, list(each.pods)) for each in classes if each.refusal is not None]
        return left + self._place_waiting(waiting)

    def _place_waiting(self, waiting: list[tuple[PodClass, list[str]]]) -> list[tuple[PodClass, list[str]]]:
        while waiting:
            refused: list[tuple[PodClass, list[str]]] = []
            progress = False
            for pods, keys in waiting:
                rest = self._place(pods, keys)
                progress |= len(rest) < len(keys)
                if rest:
                    refused.append((pods, rest))
            if not progress or self.exhausted:
                return refused
            waiting = refused
        return []

    def _place(self, pods: PodClass, keys: list[str]) -> list[str]:
        if pods.volumes.alone:
            if pods.volumes.alone & self.in_use:
                return keys
            if self._place_anywhere(pods, keys[:1]):
                return keys
            self.in_use |= pods.volumes.alone
            return keys[1:]
        return self._place_anywhere(pods, keys)

    def _place_anywhere(self, pods: PodClass, keys: list[str]) -> list[str]:
        for variant in pods.variants:
            if not keys or self.exhausted:
                break
            keys = self._place_variant(pods, variant, keys)
        return keys

    def _place_variant(self, pods: PodClass, variant: Variant, keys: list[str]) -> list[str]:
        attempt = Attempt(pods, variant, self._shelves, self._existing.candidates(pods, variant))
        if not attempt.rules:
            return self._fill_planned(attempt, self._fill_existing(attempt, keys))
        if self._place_together(attempt, keys):
            return []
        for at, key in enumerate(keys):
            if not self._place_one(attempt, key):
                return keys[at:]
        return []

    # -- pods that must share a host ------------------------------------------------------------------------------

    def _place_together(self, attempt: Attempt, keys: list[str]) -> bool:
        """Begins a group that must share a host where all of it fits; False where it need not or cannot be."""
        pods, number = attempt.pods, len(keys)
        if number < 2 or attempt.one_by_one or not attempt.begins:
            return False
        index = (
            self._existing.first(attempt.candidates, pods, attempt.rules, room=number) if self._existing.nodes else None
        )
        if index is not None:
            self._put_existing(index, pods, keys)
            return True
        for pinned in self._choices(pods, attempt.rules):
            for claim in self.claims:
                if attempt.hosts_allow(claim.counts):
                    fit = self._takes(claim, attempt, pinned, number)
                    if fit is not None:
                        self._put_planned(claim, attempt, fit, keys)
                        return True
        for shelf in attempt.open:
            for pinned in self._choices(pods, attempt.rules):
                claim = Claim(shelf, self._resources)
                fit = self._takes(claim, attempt, pinned, number)
                if fit is not None:
                    self._put_planned(claim, attempt, fit, keys)
                    return True
        return False

    # -- pods without rules: in bulk ------------------------------------------------------------------------------

    def _fill_existing(self, attempt: Attempt, keys: list[str]) -> list[str]:
        pods = attempt.pods
        if not self._existing.nodes:
            return keys
        for index in self._existing.with_room(attempt.candidates, pods):
            if not keys:
                break
            self.steps += 1
            while keys and (number := min(len(keys), self._existing.room(index, pods))):
                self._put_existing(index, pods, keys[:number])
                keys = keys[number:]
        return keys

    def _fill_planned(self, attempt: Attempt, keys: list[str]) -> list[str]:
        at = 0
        while keys:
            claim = self.claims[at] if at < len(self.claims) else self._open_new(attempt, ())
            if claim is None:
                return keys
            at += 1
            number, fit = self._most(claim, attempt, len(keys))
            if fit is not None:
                self._put_planned(claim, attempt, fit, keys[:number])
                keys = keys[number:]
                at -= attempt.one_by_one  # it may take another of these
        return keys

    # -- pods with rules: one by one --------------------------------------------------------------------------------

    def _place_one(self, attempt: Attempt, key: str) -> bool:
        pods = attempt.pods
        self.steps += 1
        index = self._existing.first(attempt.candidates, pods, attempt.rules) if self._existing.nodes else None
        if index is not None:
            self._put_existing(index, pods, [key])
            return True
        choices = self._choices(pods, attempt.rules)
        for pinned in choices:
            claim, fit = self._find_planned(attempt, pinned)
            if claim is not None and fit is not None:
                self._put_planned(claim, attempt, fit, [key])
                return True
        if not attempt.hosts_allow({}):
            return False
        for shelf in attempt.open:  # a pool of greater weight comes before a better domain
            for pinned in choices:
                claim = self._open_on(attempt, shelf, pinned)
                if claim is not None:
                    fit = self._takes(claim, attempt, pinned, 1)
                    assert fit is not None
                    self._put_planned(claim, attempt, fit, [key])
                    return True
        return False

    def _find_planned(self, attempt: Attempt, pinned: Pinned) -> tuple[Claim | None, Fit | None]:
        """The first planned machine that takes one more. Those passed over are not asked again, unless a rule of
        affinity to a host refused them: that may lapse.
        """
        claims = self.claims
        at = 0 if attempt.lapses else attempt.tried.get(pinned, 0)
        found: tuple[Claim | None, Fit | None] = (None, None)
        while at < len(claims):
            claim = claims[at]
            if attempt.hosts_allow(claim.counts):
                fit = self._takes(claim, attempt, pinned, 1)
                if fit is not None:
                    found = (claim, fit)
                    break
            at += 1
        if not attempt.lapses:
            attempt.tried[pinned] = at
        return found
