"""The fake over HTTP on loopback, without TLS. The API is below /v1, as the vendor's."""

from contextlib import AbstractAsyncContextManager

from growth.api.kinds import Json
from growth.sim.clouds import serving as shared
from growth.sim.clouds.hetzner.fake import PREFIX, HetznerFake
from growth.sim.clouds.hetzner.faults import parse_faults, parse_stock
from growth.sim.clouds.hetzner.wire import text_time
from growth.sim.clouds.ledger import Purchase


def serving(fake: HetznerFake, *, port: int = 0) -> AbstractAsyncContextManager[str]:
    """Serves while the block runs; gives the address of the API, with /v1. Port 0 takes any free one."""
    return shared.serving(_Control(fake), base=PREFIX, port=port)


class _Control(shared.Control[HetznerFake]):
    def machines(self) -> list[Json]:
        return [
            {
                "id": server.id,
                "name": server.name,
                "serverType": server.type.name,
                "location": server.location,
                "status": server.status,
                "runningSince": text_time(server.running_since),
                "cores": server.type.cores,
                "memoryGB": server.type.memory_gb,
                "diskGB": server.type.disk_gb,
                "architecture": server.type.architecture,
                "addresses": [*server.networks.values(), *([server.ipv4] if server.ipv4 else [])],
                "labels": dict(server.labels),
                "userData": server.user_data,
            }
            for server in self.fake.machines()
        ]

    def purchase(self, each: Purchase) -> Json:
        return {
            "server": each.server,
            "name": each.name,
            "serverType": each.type,
            "location": each.location,
            "bought": text_time(each.bought),
            "ended": text_time(each.ended),
        }

    def stock(self, place: str, number: int | None) -> None:
        ((kind, location),) = parse_stock(f"{place}=0")
        self.fake.market.stock(kind, location, number)

    def faults(self, text: str) -> None:
        self.fake.faults = parse_faults(text)
