"""The books of a pool: names of claims in one of its annotations, read afresh and written only while nobody else wrote.

A name that nobody created is free again once we have seen it stand for a minute by our own clock: clocks of two machines
differ. A name that we gave up ourselves is free to us at once.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Final, Protocol, TypeVar

from growth.api import reservations
from growth.api.kinds import Kind
from growth.api.meta import ObjectMeta
from growth.api.pools import PoolRef
from growth.api.reservations import Reservation, ReservationError
from growth.controllers.environment import Environment
from growth.controllers.provisioning.booking import UnknownUsage
from growth.kube.api import Api
from growth.kube.errors import Conflict, OutcomeUnknown

# Longer than a reservation that nobody uses stands, on any clock.
GIVEN_UP_SECONDS: Final = 300.0


class Pool(Protocol):
    """A pool of either API."""

    @property
    def metadata(self) -> ObjectMeta: ...


P = TypeVar("P", bound=Pool)


class Standing:
    """Which reserved names still count, as far as this process knows."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._given_up: dict[str, float] = {}  # names that we shall not create, until others know it too (monotonic)

    def give_up(self, wanted: Iterable[str]) -> None:
        """These names will not be created: whoever reserves next may use their room."""
        now = self._env.clock.monotonic()
        self._given_up = {name: until for name, until in self._given_up.items() if until > now}
        self._given_up |= dict.fromkeys(wanted, now + GIVEN_UP_SECONDS)

    def others(self, reserved: Mapping[str, Reservation], own: Set[str]) -> dict[str, Reservation]:
        """What others have reserved, and we ourselves before: without what we gave up or ask for now, and without what
        has stood for so long that nobody will create it any more.
        """
        known = self._env.state.reserved_names
        known.see(reserved)
        given_up = known.given_up()
        return {
            name: each
            for name, each in reserved.items()
            if name not in self._given_up and name not in own and (name, each.at) not in given_up
        }


def read(ref: PoolRef, pool: Pool, annotation: str) -> dict[str, Reservation]:
    """The names in the pool's books. `UnknownUsage` where they cannot be read."""
    try:
        return reservations.parse(pool.metadata.annotations.get(annotation, ""))
    except ReservationError as error:
        raise UnknownUsage(f"NodePool {ref}: annotation {annotation} {error}") from error


async def write(api: Api, kind: Kind[P], pool: P, annotation: str, reserved: Mapping[str, Reservation]) -> bool:
    """Whether the pool has these books now. If not, somebody was first, or perhaps we were: look again."""
    try:
        await api.patch(
            kind,
            pool.metadata.name,
            {"metadata": {"annotations": {annotation: reservations.printed(reserved)}}},
            revision=pool.metadata.resource_version,
            uid=pool.metadata.uid,
        )
    except (Conflict, OutcomeUnknown):
        return False
    return True
