"""Scenario files: what they may say, and how each mistake is named."""

import pathlib
from typing import Any

import pytest

from growth.sim.scenario import trace
from growth.sim.scenario.generate import generate, small
from growth.sim.scenario.model import Burst, Recorded, Waves, busy_seconds
from growth.sim.scenario.reading import ScenarioError, understood
from growth.sim.scenario.trace import Life, TraceError

HERE = pathlib.Path(__file__).parent

WAVES = {"kind": "waves", "name": "web", "high": 10}
POOL_WITHOUT_CLASS = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "one"},
    "spec": {"template": {"spec": {"requirements": []}}},
}


def refused(raw: Any) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        understood(raw, folder=HERE)
    return caught.value


def test_a_scenario_without_a_pool_gets_one_for_everything() -> None:
    """A workload alone is enough to begin with."""
    scenario = understood({"workloads": [WAVES]}, folder=HERE)
    assert [body["kind"] for body in scenario.objects] == ["NodePool"]
    assert scenario.workloads == (Waves(name="web", high=10),)


@pytest.mark.parametrize(
    ("raw", "field", "reason"),
    [
        ([], "", "a scenario is a map"),
        ({"hour": 1}, "", "unknown field hour"),
        ({"hours": 0}, "hours", "0 is not"),
        ({"hours": "long"}, "hours", "expected float"),
        ({"workloads": [{"kind": "tide", "name": "x"}]}, "workloads[0].kind", "invalid value 'tide'"),
        ({"workloads": [{**WAVES, "high": "many"}]}, "workloads[0].high", "expected int"),
        ({"workloads": [{**WAVES, "hihg": 3}]}, "workloads[0]", "unknown field hihg"),
        ({"workloads": [{**WAVES, "name": "Web"}]}, "workloads[0].name", "'Web'"),
        ({"workloads": [WAVES, WAVES]}, "workloads[1].name", "two workloads"),
        ({"workloads": [{**WAVES, "period": "soon"}]}, "workloads[0].period", "not a duration"),
        ({"workloads": [{**WAVES, "period": "1s"}]}, "workloads[0].period", "less than 10s"),
        ({"workloads": [{**WAVES, "low": 20}]}, "workloads[0].high", "less than low"),
        ({"workloads": [{**WAVES, "high": -1}]}, "workloads[0].high", "-1 is not from 0"),
        ({"workloads": [{**WAVES, "pod": {"cpu": "lots"}}]}, "workloads[0].pod.cpu", "'lots' is not a quantity"),
        (
            {"workloads": [{**WAVES, "pod": {"spec": {"containers": []}}}]},
            "workloads[0].pod (Pod web)",
            "containers",
        ),
        ({"faults": {"gremlins": 1}}, "faults", "there is no fault 'gremlins'"),
        ({"faults": {"conflict": 2}}, "faults", "from 0 to 1"),
        (
            {"objects": [{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}}]},
            "objects[0] (Thing a)",
            "no Thing",
        ),
        ({"objects": [POOL_WITHOUT_CLASS]}, "objects[0] (NodePool one)", "nodeClassRef"),
        ({"settings": {"packr": "cost"}}, "settings.packr", "no setting of this name"),
        ({"settings": {"packer": "random"}}, "settings", "'random'"),
        ({"settings": {"provider": "hetzner"}}, "settings.provider", "fixed in a simulation"),
        ({"events": [{"at": "2h", "do": "crash"}]}, "events[0].at", "after the end"),
        ({"events": [{"at": "1m", "do": "explode"}]}, "events[0].do", "invalid enum value 'explode'"),
        ({"events": [{"at": "1m", "do": "delete"}]}, "events[0].object", "needs apiVersion, kind"),
        ({"events": [{"at": "1m", "do": "crash", "object": {"kind": "Pod"}}]}, "events[0].object", "leave it out"),
        ({"workloads": [{"kind": "trace", "file": "nothing.csv"}]}, "workloads[0].file", "cannot be read"),
    ],
)
def test_a_mistake_is_named_by_its_field(raw: Any, field: str, reason: str) -> None:
    """What is wrong, where, and why; nothing of it is left to be found during the run."""
    error = refused(raw)
    assert error.field == field
    assert reason in error.reason


def test_settings_may_be_numbers_and_truths() -> None:
    """YAML's own types are as good as the texts of flags."""
    scenario = understood({"settings": {"maxNodes": 10, "paused": True, "packer": "cost"}}, folder=HERE)
    assert scenario.flags() == {"provider": "kwok", "maxNodes": "10", "paused": "true", "packer": "cost"}


def test_equal_seeds_make_equal_scenarios_and_others_do_not() -> None:
    """A generated scenario depends on its seed and length alone."""
    assert generate(3) == generate(3)
    assert generate(3) != generate(4)
    assert small(1) == small(1)


@pytest.mark.parametrize("seed", range(20))
def test_every_generated_scenario_is_one_that_a_file_may_say(seed: int) -> None:
    """What is generated passes the same checks, and its burst is over before the load rests."""
    scenario = generate(seed)
    bursts = [work for work in scenario.workloads if isinstance(work, Burst)]
    assert bursts
    assert all(float(each.at[:-1]) + float(each.lasts[:-1]) < busy_seconds(1.0) for each in bursts)
    raw = {"objects": list(scenario.objects), "hours": 1}
    assert understood(raw, folder=HERE).objects == scenario.objects


def written(folder: pathlib.Path, text: str) -> pathlib.Path:
    path = folder / "pods.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_trace_is_read_by_the_names_of_its_columns(tmp_path: pathlib.Path) -> None:
    """Columns in any order, unknown ones ignored, an empty end is never; names where there are any."""
    path = written(
        tmp_path, "creation_time,deletion_time,cpu_milli,memory_mib,gpu,name\n5,60,500,1024,1,a\n100,,250,64,0,b\n"
    )
    assert trace.read(path) == (Life("a", 500, 1024, 5.0, 60.0), Life("b", 250, 64, 100.0, float("inf")))


def test_a_window_of_a_trace_has_those_that_live_in_it(tmp_path: pathlib.Path) -> None:
    """Those alive at its start begin with it; those gone before, or not yet born at its end, are left out."""
    lives = (
        Life("before", 1, 1, 0.0, 10.0),
        Life("across", 1, 1, 0.0, 150.0),
        Life("inside", 1, 1, 120.0, 130.0),
        Life("never", 1, 1, 125.0, 125.0),
        Life("after", 1, 1, 200.0, 300.0),
    )
    found = trace.window(lives, since=100.0, lasts=100.0)
    assert found == (Life("across", 1, 1, 0.0, 50.0), Life("inside", 1, 1, 20.0, 30.0))
    assert trace.window(lives, since=100.0, lasts=100.0, limit=1) == found[:1]
    assert tmp_path.is_dir()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cpu_milli,memory_mib,creation_time\n", "line 1: the column deletion_time is missing"),
        ("cpu_milli,memory_mib,creation_time,deletion_time\nx,1,1,1\n", "line 2: cpu_milli: 'x'"),
        ("cpu_milli,memory_mib,creation_time,deletion_time\n1,1,-4,1\n", "line 2: creation_time: '-4'"),
        ("cpu_milli,memory_mib,creation_time,deletion_time\n,1,1,1\n", "line 2: only deletion_time may be empty"),
    ],
)
def test_a_trace_that_cannot_be_used_says_the_line(tmp_path: pathlib.Path, text: str, said: str) -> None:
    """The line, the column and what stands there."""
    with pytest.raises(TraceError, match=said.replace("'", ".").replace("(", ".")):
        trace.read(written(tmp_path, text))


def test_a_trace_is_looked_for_beside_the_scenario(tmp_path: pathlib.Path) -> None:
    """A relative file is one of the scenario's folder; a window without pods is refused."""
    written(tmp_path, "cpu_milli,memory_mib,creation_time,deletion_time\n500,512,0,600\n")
    work = {"kind": "trace", "file": "pods.csv", "lasts": "10m"}
    (found,) = understood({"workloads": [work]}, folder=tmp_path).workloads
    assert isinstance(found, Recorded)
    assert pathlib.Path(found.file).is_absolute()
    with pytest.raises(ScenarioError, match="no pod of"):
        understood({"workloads": [{**work, "from": "1h"}]}, folder=tmp_path)
