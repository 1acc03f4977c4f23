"""Claims that are not launched because what the cloud holds contradicts itself: they go on soon after people have resolved it.

Such a claim is tried again slowly, for ever. Where the error can tell whether its contradiction is over, it is asked every few
seconds, once for all claims that it stops, and then those are tried at once.
"""

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Final

from growth.api.clouds import InvariantViolation, IsOver
from growth.api.karpenter import NodeClaim
from growth.kube.errors import ConfigError, GateClosed
from growth.telemetry.logs import logger

_log = logger("nodeclaim.lifecycle")

# Between two questions of one round; each contradiction is asked about once a round.
ASK_SECONDS: Final = 5.0
# A contradiction that seemed over and was not is asked about later and later, up to so many rounds.
MOST_ROUNDS: Final = 60


@dataclasses.dataclass(slots=True)
class _Contradiction:
    """`claims` are names by UID. `rest` is how many rounds pass before the next question."""

    is_over: IsOver
    claims: dict[str, str]
    in_vain: int = 0
    rest: int = 0


class Contradictions:
    """`try_again` is called with the UID and the name of a claim that may be launched now."""

    def __init__(self, try_again: Callable[[str, str], None]) -> None:
        self._try_again = try_again
        # By the error's message: one contradiction may stop many claims.
        self._held: dict[str, _Contradiction] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(ASK_SECONDS)
            for why, each in list(self._held.items()):
                if each.rest:
                    each.rest -= 1
                elif each.claims and await self._asked(each.is_over):
                    each.in_vain, each.rest = each.in_vain + 1, min(2**each.in_vain, MOST_ROUNDS)
                    _log.info("a contradiction seems to be resolved", was=why, claims=len(each.claims))
                    for uid, name in each.claims.items():
                        self._try_again(uid, name)

    async def _asked(self, is_over: IsOver) -> bool:
        try:
            return await is_over()
        except (GateClosed, ConfigError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody knows that it is over
            _log.debug("whether a contradiction is over is not known", error=str(error))
            return False

    def stops(self, claim: NodeClaim, error: InvariantViolation) -> None:
        """The claim's launch failed for it."""
        why, uid = str(error), claim.metadata.uid
        if uid not in getattr(self._held.get(why), "claims", {}):
            self.forget(uid)
        if error.is_over is not None:
            held = self._held.setdefault(why, _Contradiction(error.is_over, {}))
            held.is_over, held.claims[uid] = error.is_over, claim.metadata.name

    def forget(self, uid: str) -> None:
        """The claim is gone, or stopped by it no more."""
        for each in self._held.values():
            each.claims.pop(uid, None)
        self._held = {why: each for why, each in self._held.items() if each.claims}
