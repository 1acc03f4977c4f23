"""The fake over HTTP on loopback, without TLS. The API is below /v4 and /v4beta, as the vendor's; a fake's own is below /fake.

GET  /fake/machines                          every instance with its user data, which the API never shows
GET  /fake/ledger                            what was bought, from when to when, and what it costs so far
GET  /fake/calls                             the last requests and how they ended
PUT  /fake/stock   {"g6-standard-2@us-east": 2}  how many can be bought from now on; null: as many as anybody wants
PUT  /fake/faults  {"late-id": 0.1}          all rates; what is not named is 0
PUT  /fake/token   {"readonly": true}        whether the token may only read
POST /fake/spend   {"calls": 200}            somebody else uses the account's calls
"""

import contextlib
from collections.abc import AsyncIterator

import msgspec

from growth.api.kinds import Json
from growth.sim.clouds import serving as frame
from growth.sim.clouds.linode.fake import BETA, LinodeFake
from growth.sim.clouds.linode.faults import parse_faults, parse_stock
from growth.sim.clouds.linode.wire import text_time


@contextlib.asynccontextmanager
async def serving(fake: LinodeFake, *, port: int = 0) -> AsyncIterator[str]:
    """Serves while the block runs; gives the address of the API, with /v4beta. Port 0 takes any free one."""

    def control(method: str, path: str, body: Json) -> tuple[int, Json]:
        return _controlled(fake, method, path, body)

    async with frame.serving(fake, control, base=BETA, port=port) as url:
        yield url


def _controlled(fake: LinodeFake, method: str, path: str, body: Json) -> tuple[int, Json]:
    match method, path:
        case "GET", "machines":
            return 200, {"machines": machines(fake)}
        case "GET", "ledger":
            return 200, ledger(fake)
        case "GET", "calls":
            return 200, {"calls": [msgspec.to_builtins(each) for each in fake.calls]}
        case "PUT", "stock":
            for place, number in body.items():
                ((kind, region),) = parse_stock(f"{place}=0")
                fake.market.stock(kind, region, number)
        case "PUT", "faults":
            fake.faults = parse_faults(",".join(f"{name}={rate}" for name, rate in body.items()))
        case "PUT", "token":
            fake.readonly = bool(body.get("readonly"))
        case "POST", "spend":
            fake.spend(int(body.get("calls", 0)))
        case _:
            return frame.NOTHING_THERE
    return 200, {}


def machines(fake: LinodeFake) -> list[Json]:
    """What a machine knows of itself."""
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
        for instance in fake.machines()
    ]


def ledger(fake: LinodeFake) -> Json:
    """The purchases and their sum."""
    books, now = fake.ledger, fake.account.now
    return {
        "purchases": [
            {
                "instance": each.server,
                "label": each.name,
                "type": each.type,
                "region": each.location,
                "bought": text_time(each.bought),
                "ended": text_time(each.ended),
                "hours": each.hours(now),
                "cost": f"{each.cost(now):.4f}",
            }
            for each in books.purchases
        ],
        "standing": len(books.standing),
        "hours": books.hours(now),
        "cost": f"{books.cost(now):.4f}",
    }
