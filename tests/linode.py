"""Builders for tests of Linode's cloud: the fake, and the vendor's own client on it."""

import contextlib
from collections.abc import Iterator

import linode_api4

from growth.sim.clouds.linode import FakeSettings, LinodeFake
from growth.sim.clouds.linode.serving import serving
from growth.sim.ports import SimRandom
from tests.hetzner import Ticking, on_a_thread

TOKEN = "9f3b6c2e7a51d804b7e6f1c3a2958d70e4bb1f6a7c8d9e0f1a2b3c4d5e6f7a8b"


def new_fake(*, tick: float = 0.0, settings: FakeSettings | None = None, seed: int = 1) -> tuple[LinodeFake, Ticking]:
    clock = Ticking(tick=tick)
    return LinodeFake(clock=clock, random=SimRandom(seed, "linode"), settings=settings), clock


@contextlib.contextmanager
def vendors_client(fake: LinodeFake, *, token: str = TOKEN) -> Iterator[linode_api4.LinodeClient]:
    """Linode's own client on the fake, which it reaches over HTTP. It repeats calls by itself: here at once."""
    with on_a_thread(lambda: serving(fake)) as url:
        client = linode_api4.LinodeClient(token, base_url=url, retry_rate_limit_interval=0.01)
        try:
            yield client
        finally:
            client.session.close()
