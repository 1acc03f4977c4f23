"""Laws of history that a server no longer keeps. They have a file, and a real server, of their own."""

import asyncio

from growth.kube.errors import Gone
from tests.conformance.kinds import CONFIG_MAP
from tests.conformance.test_watches import now
from tests.conformance.world import PATIENCE_SECONDS, World, name_of, refused


async def test_a_watch_of_a_forgotten_revision_is_gone(forgetful: World) -> None:
    """A revision that the server no longer keeps is Gone: list again."""
    start = await now(forgetful)
    for _ in range(3):
        await forgetful.config_map()
    await forgetful.compact()

    async def watch() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), forgetful.api.watch(CONFIG_MAP, revision=start) as stream:
            async for event in stream:
                raise AssertionError(f"told {event.type} {name_of(event.object)}")

    error = await refused(Gone, watch())
    assert error.code == 410


async def test_pages_expire_when_history_is_forgotten(forgetful: World) -> None:
    """A page of a moment that the server no longer keeps is Gone: the list begins anew."""
    for name in ("a", "b", "c"):
        await forgetful.config_map(name=name)
    first = await forgetful.api.list(CONFIG_MAP, namespace=forgetful.namespace, limit=1)
    await asyncio.gather(*(forgetful.config_map() for _ in range(5)))
    await forgetful.compact()
    error = await refused(
        Gone, forgetful.api.list(CONFIG_MAP, namespace=forgetful.namespace, limit=1, page=first.next), reason="Expired"
    )
    assert error.code == 410
