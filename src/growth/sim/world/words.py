"""Why a pod was not scheduled, in kube-scheduler's words: people and tools know them from events and conditions."""

import collections
import functools
import re
from collections.abc import Sequence
from typing import Final

# What `growth.sim.predicates` says, in the order in which kube-scheduler asks, and what kube-scheduler says then.
# A test holds this to the real one.
_WORDS: Final = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"taints: the node is cordoned", "node(s) were unschedulable"),
        (r"name:", "node(s) didn't match the requested node name"),
        (r"taints:", "node(s) had untolerated taint(s)"),
        (r"labels:", "node(s) didn't match Pod's node affinity/selector"),
        (r"ports:", "node(s) didn't have free ports for the requested pod ports"),
        (r"room: pods ", "Too many pods"),
        (r"room: (\S+) ", r"Insufficient \1"),
        (r"volumes:", "node(s) had volume node affinity conflict"),
        (
            r"spread: the node has no label",
            "node(s) didn't match pod topology spread constraints (missing required label)",
        ),
        (r"spread:", "node(s) didn't match pod topology spread constraints"),
        (r"affinity:", "node(s) didn't match pod affinity rules"),
        (r"anti-affinity:", "node(s) didn't match pod anti-affinity rules"),
        (r"anti-affinity of ", "node(s) didn't satisfy existing pods anti-affinity rules"),
    )
)
# Rules that answer with all that is wrong, not with the first thing.
_ROOM: Final = re.compile(r"Too many pods|Insufficient ")


def explain(verdicts: Sequence[Sequence[str]]) -> str:
    """The condition's message for a pod with these refusals, one sequence for each node.

    A node that several rules refuse is counted for the first: kube-scheduler asks it no further.
    """
    if not verdicts:
        return "no nodes available to schedule pods"
    against: collections.Counter[str] = collections.Counter()
    for refusals in verdicts:
        ranked = sorted({_translated(refusal) for refusal in refusals})
        first = ranked[0][1]
        if _ROOM.match(first):
            against.update(words for _, words in ranked if _ROOM.match(words))
        else:
            against[first] += 1
    parts = sorted(f"{count} {words}" for words, count in against.items())
    return f"0/{len(verdicts)} nodes are available: {', '.join(parts)}."


@functools.lru_cache(maxsize=10_000)  # a burst of equal pods is refused in the same words again and again
def _translated(refusal: str) -> tuple[int, str]:
    """The rule's place in the order, and its words."""
    for place, (pattern, words) in enumerate(_WORDS):
        match = pattern.match(refusal)
        if match is not None:
            return place, match.expand(words)
    return len(_WORDS), refusal
