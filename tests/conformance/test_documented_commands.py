"""Every command in the README and the docs works as it stands there.

Each line of each `sh` block is run by bash: kubectl and growth against a cluster in process, programs that run until they are
told to stop until they say that they do their work. What takes hours is run with smaller numbers (`SHORTER`), and nothing else
is changed. A page with commands in a block that is not `sh` fails, and so does one whose commands fail.
"""

import asyncio
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import yaml

import growth
from growth.kube.memory import MemoryServer
from growth.kube.memory.serve import serving, write_kubeconfig
from growth.ports import SystemClock, SystemRandom

ROOT = pathlib.Path(growth.__file__).parents[2]
BIN = pathlib.Path(sys.prefix) / "bin"
PATIENCE_SECONDS = 600.0  # a loaded machine starts a large program slowly
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(growth|kubectl|make|python) ")

# Pages whose cluster has nothing in it yet. The others' is the demo's.
BARE = {"run.md", "hetzner.md", "linode.md", "providers.md"}
# Pages whose commands name objects of an example of their own, and the test that runs them there.
ELSEWHERE = dict.fromkeys(("explain.md", "whatif.md"), ROOT / "tests/unit/test_explain_page.py")
# What would take hours, and with what it is shorter; nothing else of a command is changed.
SHORTER = (
    (re.compile(r"--seeds 0-299\b"), "--seeds 0-1"),
    (re.compile(r"--seeds 1000\b"), "--seeds 1"),
    (re.compile(r"--hours 8\b"), "--hours 0.5"),
    (re.compile(r"^growth simulate((?!.*--hours).*)$"), r"growth simulate shop.yaml\1 --hours 0.5"),
    (re.compile(r"(HCLOUD|LINODE)_TOKEN=…"), rf"\1_TOKEN={'t' * 64}"),
    (re.compile(r"^(python -m bench day)$"), r"\1 --seconds 60"),
    (
        re.compile(r"^(python -m bench trace)$"),
        r"\1 --help",
    ),  # a recorded day, from a file that is not ours to keep here
    (re.compile(r"--duration 60s"), "--duration 5s"),
    (re.compile(r"^make test$"), "make --dry-run test"),  # it is what runs this
    (re.compile(r"--port 802[12]\b"), "--port 0"),
    (re.compile(r"=<hash>"), "=abc"),
    # A stand-in for a cloud that is not there; the fake answers any token.
    (re.compile(r"(growth run --provider hetzner)$"), r"\1 --api-endpoint http://127.0.0.1:9/v1"),
    (re.compile(r"(growth run --provider linode (?!.*--api-endpoint).*)$"), r"\1 --api-endpoint http://127.0.0.1:9"),
)
# Programs that go on until they are told to stop, and what they say when they work.
LASTING = {
    "growth run": '"event":"(starting|observing)"',
    "growth fake": "127.0.0.1:",
    "growth demo": "growth bought",
    "make demo": "growth bought",
}


def commands(text: str) -> list[str]:
    """The commands of a page, one after the other, without their comments; a here-document belongs to its command."""
    found: list[str] = []
    for language, body in BLOCK.findall(text):
        if language != "sh":
            assert not any(COMMAND.match(line) for line in body.splitlines()), (
                f"a command outside of a sh block:\n{body}"
            )
            continue
        ending = ""
        for line in body.splitlines():
            if ending:
                found[-1] += f"\n{line}"
                ending = "" if line == ending else ending
                continue
            started = re.search(r"<<'(\w+)'$", line)
            ending = started[1] if started else ""
            bare = re.sub(r"\s+#.*$", "", line).strip()
            if bare and not bare.startswith("#"):
                found.append(bare)
    return found


def shorter(command: str) -> str:
    for pattern, text in SHORTER:
        command = pattern.sub(text, command)
    return command


@contextlib.contextmanager
def bare_cluster(home: pathlib.Path) -> Iterator[pathlib.Path]:
    """An API server without anything in it; the kubeconfig."""
    config = home / "bare"
    up, over = threading.Event(), threading.Event()

    async def main() -> None:
        async with serving(MemoryServer(SystemClock(), SystemRandom())) as url:
            write_kubeconfig(config, url)
            up.set()
            while not over.is_set():  # noqa: ASYNC110 - the other side is another thread
                await asyncio.sleep(0.1)

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        assert up.wait(PATIENCE_SECONDS)
        yield config
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """The demo's cluster, with machines in it; the kubeconfig."""
    home = tmp_path_factory.mktemp("demo")
    said = home / "said"
    with said.open("w") as file:
        process = subprocess.Popen(
            [str(BIN / "growth"), "demo", "--headless"],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(home)},
        )
    try:
        wait_for(said, "is ready", process)
        yield pathlib.Path(re.findall(r"KUBECONFIG=(\S+)", said.read_text())[0])
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_SECONDS)


def wait_for(file: pathlib.Path, pattern: str, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not re.search(pattern, file.read_text(errors="replace")):
        told = file.read_text(errors="replace")
        assert process.poll() is None, f"it ended without a line like {pattern!r}:\n{told}"
        assert time.monotonic() < end, f"no line like {pattern!r}:\n{told}"
        time.sleep(0.2)


def folder(home: pathlib.Path) -> None:
    """The files that the commands name, made from the pages' own examples."""
    plan = (ROOT / "docs/growth-pools.md").read_text()
    pool = next(body for language, body in BLOCK.findall(plan) if language == "yaml" and "kind: NodePool" in body)
    (home / "pool.yaml").write_text(pool)
    (home / "manifests").mkdir()
    (home / "manifests/pool.yaml").write_text(pool)
    (home / "manifests/pod.yaml").write_text(yaml.safe_dump(POD))
    (home / "cluster.json").write_text(yaml.safe_dump(POD))
    # A small one, that is soon played; the page's own example is tried where scenarios are read.
    (home / "shop.yaml").write_text("workloads: [{kind: burst, name: sale, pods: 3, at: 1m, lasts: 5m}]\n")


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "main", "image": "example", "resources": {"requests": {"cpu": "1"}}}]},
}


def run(command: str, *, home: pathlib.Path, config: pathlib.Path) -> None:
    """Runs it to its end, or until it says that it works."""
    environment = {
        "PATH": f"{BIN}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "HOME": str(home),
        "TMPDIR": str(home),
        "KUBECONFIG": str(config),
        "GROWTH_LISTEN": "127.0.0.1:0",
        "HCLOUD_TOKEN": "t" * 64,
    }
    lasting = next((said for start, said in LASTING.items() if re.search(rf"(^|\s){start}\b", command)), "")
    if "--duration" in command:
        lasting = ""
    where = ROOT if command.startswith(("make", "python")) else home
    out = home / "out"
    with out.open("w") as file:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=where,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        if lasting:
            wait_for(out, lasting, process)
        else:
            assert process.wait(PATIENCE_SECONDS) == 0, f"{command}\n{out.read_text(errors='replace')}"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


WITH_COMMANDS = [page for page in PAGES if commands(page.read_text()) and page.name not in ELSEWHERE]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_the_commands_of_a_page_work(page: pathlib.Path, demo: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """In their order, in one cluster and one folder."""
    folder(tmp_path)
    with contextlib.ExitStack() as stack:
        config = stack.enter_context(bare_cluster(tmp_path)) if page.name in BARE else demo
        if page.name == "providers.md":
            for command in ("growth crds | kubectl apply -f -", "kubectl create namespace growth"):
                run(command, home=tmp_path, config=config)
        if page.name == "removal.md":
            run("kubectl -n growth create configmap growth-collection", home=tmp_path, config=config)
        for command in commands(page.read_text()):
            run(shorter(command), home=tmp_path, config=config)
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.parametrize("page", sorted(ELSEWHERE))
def test_other_pages_have_a_test_of_their_own(page: str) -> None:
    """It reads the page's blocks."""
    assert page.removesuffix(".md") in ELSEWHERE[page].read_text()


def test_the_reader_of_pages_sees_commands() -> None:
    """Comments go, here-documents stay, prose and output are no commands."""
    page = "```sh\nmake demo    # see it\n\n# only words\nkubectl apply -f - <<'END'\nkind: X\nEND\n```\n```\nsome output\n```\n"
    assert commands(page) == ["make demo", "kubectl apply -f - <<'END'\nkind: X\nEND"]
    with pytest.raises(AssertionError, match="outside of a sh block"):
        commands("```\ngrowth demo\n```\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_is_there(page: pathlib.Path) -> None:
    """Every file that a page names in a link exists."""
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
