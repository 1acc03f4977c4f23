"""Which claims may have, or get, a machine that nobody has told of: while one may, «there is no machine» is no answer.

Were such a claim let go, nobody would count its machine. So it stays while its launch is under way here, and as long as a
purchase for it may be on its way: one of ours that went without an answer, or of whoever led before us. A cloud may hear a
request long after its sender gave up, or lost the lease.
"""

from collections.abc import Awaitable, Callable
from typing import Final

# So long after a process sent its last request the cloud may hear it: a leader that does not know yet that it is one no more
# sends for as long as its last renewal allows, and a connection delivers or breaks within half a minute.
ARRIVES_SECONDS: Final = 60.0


async def _never() -> bool:
    return False


# So many claims are remembered by what was done with them; one is a few bytes.
REMEMBERED: Final = 10_000


class Launches:
    """One per process. Claims are told by UID, times are monotonic seconds. What is lost with the process, the next one's
    lead makes up for: it waits for everything that was sent before.
    """

    def __init__(self) -> None:
        self.under_way: set[str] = set()
        """From before the last look at the claim until the answer has been written."""
        self._led_since = float("-inf")
        self._unanswered: dict[str, float] = {}
        self._ended: dict[str, None] = {}
        self._taken: Callable[[], Awaitable[bool]] = _never

    def lead(self, since: float, taken: Callable[[], Awaitable[bool]]) -> None:
        """Whoever led before has sent its last request soon after `since`; `taken` asks the server whether another leads."""
        self._led_since, self._taken = since, taken

    def unanswered(self, claim: str, now: float) -> None:
        """The cloud did not say what became of the claim's purchase."""
        self._unanswered[claim] = now

    def forget(self, claim: str) -> None:
        """Its machine is known, or the claim is gone."""
        self._unanswered.pop(claim, None)

    def ended(self, claim: str) -> None:
        """This process has given its machine back and let the claim go."""
        self.forget(claim)
        self._ended[claim] = None
        if len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]

    def has_ended(self, claim: str) -> bool:
        """Whether this process did: a machine of such a claim came from a purchase that arrived after that."""
        return claim in self._ended

    def over_at(self, claim: str) -> float:
        """From when on no machine comes that nobody knows of, as long as this process leads."""
        return max(self._led_since, self._unanswered.get(claim, float("-inf"))) + ARRIVES_SECONDS

    async def may_be_anothers(self) -> bool:
        """Whether another leads, as the server says at this moment: it may have begun to buy."""
        return await self._taken()
