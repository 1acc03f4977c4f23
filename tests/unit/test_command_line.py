"""The command line: help for a newcomer, one line for an error, exit codes for scripts."""

import importlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest
import yaml

import growth
from growth.cli import entry
from growth.cli.commands import COMMANDS, overview
from growth.cli.entry import run
from growth.kube.errors import ConfigError, Forbidden

GROWTH = pathlib.Path(sys.prefix) / "bin" / "growth"
HEAVY = {
    "cyclopts",
    "rich",
    "numpy",
    "aiohttp",
    "highspy",
    "textual",
    "kubernetes_asyncio",
    "msgspec",
    "structlog",
    "asyncio",
    "yaml",
}


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """The developer's own cluster is not asked."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "GROWTH_DEBUG"):
        monkeypatch.delenv(name, raising=False)


def kubeconfig(folder: pathlib.Path, server: str) -> str:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": "hunter2-hunter2"}}],
    }
    path.write_text(json.dumps(config))
    return str(path)


def names(text: str) -> list[str]:
    return [document["metadata"]["name"] for document in yaml.safe_load_all(text)]


def test_help_says_what_growth_is_and_where_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    """With `--help`, and without any argument; each command has its own."""
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "node autoscaler for Kubernetes" in shown
    assert "Begin with `growth demo`" in shown
    for command in ("demo", "crds"):
        assert command in shown
    assert run([]) == 0
    assert capsys.readouterr().out == shown
    assert run(["crds", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "kubectl apply -f -" in shown
    assert "--kubeconfig" in shown


def test_the_version_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """For scripts."""
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"{growth.__version__}\n"


def loaded_by(*arguments: str) -> set[str]:
    """The packages that a command line has imported when it ends."""
    program = (
        f"import sys; sys.argv = {['growth', *arguments]!r}\n"
        "from growth.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_imports_nothing_heavy() -> None:
    """`growth --help` starts at once because what commands need is imported when they run."""
    loaded = loaded_by("--help")
    assert "growth" in loaded
    assert loaded & HEAVY == set()


def test_the_overview_says_what_the_commands_say() -> None:
    """Each command's line is the first of its own help, and every command is in the list."""
    width = max(map(len, COMMANDS))
    for name, command in COMMANDS.items():
        module, _, function = command.place.partition(":")
        work = getattr(importlib.import_module(module), function)
        assert work.__name__ == name
        assert (work.__doc__ or "").splitlines()[0] == command.purpose
        assert f"  {name:<{width}}  {command.purpose}" in overview()


def test_a_commands_own_help_does_not_load_what_it_needs_to_run() -> None:
    """`growth crds --help` needs the parser and no more."""
    assert loaded_by("crds", "--help") & (HEAVY - {"cyclopts", "rich"}) == set()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--speed", "0"], "growth: --speed 0: give a number from 0.1 to 50"),
        (["--duration", "soon"], "growth: --duration: 'soon' is not a duration"),
        (["--duration", "0s"], "growth: --duration 0s: give a time such as 60s"),
    ],
)
def test_the_demo_says_what_it_cannot_do(capsys: pytest.CaptureFixture[str], arguments: list[str], line: str) -> None:
    """One line, exit code 2, and no cluster is begun."""
    assert run(["demo", "--headless", *arguments]) == 2
    assert capsys.readouterr().err.startswith(line)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["crd"], 'growth: unknown command "crd". Did you mean "crds"?'),
        (["crds", "--grup", "x"], "growth: unknown option: --grup. Did you mean --group? `growth crds --help`"),
        (["crds", "--group"], "--group requires an argument; `growth crds --help` shows what there is"),
        (["crds", "-o", "xml"], 'growth: invalid value "xml" for -o. Choose from: "yaml", "json", "table";'),
        (
            ["run", "--lke-orphan-ttl", "5m", "--lke-orphan-ttl", "6m"],
            "--lke-orphan-ttl specified multiple times; `growth run",
        ),
        (["plan", "-f"], "growth: -f names no file; give a file, a folder, or - for standard input"),
        (["demo", "now"], "growth: 'now' is more than the command takes; `growth demo --help` shows what there is"),
        (["--kubeconfig", "x"], "growth: --kubeconfig x stands alone; name a command"),
        (["--nothing"], "growth: unknown"),
        (
            ["crds", "--group", "nope"],
            "growth: --group nope is unknown; choose one of autoscaling.x-k8s.io, growth.dev",
        ),
        (["crds", "--kubeconfig", "/no/such"], "growth: the kubeconfig /no/such does not exist: correct --kubeconfig"),
        (["--kubeconfig=/no/such", "crds"], "growth: the kubeconfig /no/such does not exist"),
        (["--context", "x", "--kubeconfig", "/no/such", "crds"], "growth: the kubeconfig /no/such does not exist"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was wrong, and what to do; nothing on stdout, no traceback."""
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("growth: ")
    assert line in shown.err


def failing(error: BaseException) -> Callable[[list[str]], None]:
    def call(_: list[str]) -> None:
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (Forbidden("nodes is forbidden:\n  user nobody"), 1, "growth: nodes is forbidden: user nobody\n"),
        (ConfigError("no such context"), 2, "growth: no such context\n"),
        (ExceptionGroup("two", [ExceptionGroup("one", [ConfigError("deep")])]), 2, "growth: deep\n"),
        (FileNotFoundError(2, "No such file or directory", "x.yaml"), 1, "growth: x.yaml: No such file or directory\n"),
        (OSError(28, "No space left on device"), 1, "growth: No space left on device\n"),
        (KeyError("x"), 1, "growth: KeyError: 'x'; this is a defect of Growth: run it again with GROWTH_DEBUG=1"),
        (ValueError("token=hunter2"), 1, "growth: ValueError: token=«redacted»; this is a defect"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_every_error_ends_in_one_line(
    error: BaseException,
    code: int,
    line: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A failure is 1, bad input 2, an interruption 130 and silent; secrets are cut out."""
    monkeypatch.setattr(entry, "_call", failing(error))
    assert run([]) == code
    shown = capsys.readouterr().err
    assert shown.startswith(line)
    assert shown.count("\n") <= 1
    assert "hunter2" not in shown


def test_a_traceback_is_shown_to_those_who_ask(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """GROWTH_DEBUG=1 puts it before the line, without secrets."""
    monkeypatch.setenv("GROWTH_DEBUG", "1")
    monkeypatch.setattr(entry, "_call", failing(ValueError("token=hunter2")))
    assert run([]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert "hunter2" not in shown
    assert shown.splitlines()[-1].startswith("growth: ValueError")


def test_crds_are_printed_as_yaml_json_and_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """The same kinds in every format; a group alone when asked for."""
    assert run(["crds", "--group", "all"]) == 0
    everything = names(capsys.readouterr().out)
    assert {"nodepools.karpenter.sh", "growthpools.growth.dev"} <= set(everything)
    assert run(["crds", "--group", "all", "-o", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [item["metadata"]["name"] for item in listed["items"]] == everything
    assert listed["kind"] == "List"
    assert run(["crds", "--group", "all", "-o", "table"]) == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split() == ["NAME", "KIND", "VERSIONS", "SCOPE"]
    assert [row.split()[0] for row in rows] == everything
    assert run(["crds", "--group", "growth.dev"]) == 0
    ours = names(capsys.readouterr().out)
    assert ours == [name for name in everything if name.endswith(".growth.dev")]


def test_yaml_has_no_anchors(capsys: pytest.CaptureFixture[str]) -> None:
    """What two places share is written out twice, for readers and for tools that know no anchors."""
    run(["crds", "--group", "all"])
    assert not [line for line in capsys.readouterr().out.splitlines() if line.rstrip().endswith((" &id001", " *id001"))]


def test_without_a_cluster_everything_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    """No kubeconfig, and one whose server is away: a note on stderr, and no failure."""
    assert run(["crds"]) == 0
    shown = capsys.readouterr()
    everything = names(shown.out)
    assert shown.err.startswith("growth: every kind is printed, without a look at what the cluster has: no cluster is")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert run(["crds", "--kubeconfig", kubeconfig(tmp_path, f"http://127.0.0.1:{port}")]) == 0
    shown = capsys.readouterr()
    assert names(shown.out) == everything
    assert shown.err.startswith("growth: every kind is printed, without a look at what the cluster has: ")
    assert shown.err.count("\n") == 1


def test_a_silent_server_does_not_keep_anybody_waiting(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """After the deadline everything is printed."""
    monkeypatch.setattr("growth.cli.crds.CLUSTER_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert run(["crds", "--kubeconfig", kubeconfig(tmp_path, address)]) == 0
    shown = capsys.readouterr()
    assert "nodepools.karpenter.sh" in names(shown.out)
    assert "without a look at what the cluster has" in shown.err


def heed_interruptions() -> None:
    """A shell that runs the tests in the background ignores Ctrl-C, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interruption_is_quiet(tmp_path: pathlib.Path) -> None:
    """Ctrl-C while a server is being asked: exit code 130 and not a word."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = kubeconfig(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        command = [str(GROWTH), "crds", "--kubeconfig", config]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=heed_interruptions,  # noqa: PLW1509 - one call, and no thread holds a lock that it needs
        ) as process:
            silent.settimeout(60)  # a command that ends early fails the test instead of stopping it
            connection, _ = silent.accept()
            with connection:
                process.send_signal(signal.SIGINT)
                out, err = process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_reader_who_leaves_is_not_complained_about() -> None:
    """`growth crds | head -1`: no error, and the exit code of a closed pipe."""
    command = [str(GROWTH), "crds", "--group", "all"]
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"---\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
