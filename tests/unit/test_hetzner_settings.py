"""How `growth run` is told of a Hetzner account: address and token, and what is said where they will not do."""

import pathlib
from collections.abc import Mapping

import pytest

from growth.kube.api import ALWAYS_OPEN
from growth.kube.memory import MemoryApi
from growth.kube.memory.server import MemoryServer
from growth.operator.clouds import _token, chosen
from growth.operator.settings import SettingError, read
from growth.ports import Response, SystemClock, SystemRandom
from growth.sim.kernel import Kernel
from growth.sim.ports import SimClock, SimRandom

TOKEN = "wQfFvJ3kpXcY8sLrT2nBzH6mDgA9eUxK"


class Unused:
    """A transport that nobody may ask: nothing is sent before somebody leads."""

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, timeout_seconds: float
    ) -> Response:
        raise AssertionError(url)


def parts(environ: Mapping[str, str], **flags: str) -> list[str]:
    """The names of what runs beside the provider."""
    settings = read({"provider": "hetzner", **flags}, {})
    make = chosen(settings, clock=SystemClock(), random=SystemRandom(), transport=Unused(), environ=environ)
    kernel = Kernel(seed=1)
    api = MemoryApi(MemoryServer(SimClock(kernel), SimRandom(1, "server")), user="growth")
    cloud = make(api, cluster="abc", gate=ALWAYS_OPEN)
    kernel.close()
    return [type(part).__name__ for part in cloud.parts]


def test_the_token_comes_from_the_environment_or_a_file(tmp_path: pathlib.Path) -> None:
    """A line end after it does no harm; with the vendor's own API nobody stands in for kubelets."""
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert parts({"HCLOUD_TOKEN": TOKEN}) == ["Keeper"]
    assert parts({}, tokenFile=str(file)) == ["Keeper"]


def test_a_token_file_is_read_again_when_its_token_is_refused(tmp_path: pathlib.Path) -> None:
    """Whoever exchanges it need not start Growth anew; while it cannot be read the old one stays."""
    file, newer = tmp_path / "token", TOKEN[::-1]
    file.write_text(TOKEN)
    settings = read({"provider": "hetzner", "tokenFile": str(file)}, {})
    kept = _token(settings.process, {}, needed=True)
    file.unlink()
    assert not kept.renewed(TOKEN)
    file.write_text(f"{newer}\n")
    assert kept.reveal() == TOKEN
    assert kept.renewed(TOKEN)
    assert kept.reveal() == newer
    assert not _token(settings.process, {"HCLOUD_TOKEN": TOKEN}, needed=True).renewed(newer)


def test_a_fake_on_this_machine_needs_no_token_and_gets_kubelets() -> None:
    """Its machines cannot boot."""
    assert parts({}, apiEndpoint="http://127.0.0.1:8888/v1") == ["Keeper", "StandIn", "Kubelets"]


@pytest.mark.parametrize(
    ("environ", "flags", "word"),
    [
        ({}, {}, "put it into HCLOUD_TOKEN, or name its file with --token-file"),
        ({"HCLOUD_TOKEN": "two words"}, {}, "variable HCLOUD_TOKEN holds no token"),
        ({"HCLOUD_TOKEN": TOKEN}, {"tokenFile": "/nowhere"}, "--token-file: /nowhere cannot be read"),
        ({"HCLOUD_TOKEN": TOKEN}, {"apiEndpoint": "http://example.com/v1"}, "--api-endpoint: .* in the clear"),
        ({"HCLOUD_TOKEN": TOKEN}, {"apiEndpoint": "https://example.com/api"}, "https://example.com/api .* end in /v1"),
        ({"HCLOUD_TOKEN": TOKEN}, {"apiEndpoint": "example.com"}, "--api-endpoint: .* no address"),
    ],
)
def test_what_will_not_do_is_said_and_the_token_is_not(
    environ: dict[str, str], flags: dict[str, str], word: str
) -> None:
    """What, where, what to do; a token that is wrong is not shown either."""
    with pytest.raises(SettingError, match=word) as told:
        parts(environ, **flags)
    assert not any(value in str(told.value) for value in environ.values())
