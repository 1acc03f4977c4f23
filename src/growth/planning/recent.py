"""The last questions and their answers: much of what a pass works out has not changed since the last one.

Questions are compared by what they say and never by time or revision: an answer is found again exactly where working it out
would give it again. Objects that are the same are equal without a look, so that comparing costs next to nothing.
"""

from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class Recent(Generic[Q, A]):
    """So many answers are `kept`, those that were asked for last. Safe on any thread."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._known: tuple[tuple[Q, A], ...] = ()

    def find(self, question: Q) -> A | None:
        """The answer, if an equal question was answered a moment ago."""
        known = self._known
        for at, (asked, answer) in enumerate(known):
            if asked == question:
                # With the question of now: the next one is likely made of the same objects.
                self._known = ((question, answer), *known[:at], *known[at + 1 :])
                return answer
        return None

    def keep(self, question: Q, answer: A) -> A:
        self._known = ((question, answer), *self._known[: self._kept - 1])
        return answer
