"""The fake over HTTP on loopback, without TLS. The API is below /v1, as the vendor's; what only a fake has is below /fake.

GET  /fake/machines                      every server with its user data, which the API never shows
GET  /fake/ledger                        what was bought, from when to when, and what it costs so far
GET  /fake/calls                         the last requests and how they ended
PUT  /fake/stock   {"cx33@fsn1": 2}      how many can be bought from now on; null: as many as anybody wants
PUT  /fake/faults  {"late-failure": 0.1} all rates; what is not named is 0
PUT  /fake/token   {"readonly": true}    whether the token may only read
POST /fake/spend   {"calls": 3000}       somebody else uses the account's calls
"""

import contextlib
from collections.abc import AsyncIterator

import msgspec

from growth.api.kinds import Json
from growth.sim.clouds import serving as frame
from growth.sim.clouds.hetzner.fake import PREFIX, HetznerFake
from growth.sim.clouds.hetzner.faults import parse_faults, parse_stock
from growth.sim.clouds.hetzner.wire import text_time


@contextlib.asynccontextmanager
async def serving(fake: HetznerFake, *, port: int = 0) -> AsyncIterator[str]:
    """Serves while the block runs; gives the address of the API, with /v1. Port 0 takes any free one."""

    def control(method: str, path: str, body: Json) -> tuple[int, Json]:
        return _controlled(fake, method, path, body)

    async with frame.serving(fake, control, base=PREFIX, port=port) as url:
        yield url


def _controlled(fake: HetznerFake, method: str, path: str, body: Json) -> tuple[int, Json]:
    match method, path:
        case "GET", "machines":
            return 200, {"machines": machines(fake)}
        case "GET", "ledger":
            return 200, ledger(fake)
        case "GET", "calls":
            return 200, {"calls": [msgspec.to_builtins(each) for each in fake.calls]}
        case "PUT", "stock":
            for place, number in body.items():
                ((kind, location),) = parse_stock(f"{place}=0")
                fake.market.stock(kind, location, number)
        case "PUT", "faults":
            fake.faults = parse_faults(",".join(f"{name}={rate}" for name, rate in body.items()))
        case "PUT", "token":
            fake.readonly = bool(body.get("readonly"))
        case "POST", "spend":
            fake.spend(int(body.get("calls", 0)))
        case _:
            return frame.NOTHING_THERE
    return 200, {}


def machines(fake: HetznerFake) -> list[Json]:
    """What a machine knows of itself."""
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
        for server in fake.machines()
    ]


def ledger(fake: HetznerFake) -> Json:
    """The purchases and their sum."""
    books, now = fake.ledger, fake.project.now
    return {
        "purchases": [
            {
                "server": each.server,
                "name": each.name,
                "serverType": each.type,
                "location": each.location,
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
