"""The fake over HTTP on loopback, without TLS. The API is below /v4 and /v4beta, as the vendor's."""

from contextlib import AbstractAsyncContextManager

from growth.api.kinds import Json
from growth.sim.clouds import serving as shared
from growth.sim.clouds.ledger import Purchase
from growth.sim.clouds.linode.fake import BETA, LinodeFake
from growth.sim.clouds.linode.faults import parse_faults, parse_stock
from growth.sim.clouds.linode.wire import text_time


def serving(fake: LinodeFake, *, port: int = 0) -> AbstractAsyncContextManager[str]:
    """Serves while the block runs; gives the address of the API, with /v4beta. Port 0 takes any free one."""
    return shared.serving(_Control(fake), base=BETA, port=port)


class _Control(shared.Control[LinodeFake]):
    def machines(self) -> list[Json]:
        return [
            {
                "id": instance.id,
                "label": instance.label,
                "type": instance.kind.id,
                "region": instance.region,
                "status": instance.status,
                "runningSince": text_time(instance.running_since),
                "pool": instance.pool,
                "tags": list(instance.tags),
                "userData": instance.user_data,
            }
            for instance in self.fake.machines()
        ]

    def purchase(self, each: Purchase) -> Json:
        return {
            "instance": each.server,
            "label": each.name,
            "type": each.type,
            "region": each.location,
            "bought": text_time(each.bought),
            "ended": text_time(each.ended),
        }

    def stock(self, place: str, number: int | None) -> None:
        ((kind, region),) = parse_stock(f"{place}=0")
        self.fake.market.stock(kind, region, number)

    def faults(self, text: str) -> None:
        self.fake.faults = parse_faults(text)
