"""A purchase that the cloud hears long after its repeat was answered: what it buys is found, and given back."""

import asyncio
import functools
from typing import Any

import msgspec
import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM
from growth.kube.passing import Write
from growth.operator.wiring import Role
from growth.ports import Response
from growth.sim.campaign import quiet
from growth.sim.invariants.books import CLAIMS, CONFIG_MAPS, MACHINE_LABEL
from growth.sim.network import NetworkApi
from growth.sim.ports import Request
from growth.sim.runs import run
from growth.sim.scenario.generate import small
from growth.sim.scenario.model import Order, lasting
from growth.sim.scenario.vendors import PROVIDERS, told_for
from growth.sim.seams import NOBODY, Step
from growth.sim.world import half, hetzner, linode
from growth.sim.world.half import HalfTransport
from growth.sim.world.world import World

PURCHASES = ("/servers", "/instances", "/pools")
# When a world of `small` has given everything back, and while it still runs: then somebody deletes the claim before.
AFTER_ALL, AMONG_OTHERS, DELETED = 500.0, 240.0, 150.0
# A sweep every two minutes, or LKE's period for capacity that nobody claims; then the deletion itself.
COLLECTED = 480.0


class Late:
    """Holds the first purchase of a world on the wire, and reads what the cloud has."""

    def __init__(self, provider: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.confirmed = False
        self.landed = 0.0
        self.gone = 0.0
        self._seconds = seconds
        self._held = False
        self._bought_for = ""
        self._records: dict[str, str] = {}
        self._claims: dict[str, str] = {}
        arrive, write = HalfTransport._arrive, NetworkApi._write
        late = self

        async def arriving(self: HalfTransport, request: Request) -> Response:
            purchase = request.method == "POST" and request.url.split("?")[0].endswith(PURCHASES)
            if not purchase or late._held:
                return await arrive(self, request)
            late._held = True
            said = msgspec.json.decode(request.body or b"")
            late._bought_for = said.get("name") or said.get("label") or ""
            monkeypatch.setattr(half, "LATE_SECONDS", (seconds, seconds))
            self.half.late = 1.0
            self._kernel.call_soon(functools.partial(setattr, self.half, "late", 0.0))
            answer = await arrive(self, request)
            assert answer.status < 300, answer.body
            late.landed = self._kernel.time()
            return answer

        async def writing(self: NetworkApi, what: Write, send: Any) -> Any:
            purchase = what.verb == "create" and what.kind.plural == "configmaps" and str(Role.CLOUD) in self.named
            if provider == "kwok" and purchase and not late._held:
                late._held = True
                self.hold_next_write(seconds)
            return await write(self, what, send)

        monkeypatch.setattr(HalfTransport, "_arrive", arriving)
        monkeypatch.setattr(NetworkApi, "_write", writing)

    def attend(self, world: World) -> None:
        world.witness.listeners.append(self._see)
        world.run(self._watch(world))

    def _see(self, step: Step) -> None:
        annotations = step.last["metadata"].get("annotations") or {}
        self.confirmed = self.confirmed or names.CONFIRM_COLLECTION_ANNOTATION in annotations
        if step.which == CLAIMS:
            self._keep(self._claims, step, step.last.get("status", {}).get("providerID", ""))
        elif step.which == CONFIG_MAPS and MACHINE_LABEL in step.last["metadata"].get("labels", {}):
            self._keep(self._records, step, step.last["data"]["providerID"])
            if step.old is None and step.at > self._seconds and not self.landed:
                self.landed = step.at  # of KWOK, whose machine is its record

    @staticmethod
    def _keep(kept: dict[str, str], step: Step, provider_id: str) -> None:
        if step.new is None:
            kept.pop(step.key[1], None)
        else:
            kept[step.key[1]] = provider_id

    async def _watch(self, world: World) -> None:
        if self._seconds < AFTER_ALL:
            await asyncio.sleep(DELETED)
            await world.admin.delete(NODE_CLAIM, self._bought_for or min(self._claims))
        while not self.gone:
            await asyncio.sleep(10.0)
            if self.landed and self._machines(world) <= set(self._claims.values()):
                self.gone = world.kernel.time()

    def _machines(self, world: World) -> set[str]:
        """The machines that the cloud itself has, whosever they are."""
        vendor = world.vendor
        if vendor is None:
            return set(self._records.values())
        if isinstance(vendor, hetzner.HetznerHalf):
            where, key, scheme, token = f"{hetzner.ENDPOINT}/servers", "servers", "hcloud", hetzner.TOKEN
        else:
            where, key, scheme, token = f"{linode.ENDPOINT}/linode/instances", "data", "linode", linode.TOKEN
        answer, _ = vendor.perform(Request("GET", where, {"authorization": f"Bearer {token}"}, None), NOBODY)
        assert answer.status == 200, answer.body
        return {f"{scheme}://{each['id']}" for each in msgspec.json.decode(answer.body)[key]}


@pytest.mark.parametrize("seconds", [AFTER_ALL, AMONG_OTHERS])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_purchase_that_lands_after_its_repeat_was_given_back_is_given_back_too(
    provider: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its repeat was adopted, used and removed, its claim is gone; nobody has to confirm anything, even when it is alone."""
    quiet()
    late = Late(provider, seconds, monkeypatch)
    scenario = told_for(provider, small(1))
    order = Order(seed=1, scenario=scenario, hours=lasting(scenario.hours), faults="none")
    outcome = run(order, attend=late.attend)
    assert outcome.violations == ()
    assert late.landed > seconds
    assert 10.0 < late.gone - late.landed < COLLECTED
    assert not late.confirmed
