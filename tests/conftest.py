"""Fixtures that start real servers. A test that asks for one is marked `plane`."""

import re
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests import needs
from tests.needs import need
from tests.tokens import Ears, listen
from tools.controlplane.plane import Plane
from tools.controlplane.plane import plane as start_plane
from tools.controlplane.programs import folder, missing

# Properties are laws about values, never about time: a busy machine must not fail them. New examples in every run, and
# where `CI=true` the same in each, so that equal code gets an equal verdict; one that fails prints how to see it again.
settings.register_profile(
    "growth",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize=needs.strict(),
)
settings.load_profile("growth")

REAL = frozenset({"control_plane", "apiserver", "plane"})


def pytest_configure(config: pytest.Config) -> None:
    """Where `CI=true` nothing may be skipped."""
    config.pluginmanager.register(needs)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs the real control plane."""
    for item in items:
        if isinstance(item, pytest.Function) and REAL & set(item.fixturenames):
            item.add_marker(pytest.mark.plane)


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test begins with quiet logging of its own: what another set up may write to a stream that is closed by now.

    And none may tell the token of a cloud, not even a part of it, in a log line, an event, an error or a journal.
    """
    ears = Ears()

    def drop(_: object, __: str, line: object) -> str:
        """Simulated days say a lot, and nobody reads it; `capture_logs` puts itself in this place."""
        ears.hear(line)
        raise structlog.DropEvent

    listen(ears, monkeypatch)
    structlog.configure(processors=[drop])
    yield
    structlog.reset_defaults()
    ears.look()
    assert not ears.found, "a token was told"


@pytest.fixture(scope="session")
def control_plane() -> None:
    """The programs are there. For tests that start planes themselves (`tools.controlplane.plane.plane`)."""
    lacking = missing()
    need(not lacking, f"no control plane: {', '.join(lacking)} not in {folder()}; build it with `make plane`")


@pytest.fixture(scope="module")
def apiserver(control_plane: None) -> Iterator[Plane]:
    """A fresh API server with its etcd, and nothing else running."""
    with start_plane() as running:
        yield running


@pytest.fixture(scope="module")
def plane(control_plane: None) -> Iterator[Plane]:
    """A whole plane: API server, controller-manager, scheduler and kwok, with an audit log."""
    with start_plane(scheduler=True, controller_manager=True, kwok=True, audit=True) as running:
        yield running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many laws of conformance hold on each backend, and how many rows of the tables have a mutation that is
    killed. Here and not beside them, because where tests run in several processes the one that reports reads no other
    conftest.
    """
    counts = [dict(each.user_properties).get("mutations") for each in terminalreporter.stats.get("passed", ())]
    tables = [each for each in counts if each]
    if tables:
        rows, mutations = (sum(each) for each in zip(*tables, strict=True))
        terminalreporter.write_line(
            f"mutations: {rows} rows of {len(tables)} tables, {mutations} mutations, all killed"
        )
    held: dict[str, set[str]] = {}
    broken: dict[str, set[str]] = {}
    for outcome, laws in (("passed", held), ("failed", broken)):
        for report in terminalreporter.stats.get(outcome, ()):
            backend = dict(report.user_properties).get("backend")
            if backend:
                laws.setdefault(str(backend), set()).add(re.sub(r"\[.*", "", report.nodeid))
    for backend in sorted({*held, *broken}):
        failing = broken.get(backend, set())
        passing = held.get(backend, set()) - failing
        terminalreporter.write_line(f"conformance: {len(passing)} laws hold on {backend}, {len(failing)} do not")
