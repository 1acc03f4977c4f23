"""The pages about explain and whatif: every command on them runs, and what they show is what is printed."""

import asyncio
import pathlib
import re
import shlex
import shutil
import threading
from collections.abc import Callable, Iterator

import pytest
import yaml

from growth.api.crds import all_crds
from growth.cli.entry import run
from growth.kube.memory import MemoryServer
from growth.kube.memory.api import MemoryApi
from growth.kube.memory.serve import serving, write_kubeconfig
from growth.planning.disruption import words
from growth.planning.explaining import claims, pods, pools
from growth.planning.plan import Filter
from growth.ports import SystemClock, SystemRandom
from growth.sim.world.world import DEFINITION, named

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGES = ("explain.md", "whatif.md")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


COMMANDS = [line for page in PAGES for block in blocks(page, "sh") for line in block.splitlines() if line.strip()]


def shown() -> list[tuple[str, str]]:
    """Commands with what the pages say that they print."""
    found = []
    for page in PAGES:
        for block in blocks(page, "console"):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append((command, output))
    return found


def arguments(line: str) -> list[str]:
    program, *rest = shlex.split(line, comments=True)
    assert program == "growth"
    return rest


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """With the examples in it."""
    for each in (DOCS / "examples").iterdir():
        shutil.copy(each, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cluster(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The small cluster behind an API server, which kubectl would use."""
    ready = threading.Event()
    stops: list[Callable[[], object]] = []
    path = folder / "kubeconfig"

    async def serve() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        stops.append(lambda: loop.call_soon_threadsafe(over.set))
        server = MemoryServer(SystemClock(), SystemRandom())
        api = MemoryApi(server, user="admin")
        for body in all_crds():
            await api.create(DEFINITION, body)
        for body in yaml.safe_load_all((folder / "cluster.yaml").read_text()):
            kind, name, namespace = named(server, body)
            body["metadata"].pop("ownerReferences", None)  # who is not there would take its pods along
            await api.create(kind, body, namespace=namespace)
            if "status" in body and kind.kind in {"Node", "Pod", "NodeClaim"}:
                status = {"status": body["status"]}
                await api.patch(kind, name, status, namespace=namespace, subresource="status")
        async with serving(server) as url:
            write_kubeconfig(path, url)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(10)
    monkeypatch.setenv("KUBECONFIG", str(path))
    yield
    for stop in stops:
        stop()
    thread.join()


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_on_the_pages_runs(line: str, cluster: None, capsys: pytest.CaptureFixture[str]) -> None:
    """In the cluster or in files, as it stands there."""
    assert run(arguments(line)) == 0, capsys.readouterr().err
    assert capsys.readouterr().out


@pytest.mark.parametrize(("command", "output"), shown(), ids=[command for command, _ in shown()])
def test_what_the_pages_show_is_what_is_printed(
    command: str, output: str, folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To the letter."""
    assert run(arguments(command)) == 0
    assert capsys.readouterr().out == output


def test_the_cluster_and_the_files_are_explained_alike(cluster: None, capsys: pytest.CaptureFixture[str]) -> None:
    """A cluster read over the network has the causes that its manifests have."""
    for asked in ("pod web-7c9d-3", "node fsn-b", "nodepool default"):
        assert run(["explain", *asked.split()]) == 0
        live = capsys.readouterr().out.splitlines()[0]
        assert run(["explain", *asked.split(), "-f", "cluster.yaml"]) == 0
        assert live == capsys.readouterr().out.splitlines()[0]


def test_the_page_names_every_cause_that_is_not_said_elsewhere() -> None:
    """Of pods, claims and pools; those of nodes stand in disruption.md."""
    told = set(re.findall(r"`(\w+)`", (DOCS / "explain.md").read_text().partition("## Causes")[2]))
    own = {
        value
        for module in (pods, claims, pools)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str) and name != "NODES"
    }
    assert {*own, *map(str, Filter)} - told == set()
    assert words.DO_NOT_DISRUPT not in told
