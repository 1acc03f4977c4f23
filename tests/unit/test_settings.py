"""The table of settings: one source for flags, variables, values and documentation."""

import dataclasses
import json
import pathlib
import re
import socket

import pytest

import growth
from growth.cli.entry import run
from growth.controllers.settings import DEFAULT_SETTINGS, ControllerSettings
from growth.kube.lease import DEFAULT_LEASE
from growth.operator import logs
from growth.operator.process import home
from growth.operator.settings import (
    DEFAULT_PROCESS,
    SECTIONS,
    TABLE,
    ProcessSettings,
    SettingError,
    read,
    unknown_variables,
)
from growth.operator.settings_page import page
from tests.running import growth_alone

DOCS = pathlib.Path(growth.__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def _logs_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's own logging is not sent elsewhere by a command that is run in its process."""
    monkeypatch.setattr(logs, "configure", lambda **_: None)


def test_without_anything_given_every_value_is_its_default() -> None:
    """The table repeats no default: it has those of the parts that use them."""
    settings = read({}, {})
    assert (settings.process, settings.controllers, settings.lease) == (
        DEFAULT_PROCESS,
        DEFAULT_SETTINGS,
        DEFAULT_LEASE,
    )


def test_every_number_that_controllers_use_can_be_set() -> None:
    """Each field of the controllers' and the process's settings has a row, and each row is somebody's field."""
    fields = {field.name for kind in (ControllerSettings, ProcessSettings) for field in dataclasses.fields(kind)}
    lease = {"lease_duration", "renew_deadline", "retry_period"}
    assert {setting.field for setting in TABLE.values()} == fields | lease
    assert len(TABLE) == sum(len(section.settings) for section in SECTIONS)


def test_flags_beat_variables_and_variables_beat_defaults() -> None:
    """The nearest to the person counts; an empty variable is none."""
    environ = {"GROWTH_BATCH_IDLE": "2s", "GROWTH_MAX_NODES": "7", "GROWTH_PAUSED": "true", "GROWTH_BATCH_MAX": ""}
    settings = read({"batchIdle": "1m30s", "observe": True}, environ).controllers
    assert (settings.batch_idle, settings.max_nodes, settings.paused, settings.observe) == (90.0, 7, True, True)
    assert settings.batch_max == 10.0


def test_a_value_that_is_shown_can_be_given() -> None:
    """What the documentation prints as a default is read back as that default, for every setting that has one."""
    checked = 0
    for setting in TABLE.values():
        shown = setting.value.show(setting.default)
        if shown not in {"none", ""}:
            assert setting.value.read(shown) == setting.default, setting.name
            checked += 1
    assert checked > 35


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("batchIdle", "soon", "--batch-idle: 'soon' is not a duration"),
        ("batchIdle", "-1s", "--batch-idle: '-1s' cannot be used: a time cannot be negative"),
        ("maxNodes", "-1", "--max-nodes: '-1' cannot be used: write a whole number of 0 or more"),
        ("maxHourly", "cheap", "--max-hourly: 'cheap' is not an amount of money"),
        ("maxHourly", "-2", "--max-hourly: '-2' cannot be used: an amount cannot be negative"),
        ("collectionShare", "20%", "--collection-share: '20%' cannot be used: write a number from 0 to 1"),
        ("packer", "best", "--packer: 'best' cannot be used: choose one of first-fit, cost"),
        ("listen", "8080", "--listen: '8080' cannot be used: write HOST:PORT"),
        ("listen", "x:99999", "--listen: 'x:99999' cannot be used: write HOST:PORT"),
        ("decisionsKept", "0", "--decisions-kept: '0' cannot be used: write a whole number of 1 or more"),
        ("drainRetry", "0s", "--drain-retry: '0s' cannot be used: it must be 100ms or more"),
        ("launchTTL", "0s", "--launch-ttl: '0s' cannot be used: it must be 100ms or more"),
        ("retryPeriod", "0s", "--retry-period: '0s' cannot be used: it must be 100ms or more"),
        ("reservationUse", "10m", "--reservation-use: '10m' cannot be used: it must be 30s or less"),
        ("maxPricePercent", "99", "--max-price-percent: '99' cannot be used: write a whole number of 100 or more"),
        ("namespace", "My_Home", "--namespace: 'My_Home' cannot be used: write a namespace"),
        ("leaseDuration", "5s", "the lease duration must be longer than the renew deadline"),
        ("leaseDuration", "15500ms", "--lease-duration: the server keeps whole seconds"),
    ],
)
def test_a_bad_value_is_named_with_its_place_and_the_way_out(name: str, given: str, said: str) -> None:
    """The flag or variable, what was given, and what to write instead."""
    with pytest.raises(SettingError) as refused:
        read({name: given}, {})
    assert said in str(refused.value)


def test_a_bad_variable_is_called_by_its_own_name() -> None:
    """Who set a variable looks for a variable."""
    with pytest.raises(SettingError, match=r"^GROWTH_PAUSED: 'maybe' cannot be used: write true or false$"):
        read({}, {"GROWTH_PAUSED": "maybe"})


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--provider", "kwok", "--batch-idle", "5"], "--batch-idle: '5' is not a duration"),
        (["--provider", "linode"], "the token of the Linode account is missing: put it into LINODE_TOKEN"),
        (["--provider", "aws"], "--provider: 'aws' cannot be used: choose one of kwok, hetzner, linode"),
        ([], "--provider is missing"),
        (["--provider", "kwok", "--instance-types", "/does/not/exist"], "--instance-types: /does/not/exist: cannot"),
        (["--provider", "kwok", "--kubeconfig", "/does/not/exist"], "the kubeconfig /does/not/exist does not exist"),
        (["--provider", "kwok", "--frobnicate"], "unknown option: --frobnicate"),
    ],
)
def test_the_command_says_it_in_one_line_and_ends_with_2(
    flags: list[str], said: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was started: the mistake is on stderr, alone."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("GROWTH_PROVIDER", raising=False)
    assert run(["run", *flags]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.startswith("growth: ")
    assert said in told.err
    assert told.err.count("\n") == 1


def test_an_address_that_cannot_be_served_is_named(
    capfd: pytest.CaptureFixture[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port that somebody else has, or a host that is none of ours: one line, exit code 1."""
    cluster = {"server": "https://127.0.0.1:1"}
    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here"}}],
        "clusters": [{"name": "here", "cluster": cluster}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    monkeypatch.delenv("GROWTH_LISTEN", raising=False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for address in (f"127.0.0.1:{taken.getsockname()[1]}", "256.1.1.1:80"):
            assert run(["run", "--provider", "kwok", "--kubeconfig", str(path), "--listen", address]) == 1
            said = capfd.readouterr().err
            assert said.startswith(f"growth: --listen: {address} cannot be served: "), said
            assert said.count("\n") == 1


def test_a_cluster_that_does_not_answer_is_waited_for_and_told_without_a_secret(tmp_path: pathlib.Path) -> None:
    """What, where it was configured, what to do, again and again until SIGTERM; the token is nowhere."""
    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {"token": "not-to-be-seen"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    with growth_alone(path) as growth:
        told = growth.wait_for("waiting for the API server")
        assert told["error"] == (
            "https://127.0.0.1:1 cannot be reached: connection refused; is the cluster running and the address right?"
        )
        status, problems = growth.get("/readyz")
        assert (status, told["error"] in problems) == (503, True)
        assert growth.get("/healthz")[0] == 200
        assert growth.lines("starting")[0]["access"] == f"context 'here' of {path}"
        assert growth.stop() == 0
        assert "not-to-be-seen" not in growth.text()


def test_a_variable_that_is_nearly_a_setting_is_not_overlooked() -> None:
    """A typing mistake is told with the name that was meant; what Kubernetes sets for a Service is no mistake."""
    environ = {
        "GROWTH_MAX_NODE": "3",
        "GROWTH_DEBUG": "1",
        "GROWTH_SERVICE_HOST": "10.0.0.1",
        "GROWTH_PORT": "tcp://10.0.0.1:80",
        "GROWTH_PORT_8080_TCP": "tcp://10.0.0.1:80",
        "PATH": "/bin",
    }
    assert unknown_variables(environ) == ("GROWTH_MAX_NODE is no setting of Growth: do you mean GROWTH_MAX_NODES?",)


def test_no_setting_has_a_variable_that_a_service_would_set() -> None:
    """A Service called growth puts GROWTH_PORT and GROWTH_SERVICE_* into every pod beside it."""
    for setting in TABLE.values():
        assert not re.search(r"_SERVICE_|_PORT(_|$)", setting.variable), setting.variable


def test_a_pod_lives_in_its_own_namespace(tmp_path: pathlib.Path) -> None:
    """In a pod the namespace is the pod's; elsewhere it is `growth`."""
    (tmp_path / "namespace").write_text("platform\n")
    assert home({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, folder=tmp_path) == "platform"
    assert home({}, folder=tmp_path) == "growth"
    assert home({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, folder=tmp_path / "none") == "growth"


def test_the_page_about_settings_is_the_table() -> None:
    """docs/settings.md is written by `python -m growth.operator.settings_page`; this says when that was forgotten."""
    assert (DOCS / "settings.md").read_text() == page()
