"""The effect digest: another for another behaviour, and the same whatever things are called."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any, Final
from unittest import mock

import pytest

import growth
from growth.api import names
from growth.controllers.provisioning import claims, purchases
from growth.controllers.provisioning.batching import Batch
from growth.kube.events import Recorder
from growth.kube.passing import PassingApi
from growth.providers.kwok.provider import KwokProvider
from growth.sim.campaign import quiet
from growth.sim.effects import Effects
from growth.sim.ports import Request
from growth.sim.runs import run
from growth.sim.scenario.generate import small
from growth.sim.scenario.model import Order, Outcome
from growth.sim.seams import Actor, Step

SEED: Final = 4
PROGRAM: Final = """
import growth
from growth.sim.campaign import quiet
from growth.sim.ports import Request
from growth.sim.runs import run
from growth.sim.scenario.generate import small
from growth.sim.scenario.model import Order
quiet()
outcome = run(Order(seed={seed}, scenario=small({seed}), hours=0.3, faults="all"))
print(growth.__file__, outcome.digest, outcome.effects)
"""


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    """The world as it is: machines are bought and given back, and all faults strike."""
    return played()


def played() -> Outcome:
    quiet()
    found = run(Order(seed=SEED, scenario=small(SEED), hours=0.3, faults="all"))
    assert found.scale_ups
    assert found.scale_downs
    return found


# -- five bugs --------------------------------------------------------------------------------------------------------------


def a_reason_is_another() -> Any:
    real = Recorder.event

    def event(self: Any, about: Any, reason: str, message: str, **more: Any) -> None:
        real(self, about, "Promised" if reason == names.NOMINATED else reason, message, **more)

    return mock.patch.object(Recorder, "event", event)


def a_price_is_not_written() -> Any:
    real = claims.body

    def body(made: Any) -> Any:
        bare = real(made)
        del bare["metadata"]["annotations"][names.MAX_PRICE_ANNOTATION]
        return bare

    return mock.patch.object(purchases, "body", body)


def a_batch_closes_a_hundredth_of_a_second_late() -> Any:
    real = Batch.__init__

    def init(self: Any, clock: Any, *, idle: float, **more: Any) -> None:
        real(self, clock, idle=idle + 0.01, **more)

    return mock.patch.object(Batch, "__init__", init)


def the_cloud_is_asked_twice() -> Any:
    real = KwokProvider._records

    async def records(self: Any) -> Any:
        await real(self)
        return await real(self)

    return mock.patch.object(KwokProvider, "_records", records)


def a_write_that_changes_nothing_follows_each_patch_of_a_claim() -> Any:
    real = PassingApi.patch

    async def patch(self: Any, kind: Any, name: str, patch: Any, **more: Any) -> Any:
        found = await real(self, kind, name, patch, **more)
        if kind.plural == "nodeclaims":
            await real(self, kind, name, {}, namespace=more.get("namespace", ""))
        return found

    return mock.patch.object(PassingApi, "patch", patch)


BUGS: Final = (
    a_reason_is_another,
    a_price_is_not_written,
    a_batch_closes_a_hundredth_of_a_second_late,
    the_cloud_is_asked_twice,
    a_write_that_changes_nothing_follows_each_patch_of_a_claim,
)


@pytest.mark.parametrize("bug", BUGS)
def test_every_bug_changes_the_digest(bug: Any, outcome: Outcome) -> None:
    """Also one that shows in a reason alone, in an annotation, in a hundredth of a second, in a call, in a needless write."""
    with bug():
        assert played().effects != outcome.effects


# -- renamings --------------------------------------------------------------------------------------------------------------

RENAMINGS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "functions": ((r"\b_take_down\b", "_dismantle"), (r"\b_place_variant\b", "_try_variant"), (r"\b_work\b", "_toil")),
    "classes": ((r"\bProvisioner\b", "Buyer"), (r"\bReconciler\b", "Settler"), (r"\bMachineNotFound\b", "NoMachine")),
    "modules": (
        (r"controllers\.termination\.endings\b", "controllers.termination.farewells"),
        (r"growth\.controllers\.decisions\b", "growth.controllers.verdicts"),
    ),
    "tasks": (
        (r'name="(lifecycle|pools|state|eviction-queue)"', r'name="the \1"'),
        (r'name=f"\{self._name\} call"', 'name=f"{self._name} request"'),
    ),
    "log keys": ((r"(_log\.\w+\(.*)\b(?:unsynced|NodeClaim|error)=", r"\1subject="),),
    "texts": (
        ("Room is there or on its way on", "A place was found on"),
        ("no Node has the machine's provider ID yet", "its Node is not there"),
        ("no node is to be removed", "all nodes stay"),
        (r"The type of the machine\.", "What it is."),
    ),
}
MOVED: Final = {"controllers/termination/endings.py": "farewells.py", "controllers/decisions.py": "verdicts.py"}


def renamed(folder: pathlib.Path, changes: tuple[tuple[str, str], ...], *, moved: bool) -> pathlib.Path:
    """A copy of the sources in which each of these patterns was found and replaced."""
    copy = folder / "growth"
    shutil.copytree(pathlib.Path(growth.__file__).parent, copy)
    found = dict.fromkeys(changes, 0)
    for path in copy.rglob("*.py"):
        text = before = path.read_text(encoding="utf-8")
        for pattern, replacement in changes:
            text, count = re.subn(pattern, replacement, text)
            found[pattern, replacement] += count
        if text != before:
            path.write_text(text, encoding="utf-8")
    assert all(found.values()), found
    for old, new in MOVED.items() if moved else ():
        (copy / old).rename((copy / old).with_name(new))
    return folder


def played_from(sources: pathlib.Path) -> tuple[str, str]:
    """The trace's hash and the effects' of the same world, played by these sources in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(seed=SEED)],
        env={**os.environ, "PYTHONPATH": str(sources)},
        check=True,
        capture_output=True,
        text=True,
    )
    file, digest, effects = done.stdout.split()
    assert pathlib.Path(file).is_relative_to(sources)
    return digest, effects


@pytest.mark.parametrize("what", RENAMINGS)
def test_no_renaming_changes_the_digest(what: str, tmp_path: pathlib.Path, outcome: Outcome) -> None:
    """Functions, classes, modules, tasks, keys of the log and texts for people, each in a copy of the sources."""
    digest, effects = played_from(renamed(tmp_path, RENAMINGS[what], moved=what == "modules"))
    assert effects == outcome.effects
    if what in {"functions", "classes", "tasks"}:
        assert digest != outcome.digest, "the trace names tasks: nothing was renamed that ran"


# -- what one effect is -----------------------------------------------------------------------------------------------------

UIDS: Final = ("00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002")


def pod(name: str, uid: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": uid[-1]}, **more}


def digest_of(*objects: dict[str, Any], at: float = 5.0) -> str:
    """Of a world in which these came into being one after the other, at one instant."""
    effects = Effects()
    for number, each in enumerate(objects):
        effects.change(_step(number, each, at=at))
    return effects.digest(9.0)


def _step(number: int, new: dict[str, Any], *, old: dict[str, Any] | None = None, at: float = 5.0) -> Step:
    return Step(
        number=number,
        at=at,
        revision=number,
        actor=Actor("workloads"),
        verb="create",
        asked=("pods", "default", ""),
        which=("", "pods"),
        key=("default", new["metadata"]["name"]),
        old=old,
        new=new,
        last=new,
    )


def test_the_order_within_an_instant_does_not_matter() -> None:
    """Nor the UIDs and resource versions that follow from it, also where another object names them; the time does."""
    first, second = UIDS
    reference = {"ownerReferences": [{"uid": first}], "name": "c", "uid": "x"}
    changed = {"ownerReferences": [{"uid": second}], "name": "c", "uid": "x"}
    one = digest_of(pod("a", first), pod("b", second), {"metadata": reference})
    assert one == digest_of(pod("b", first), pod("a", second), {"metadata": changed})
    assert one != digest_of(pod("b", first), pod("a", second), {"metadata": reference})
    assert one != digest_of(pod("a", first), pod("b", second), {"metadata": reference}, at=5.5)


def _with_condition(message: str, reason: str) -> dict[str, Any]:
    return pod("a", UIDS[0], status={"conditions": [{"type": "Ready", "message": message, "reason": reason}]})


def test_texts_are_left_out_and_reasons_stay() -> None:
    """A reason that is a sentence is a text."""
    one = digest_of(_with_condition("no room", "NoRoom"))
    assert one == digest_of(_with_condition("there is no room", "NoRoom"))
    assert one != digest_of(_with_condition("no room", "Unmet"))
    assert digest_of(_with_condition("", "it is full")) == digest_of(_with_condition("", "there is no room"))


def test_a_field_that_goes_is_an_effect() -> None:
    """As one that comes is."""

    def told(*steps: Step) -> str:
        effects = Effects()
        for each in steps:
            effects.change(each)
        return effects.digest(9.0)

    bare, bound = pod("a", UIDS[0]), pod("a", UIDS[0], spec={"nodeName": "n"})
    assert len({told(), told(_step(1, bare, old=bound)), told(_step(1, bound, old=bare))}) == 3


def test_a_vendors_calls_are_effects() -> None:
    """Method, address, body, status and time of each."""

    def digest(*calls: tuple[float, Request, int]) -> str:
        effects = Effects()
        for at, request, status in calls:
            effects.call(at, "growth-a-1", request, status)
        return effects.digest(9.0)

    request = Request("POST", "https://cloud/servers", {}, b"{}")
    plain = (1.0, request, 201)
    others = [
        (1.5, request, 201),
        (1.0, Request("PUT", request.url, {}, b"{}"), 201),
        (1.0, Request("POST", "https://cloud/images", {}, b"{}"), 201),
        (1.0, Request("POST", request.url, {}, b"[]"), 201),
        (1.0, request, 0),
    ]
    assert len({digest(), digest(plain), digest(plain, plain), *map(digest, others)}) == 3 + len(others)
