"""A cluster read once for `growth plan`: pages, kinds that are not served, lists that must be begun again."""

import asyncio
from typing import Any, cast

import pytest

from growth.api.decoding import convert
from growth.api.karpenter import NODE_POOL
from growth.api.kinds import Kind
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.cli import live
from growth.cli.manifests.collection import Collection
from growth.kube.api import Api, Page
from growth.kube.errors import Forbidden, Gone, NotFound
from tests.manifests import node_pool, pod


class Server:
    """Answers lists of one object a page; `failing` are errors that come first, by kind and page."""

    def __init__(self, objects: dict[Kind[Any], list[Any]], *, serves_ours: bool = True) -> None:
        self._objects = objects
        self._serves_ours = serves_ours
        self.failing: list[tuple[Kind[Any], str, Exception]] = []
        self.calls: list[tuple[str, str]] = []

    async def list(self, kind: Kind[Any], *, limit: int, page: str, **_: Any) -> Page[Any]:
        await asyncio.sleep(0)
        self.calls.append((str(kind), page))
        for index, (which, at, error) in enumerate(self.failing):
            if (which, at) == (kind, page):
                del self.failing[index]
                raise error
        if kind in live.OPTIONAL and not self._serves_ours:
            raise NotFound("the server could not find the requested resource")
        items = self._objects.get(kind, [])
        start = int(page or 0)
        following = str(start + 1) if start + 1 < len(items) else ""
        return Page(items=tuple(items[start : start + 1]), revision="1", next=following)


PODS = [convert(pod(f"p-{number}"), POD.type) for number in range(3)]


def read(server: Server) -> tuple[Collection, list[str]]:
    collection = Collection()
    missing = asyncio.run(live.read_from(cast("Api", server), collection))
    return collection, missing


def names(collection: Collection) -> list[str]:
    return [each.name for each in collection.finished(expand=False).objects.pods]


def test_every_page_is_read() -> None:
    """Of every kind that matters."""
    collection, missing = read(Server({POD: PODS, NODE_POOL: [convert(node_pool(), NODE_POOL.type)]}))
    assert names(collection) == ["p-0", "p-1", "p-2"]
    assert len(collection.pools) == 1
    assert missing == []


def test_kinds_that_are_not_installed_are_named() -> None:
    """A cluster without Karpenter's kinds or ours can be planned for all the same."""
    collection, missing = read(Server({POD: PODS}, serves_ours=False))
    assert names(collection) == ["p-0", "p-1", "p-2"]
    assert missing == [str(kind) for kind in live.OPTIONAL]


def test_a_kind_that_every_cluster_has_must_be_there() -> None:
    """Otherwise it is no cluster, and a plan would be wrong."""
    server = Server({POD: PODS})
    server.failing = [(NODE, "", NotFound("the server could not find the requested resource"))]
    with pytest.raises(NotFound):
        read(server)


def test_a_list_whose_pages_expired_is_begun_again() -> None:
    """Without counting anything twice; a server that never keeps them long enough is a failure."""
    server = Server({POD: PODS})
    server.failing = [(POD, "2", Gone("too old"))]
    collection, _ = read(server)
    assert names(collection) == ["p-0", "p-1", "p-2"]
    assert [page for kind, page in server.calls if kind == "pods"] == ["", "1", "2", "", "1", "2"]
    server.failing = [(POD, "1", Gone("too old"))] * live.ATTEMPTS
    with pytest.raises(Gone):
        read(server)


def test_a_missing_right_is_said_with_what_to_do() -> None:
    """Which resource, and the way around."""
    server = Server({})
    server.failing = [(NODE, "", Forbidden('nodes is forbidden: User "x" cannot list resource "nodes"'))]
    with pytest.raises(Forbidden, match=r"cannot list .*; Growth reads nodes: grant list on it .*, or .* -f"):
        read(server)
