"""Whether a machine that was bought is whole: all its actions ended well. Where one did not, it is removed.

An action fails for the reasons for which a purchase is refused, in the same codes. A machine is paid for from its first
moment, so what a late failure means for the next purchase is noted before the machine is removed.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.clouds import CloudError, CloudMachine, CreateError, QuotaExceeded
from growth.api.instance_types import Catalogue
from growth.api.nodeclasses import HetznerNodeClass
from growth.ports import Clock
from growth.providers.answering import Hold
from growth.providers.choice import Choice
from growth.providers.hetzner.actions import Actions, StillRunning, failed
from growth.providers.hetzner.client import HetznerApi
from growth.providers.hetzner.failures import Meaning, in_words, meaning
from growth.providers.hetzner.readiness import HetznerReadiness
from growth.providers.hetzner.shown import shown
from growth.providers.hetzner.wire import Action, Server
from growth.providers.http import Refused
from growth.providers.nodeclasses import TOKEN_REFUSED
from growth.providers.shortages import Shortages
from growth.telemetry.logs import logger

_log = logger("hetzner")

# A deletion that was accepted and is not done after so long is asked for again.
DELETION_SECONDS: Final = 60.0
# No machine is gone sooner after its deletion was accepted.
DELETING_SECONDS: Final = 2.0
# So many machines that are being deleted are looked at one by one; of more there is a list.
MOST_LOOKS: Final = 2

NAME_TAKEN: Final = "NameTaken"


class Deletions:
    """Machines whose deletion was accepted: they are not asked for twice, and not taken for a claim's own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._asked: dict[int, float] = {}
        self._gone: dict[int, float] = {}

    def asked(self, number: int) -> None:
        now = self._clock.monotonic()
        self._asked = {each: at for each, at in self._asked.items() if now - at < DELETION_SECONDS}
        self._gone = {each: at for each, at in self._gone.items() if now - at < DELETION_SECONDS}
        self._asked[number] = now

    def asked_lately(self, number: int) -> bool:
        return self._age(self._asked, number) < DELETION_SECONDS

    def asked_just_now(self, number: int) -> bool:
        """A look at the machine so soon after the deletion was accepted would say nothing new."""
        return self._age(self._asked, number) < DELETING_SECONDS

    @property
    def are_many(self) -> bool:
        """Whether one list costs fewer calls than a look at each of these machines."""
        return sum(map(self.asked_lately, self._asked)) > MOST_LOOKS

    def gone(self, number: int) -> None:
        """The cloud has just said «not found» of the machine. After an accepted deletion nothing is in doubt."""
        if self._asked.pop(number, None) is not None:
            self._gone[number] = self._clock.monotonic()

    def gone_lately(self, number: int, *, within: float) -> bool:
        return self._age(self._gone, number) < within

    def _age(self, times: Mapping[int, float], number: int) -> float:
        return self._clock.monotonic() - times.get(number, -math.inf)


class Completing:
    """One per account. Raises errors of `growth.api.clouds` and `CallError`."""

    def __init__(
        self,
        cloud: HetznerApi,
        *,
        clock: Clock,
        readiness: HetznerReadiness,
        shortages: Shortages,
        deletions: Deletions,
        hold: Hold,
    ) -> None:
        self._cloud = cloud
        self._readiness = readiness
        self._shortages = shortages
        self._deletions = deletions
        self._hold = hold
        self._actions = Actions(cloud, clock)

    async def completed(
        self,
        server: Server,
        actions: Sequence[Action],
        node_class: HetznerNodeClass,
        sold: Catalogue,
        option: Choice | None = None,
    ) -> CloudMachine | None:
        """The machine once all its actions ended well. Otherwise it is removed: None where another offering may do."""
        try:
            broken = failed(await self._actions.ended(actions))
            if broken is None and node_class.spec.backups and not server.backup_window:
                broken = failed(await self._actions.ended([await self._cloud.enable_backup(server.id)]))
        except StillRunning:
            raise CreateError(
                f"machine {server.name} is still being made: it is looked at again", reason="Pending"
            ) from None
        if broken is None:
            return shown(server, sold)
        error = self._blamed(server, broken, node_class, option.key if option is not None else _key(server))
        await self._remove(server)
        if error is not None:
            raise error
        return None

    def _blamed(
        self, server: Server, broken: Action, node_class: HetznerNodeClass, key: tuple[str, str, str] | None
    ) -> CloudError | None:
        """What the failure is called, noted wherever it concerns the next purchase. None: another offering may do."""
        fault = broken.error
        code, message = (fault.code, fault.message) if fault is not None else ("", "")
        step, said = broken.command or "its making", in_words(code, message)
        _log.warning(
            "a machine could not be completed and is removed", server=server.name, step=broken.command, error=said
        )
        told = f"machine {server.name} failed in {step}: {said}"
        match meaning(code, message):
            case Meaning.CAPACITY:
                if key is not None:
                    self._shortages.add((key,))
                return None
            case Meaning.QUOTA:
                return self._hold.begin(QuotaExceeded(told))
            case Meaning.CONFIG:
                return self._readiness.refused(node_class, f"{said}, in {step}")
            case Meaning.FATAL:
                self._readiness.token_refused(said)
                return self._hold.begin(CreateError(told, reason=TOKEN_REFUSED))
            case _:
                return CreateError(told)

    async def _remove(self, server: Server) -> None:
        """Until it is gone: its name is needed again. What fails here is the caller's; the next purchase looks again."""
        self._deletions.asked(server.id)
        try:
            action = await self._cloud.delete_server(server.id)
        except Refused as error:
            if error.code == "not_found":
                return
            raise
        try:
            await self._actions.ended([action])
        except StillRunning:
            raise CreateError(f"machine {server.name} failed and is still being removed", reason=NAME_TAKEN) from None


def _key(server: Server) -> tuple[str, str, str] | None:
    if server.server_type is None or server.location is None:
        return None
    return (server.server_type.name, server.location.name, names.ON_DEMAND)
