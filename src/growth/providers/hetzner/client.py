"""Calls of Hetzner's API: one method a call, lists read whole, actions in batches.

A list that changes while its pages are read may show a thing twice or not at all. Where every entry counts (`servers`)
the number that the vendor states must be met by distinct entries, or the list is read again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from growth.providers.hetzner import failures, wire
from growth.providers.hetzner.failures import Meaning
from growth.providers.http import Client, Dialect, Problem, Refused, Unanswered

P = TypeVar("P", bound="_Paged")

ENDPOINT: Final = "https://api.hetzner.cloud/v1"
PER_PAGE: Final = 50
# As the vendor's own client asks.
ACTIONS_AT_ONCE: Final = 25
# No account has more: a list that does not end is broken.
MOST_PAGES: Final = 2000
# How often a list is read that changed while it was.
READINGS: Final = 3


class _Paged(Protocol):
    @property
    def meta(self) -> wire.Meta: ...


def problem(body: bytes) -> Problem | None:
    """What an error of the vendor's says; None where the body is none."""
    try:
        failure = msgspec.json.decode(body, type=wire.Envelope).error
    except msgspec.DecodeError:
        return None
    details = failure.details if isinstance(failure.details, dict) else {}
    return Problem(code=failure.code, message=failure.message, details=details)


def transient(refused: Refused) -> bool:
    """By the code; where there is none, something in between answered: by the status."""
    if refused.code:
        return failures.meaning(refused.code, refused.message) is Meaning.TRANSIENT
    return refused.status in {408, 425, 429, 500, 502, 503, 504}


DIALECT: Final = Dialect(name="hetzner", problem=problem, transient=transient)


class HetznerApi:
    """Raises `growth.providers.http.CallError`. The name of a machine can be given only once: its purchase may be repeated."""

    def __init__(self, client: Client) -> None:
        self.client = client

    # Machines.

    async def servers(self, *, labels: str) -> Sequence[wire.Server]:
        """All that the selector finds, each once."""
        for _ in range(READINGS):
            pages = await self._pages("/servers", wire.Servers, [("label_selector", labels)])
            found = {server.id: server for page in pages for server in page.servers}
            stated = [page.meta.pagination.total_entries for page in pages]
            if len(set(stated)) <= 1 and (stated[0] is None or stated[0] == len(found)):
                return tuple(found.values())
        raise Unanswered("GET /servers: the list changed whenever it was read")

    async def server_named(self, name: str) -> wire.Server | None:
        answer = await self.client.call("GET", "/servers", wire.Servers, query=[("name", name)])
        return next((server for server in answer.servers if server.name == name), None)

    async def server(self, number: int) -> wire.Server:
        return (await self.client.call("GET", f"/servers/{number}", wire.OneServer)).server

    async def create_server(self, body: Mapping[str, Any]) -> wire.Created:
        return await self.client.call("POST", "/servers", wire.Created, body=body, repeatable=True)

    async def delete_server(self, number: int) -> wire.Action | None:
        return (await self.client.call("DELETE", f"/servers/{number}", wire.OneAction)).action

    async def enable_backup(self, number: int) -> wire.Action | None:
        """Of a machine that has backups this changes nothing."""
        path = f"/servers/{number}/actions/enable_backup"
        return (await self.client.call("POST", path, wire.OneAction, repeatable=True)).action

    async def actions_of(self, number: int) -> Sequence[wire.Action]:
        pages = await self._pages(f"/servers/{number}/actions", wire.Actions, [("sort", "id:desc")])
        return tuple(action for page in pages for action in page.actions)

    async def actions(self, numbers: Iterable[int]) -> Sequence[wire.Action]:
        """Those that the vendor still knows."""
        wanted = sorted(set(numbers))
        found: list[wire.Action] = []
        for at in range(0, len(wanted), ACTIONS_AT_ONCE):
            query = [("id", str(number)) for number in wanted[at : at + ACTIONS_AT_ONCE]]
            answer = await self.client.call(
                "GET", "/actions", wire.Actions, query=[*query, ("per_page", str(PER_PAGE))]
            )
            found += answer.actions
        return found

    # What is sold.

    async def server_types(self) -> Sequence[wire.ServerType]:
        pages = await self._pages("/server_types", wire.ServerTypes)
        return tuple(kind for page in pages for kind in page.server_types)

    async def locations(self) -> Sequence[wire.Location]:
        pages = await self._pages("/locations", wire.Locations)
        return tuple(place for page in pages for place in page.locations)

    async def pricing(self) -> wire.Pricing:
        return (await self.client.call("GET", "/pricing", wire.Prices)).pricing

    # What machines are made with.

    async def images(self, query: Sequence[tuple[str, str]]) -> Sequence[wire.Image]:
        pages = await self._pages("/images", wire.Images, query)
        return tuple(image for page in pages for image in page.images)

    async def networks(self, query: Sequence[tuple[str, str]] = ()) -> Sequence[wire.Network]:
        return tuple(each for page in await self._pages("/networks", wire.Networks, query) for each in page.networks)

    async def firewalls(self, query: Sequence[tuple[str, str]] = ()) -> Sequence[wire.Named]:
        pages = await self._pages("/firewalls", wire.Firewalls, query)
        return tuple(each for page in pages for each in page.firewalls)

    async def ssh_keys(self, query: Sequence[tuple[str, str]] = ()) -> Sequence[wire.Named]:
        return tuple(each for page in await self._pages("/ssh_keys", wire.Keys, query) for each in page.ssh_keys)

    # Placement groups.

    async def placement_groups(self, *, labels: str) -> Sequence[wire.PlacementGroup]:
        pages = await self._pages("/placement_groups", wire.PlacementGroups, [("label_selector", labels)])
        return tuple({group.id: group for page in pages for group in page.placement_groups}.values())

    async def create_placement_group(self, name: str, *, labels: Mapping[str, str]) -> wire.PlacementGroup:
        body = {"name": name, "type": "spread", "labels": dict(labels)}
        answer = await self.client.call("POST", "/placement_groups", wire.OnePlacementGroup, body=body, repeatable=True)
        return answer.placement_group

    async def delete_placement_group(self, number: int) -> None:
        await self.client.call("DELETE", f"/placement_groups/{number}", dict)

    async def _pages(self, path: str, kind: type[P], query: Sequence[tuple[str, str]] = ()) -> list[P]:
        found: list[P] = []
        page = 1
        while True:
            answer = await self.client.call(
                "GET", path, kind, query=[*query, ("page", str(page)), ("per_page", str(PER_PAGE))]
            )
            found.append(answer)
            next_page = answer.meta.pagination.next_page
            if next_page is None:
                return found
            if next_page <= page or page >= MOST_PAGES:
                raise Unanswered(f"GET {path}: the list does not end")
            page = next_page
