"""Lists read whole: many pages are one list, of one revision, or an error."""

import asyncio
from typing import cast

import pytest

from growth.api.core import CONFIG_MAP, ConfigMap
from growth.api.meta import ObjectMeta
from growth.kube.api import Api, Page
from growth.kube.errors import Gone
from growth.kube.whole import PAGE, every


class Forgetful:
    """A server that gives two pages, and forgets their revision before the page that it is told to."""

    def __init__(self, *, forgets: str | None = None) -> None:
        self.asked: list[tuple[int, str]] = []
        self._forgets = forgets

    async def list(self, *_: object, limit: int, page: str, **__: object) -> Page[ConfigMap]:
        self.asked.append((limit, page))
        if page == self._forgets:
            raise Gone("the revision is compacted away")
        both = tuple(ConfigMap(metadata=ObjectMeta(name=name)) for name in ("a", "b"))
        if not limit:
            return Page(both, "2")
        return Page(both[1:], "1") if page else Page(both[:1], "1", "more")


def read(server: Forgetful) -> list[str]:
    return [each.metadata.name for each in asyncio.run(every(cast("Api", server), CONFIG_MAP))]


def test_all_pages_are_one_list() -> None:
    """In the server's order, each once."""
    server = Forgetful()
    assert read(server) == ["a", "b"]
    assert server.asked == [(PAGE, ""), (PAGE, "more")]


def test_a_list_that_is_forgotten_while_it_is_read_is_read_again_in_one_answer() -> None:
    """Nothing of the first reading is kept: it was of another revision."""
    server = Forgetful(forgets="more")
    assert read(server) == ["a", "b"]
    assert server.asked == [(PAGE, ""), (PAGE, "more"), (0, "")]


def test_a_server_that_forgets_at_once_is_an_error() -> None:
    """A part of the list, or none, is never taken for the whole."""
    with pytest.raises(Gone):
        read(Forgetful(forgets=""))
