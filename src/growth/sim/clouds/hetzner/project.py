"""One project: what it holds, and the actions that are under way in it."""

import dataclasses
import datetime as dt
import ipaddress
import itertools
from collections.abc import Iterable
from typing import Final, TypeVar

from growth.sim.clouds.estate import Due, Estate
from growth.sim.clouds.hetzner.market import Market
from growth.sim.clouds.hetzner.objects import (
    FULL_GROUP,
    Action,
    Firewall,
    Image,
    Network,
    PlacementGroup,
    Server,
    SshKey,
)
from growth.sim.clouds.hetzner.wire import Refusal

T = TypeVar("T")

# The numbers of real objects look like that; nobody should mistake a small one for a page or an index.
_FIRST_ID: Final = 4_711_001
# Name: flavour, version. Each for both architectures.
SYSTEM_IMAGES: Final = {
    "debian-12": ("debian", "12"),
    "debian-13": ("debian", "13"),
    "rocky-10": ("rocky", "10"),
    "ubuntu-22.04": ("ubuntu", "22.04"),
    "ubuntu-24.04": ("ubuntu", "24.04"),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an account may hold, as new ones may."""

    servers: int = 1000
    placement_groups: int = 50
    networks: int = 50
    firewalls: int = 50
    ssh_keys: int = 50


class Project(Estate[Server]):
    """`told` hears of servers: bought, running, deleting, gone."""

    def __init__(self, *, market: Market, limits: Limits, now: dt.datetime) -> None:
        super().__init__(now=now)
        self.market = market
        self.limits = limits
        self.servers: dict[int, Server] = {}
        self.actions: dict[int, Action] = {}
        self.images: dict[int, Image] = {}
        self.ssh_keys: dict[int, SshKey] = {}
        self.placement_groups: dict[int, PlacementGroup] = {}
        self.networks: dict[int, Network] = {}
        self.firewalls: dict[int, Firewall] = {}
        self._ids = itertools.count(_FIRST_ID)
        self._addresses = itertools.count(1)
        for name, (flavor, version) in SYSTEM_IMAGES.items():
            for arm in (False, True):
                self.add_image(
                    name=name,
                    description=f"{flavor} {version}",
                    type_="system",
                    arm=arm,
                    flavor=flavor,
                    version=version,
                )

    def new_id(self) -> int:
        return next(self._ids)

    def act(
        self,
        command: str,
        resources: Iterable[tuple[str, int]],
        *,
        begins: dt.datetime | None = None,
        seconds: float | None,
        error: tuple[str, str] | None = None,
        then: Due | None = None,
    ) -> Action:
        """A new action. `then` follows where it ends well; `seconds` None: it never ends."""
        begins = begins or self.now
        ends = None if seconds is None else begins + dt.timedelta(seconds=seconds)
        action = Action(
            id=self.new_id(),
            command=command,
            started=self.now,
            begins=begins,
            ends=ends,
            resources=list(resources),
            error=error,
        )
        self.actions[action.id] = action

        def end(at: dt.datetime) -> None:
            if not action.running:
                return
            action.finished = at
            action.failed = action.error is not None
            if then is not None and not action.failed:
                then(at)

        if ends is not None:
            self.later(ends, end)
        return action

    def validate(self) -> None:
        names = [server.name for server in self.servers.values()]
        assert len(set(names)) == len(names), "a name was given twice"
        standing = {each.server for each in self.ledger.standing}
        assert standing == set(self.servers), "the ledger knows other servers than the project"
        for group in self.placement_groups.values():
            assert len(group.servers) <= FULL_GROUP, f"{group.name} is overfull"
            assert all(self.servers[number].group is group for number in group.servers), f"{group.name} is not theirs"
        for network in self.networks.values():
            assert len(set(network.members.values())) == len(network.members), f"an address of {network.name} twice"
            assert set(network.members) <= set(self.servers), f"{network.name} holds a server that is gone"
        for firewall in self.firewalls.values():
            assert set(firewall.servers) <= set(self.servers), f"{firewall.name} guards a server that is gone"

    def fail(self, action: Action, code: str, message: str) -> None:
        """Ends a running action badly, now."""
        if action.running:
            action.finished, action.failed, action.error = self.now, True, (code, message)

    # What a person or a test puts into the project.

    def add_image(
        self,
        *,
        name: str | None = None,
        description: str = "",
        type_: str = "snapshot",
        arm: bool = False,
        size_gb: int = 5,
        flavor: str = "ubuntu",
        version: str | None = None,
        labels: dict[str, str] | None = None,
        status: str = "available",
    ) -> Image:
        image = Image(
            id=self.new_id(),
            name=name,
            description=description,
            type=type_,
            arm=arm,
            size_gb=size_gb,
            created=self.now,
            flavor=flavor,
            version=version,
            status=status,
            labels=dict(labels or {}),
        )
        self.images[image.id] = image
        return image

    def address(self) -> int:
        """A number from which a server's public addresses are made."""
        return next(self._addresses)


def admitted(holding: int, limit: int, what: str) -> None:
    """Refuses where the account holds as many as it may."""
    if holding >= limit:
        raise Refusal(403, "resource_limit_exceeded", f"{what} limit exceeded", details={"limits": [{"name": what}]})


def free_address(network: Network, *, network_zone: str) -> str:
    """The first free one of the network's subnets of that zone. The first host of a subnet is its gateway."""
    taken = set(network.members.values())
    for subnet in network.subnets:
        if subnet["network_zone"] != network_zone:
            continue
        for host in itertools.islice(ipaddress.ip_network(subnet["ip_range"]).hosts(), 1, None):
            if str(host) not in taken:
                return str(host)
    raise Refusal(409, "no_subnet_available", "no subnet or IP available for the server within the network")
