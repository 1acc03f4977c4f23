"""LinodeNodeClasses: what their conditions say, when their machines drift, and tags that are changed in place."""

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from growth.api.clouds import NodeClassNotReady
from growth.api.core import SECRET
from growth.api.karpenter import NodeClaim
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.ports import Response
from growth.providers.http import CallError, Problem, Refused, Unanswered
from growth.providers.linode import wire
from growth.providers.linode.pools import Pools
from growth.sim.clouds.linode import Faults
from growth.sim.ports import Answer, Request
from tests.conformance.providers.stages import HOME, LkeStage, claim, on
from tests.simulation.class_keeping import kept, told
from tests.simulation.test_linode_pools import TIERS, Late, machine_of, made

FORBIDDEN = Refused("PUT", status=403, problem=Problem(code="api", message="Unauthorized"))


async def change(stage: LkeStage, **spec: Any) -> None:
    await stage.admin.patch(LINODE_NODE_CLASS, "default", {"spec": spec})
    await asyncio.sleep(20)


async def replace(stage: LkeStage, spec: dict[str, Any]) -> None:
    """As `kubectl replace` does: the whole object, without what others wrote on it."""
    held = await stage.admin.get(LINODE_NODE_CLASS.raw, "default")
    metadata = {"name": "default", "resourceVersion": held["metadata"]["resourceVersion"]}
    body = {"apiVersion": held["apiVersion"], "kind": held["kind"], "metadata": metadata, "spec": spec}
    await stage.admin.update(LINODE_NODE_CLASS.raw, "default", body)


def launched(wanted: NodeClaim, provider_id: str) -> NodeClaim:
    return NodeClaim(metadata=wanted.metadata, spec=wanted.spec, status=type(wanted.status)(provider_id=provider_id))


@pytest.mark.parametrize("tier", TIERS)
def test_a_class_is_ready_until_it_asks_for_what_cannot_be(tier: str) -> None:
    """The condition says what, where and what to do; no machine is made of it, and it heals by itself."""

    async def body(stage: LkeStage) -> None:
        async with kept(stage) as provider:
            assert (await told(stage))[0] == "True"
            await change(stage, tags=["x" * 51])
            status, reason, message = await told(stage)
            assert (status, reason) == ("False", "TagValidationFailed")
            assert "51 characters" in message
            with pytest.raises(NodeClassNotReady, match="51 characters"):
                await provider.create(claim(stage, "one"))
            await change(stage, tags=["karpenter.sh/nodeclaim:mine"])
            assert "one of Growth's own tags" in (await told(stage))[2]
            for tag in ("nodepool=7", "nodepool:7", "lke12345"):
                await change(stage, tags=[tag])
                assert "one of LKE's own tags" in (await told(stage))[2]
            await change(stage, tags=["lke-team", "nodepools:web"])
            assert (await told(stage))[0] == "True"
            await change(stage, tags=["team:web"])
            assert (await told(stage))[0] == "True"
            machine = await made(provider, claim(stage, "one"))
            assert "team:web" in machine_of(stage, machine).tags

    on(tier, body)


@pytest.mark.parametrize(
    ("tier", "spec", "reason"),
    [
        ("lke", {"lkeK8sVersion": "1.33"}, "LKEK8sVersionUnsupported"),
        ("lke", {"firewallID": 7}, "FirewallUnsupported"),
        ("lke-enterprise", {"lkeK8sVersion": "v9.9.9+lke1"}, "LKEK8sVersionUnsupported"),
        ("lke-enterprise", {"firewallID": 7}, "NotFoundAtLinode"),
        ("lke", {"kubelet": {"evictionHard": {"memory.available": "NaN%"}}}, "KubeletInvalid"),
        ("linode-instances", {"kubelet": {"cpuCFSQuota": False}}, "FieldUnsupported"),
    ],
)
def test_what_a_tier_or_the_account_lacks_is_told(tier: str, spec: dict[str, Any], reason: str) -> None:
    """Each with its own reason. What is sold can be read all the same: other classes go on."""

    async def body(stage: LkeStage) -> None:
        async with kept(stage) as provider:
            await change(stage, **spec)
            assert (await told(stage))[:2] == ("False", reason)
            assert (await provider.catalogue()).of_classes["default"]

    on(tier, body)


@pytest.mark.parametrize("tier", ["lke-enterprise", "linode-instances"])
@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_may_not_read_firewalls_stops_only_classes_that_name_one(tier: str, status: int) -> None:
    """It is a right of its own: the class says which is lacking, others go on, and it heals by itself."""

    async def body(stage: LkeStage) -> None:
        stage.fake.account.firewalls[7] = "nodes"
        may_read = False

        async def scoped(request: Request) -> Response:
            if "/networking/firewalls" in request.url and not may_read:
                said = b'{"errors": [{"reason": "Your OAuth token is not authorized to use this endpoint."}]}'
                return Answer(status, {"content-type": "application/json"}, said)
            return await stage.fake(request)

        await stage.admin.create(LINODE_NODE_CLASS, {"metadata": {"name": "walled"}, "spec": {"firewallID": 7}})
        async with kept(stage, through=scoped) as provider:
            wanted = claim(stage, "one")
            uses = msgspec.structs.replace(wanted.spec.node_class_ref, name="walled")
            walled = msgspec.structs.replace(wanted, spec=msgspec.structs.replace(wanted.spec, node_class_ref=uses))
            for _ in range(2):
                with pytest.raises(NodeClassNotReady, match=r"spec\.firewallID: .*firewall:read_only"):
                    await provider.create(walled)
                await asyncio.sleep(20)
            await made(provider, claim(stage, "two"))
            assert (await told(stage))[0] == "True"
            assert (await told(stage, "walled"))[:2] == ("False", "FirewallUnreadable")
            may_read = True
            await asyncio.sleep(60)
            assert (await told(stage, "walled"))[0] == "True"
            await made(provider, walled)

    on(tier, body)


def test_nodes_may_not_be_newer_than_the_control_plane() -> None:
    """Older ones may; the pool is made with the version, the strategy and the firewall of the class."""

    async def body(stage: LkeStage) -> None:
        stage.fake.cluster.k8s_version = "v1.32.8+lke3"
        stage.fake.account.firewalls[7] = "nodes"
        async with kept(stage) as provider:
            await change(stage, lkeK8sVersion="v1.33.4+lke1")
            assert (await told(stage))[1] == "LKEK8sVersionControlPlaneMismatch"
            await change(stage, lkeK8sVersion="v1.31.9+lke6", firewallID=7)
            assert (await told(stage))[0] == "True"
            await made(provider, claim(stage, "one"))
            (pool,) = stage.fake.account.pools.values()
            assert (pool.k8s_version, pool.update_strategy, pool.firewall_id) == ("v1.31.9+lke6", "on_recycle", 7)

    on("lke-enterprise", body)


def test_a_control_plane_that_was_upgraded_takes_newer_nodes() -> None:
    """As the condition asked for: the class is judged again by itself, in the process that refused it."""

    async def body(stage: LkeStage) -> None:
        stage.fake.cluster.k8s_version = "v1.32.8+lke3"
        async with kept(stage) as provider:
            await change(stage, lkeK8sVersion="v1.33.4+lke1")
            assert "upgrade the cluster first" in (await told(stage))[2]
            stage.fake.cluster.k8s_version = "v1.33.4+lke1"
            await asyncio.sleep(120)
            assert (await told(stage))[0] == "True"
            await made(provider, claim(stage, "one"))

    on("lke-enterprise", body)


def test_a_pool_that_grows_gets_what_its_class_asks_for_now() -> None:
    """A machine that replaces a drifted one is made as the class says, and is not drifted itself."""

    async def body(stage: LkeStage) -> None:
        stage.fake.account.firewalls |= {7: "old", 8: "new"}
        async with kept(stage) as provider:
            await change(stage, lkeK8sVersion="v1.31.9+lke6", firewallID=7)
            old, new = claim(stage, "old"), claim(stage, "new")
            await made(provider, old)
            (pool,) = stage.fake.account.pools.values()
            pool.update_strategy = "rolling_update"
            await change(stage, lkeK8sVersion="v1.32.8+lke3", firewallID=8)
            machine = await made(provider, new)
            assert (pool.count, pool.k8s_version, pool.firewall_id) == (2, "v1.32.8+lke3", 8)
            assert pool.update_strategy == "on_recycle"
            await asyncio.sleep(120)
            assert await provider.is_drifted(launched(new, machine.provider_id)) == ""

    on("lke-enterprise", body)


@pytest.mark.parametrize("said", ["nothing", "null"])
def test_a_pool_that_does_not_tell_its_version_makes_nothing_drift(said: str) -> None:
    """What is not known is not another: machines would be replaced for ever."""

    async def body(stage: LkeStage) -> None:
        stage.fake.account.firewalls[7] = "nodes"
        hidden = []

        async def silent(request: Request) -> Response:
            answer = await stage.fake(request)
            if "/pools" not in request.url:
                return answer
            word = b'"was_%s":' if said == "nothing" else b'"%s":null,"was_%s":'
            text = answer.body
            for field in (b"k8s_version", b"firewall_id"):
                text = text.replace(b'"%s":' % field, word % ((field,) * word.count(b"%s")))
            hidden.append(text != answer.body)
            return Answer(answer.status, dict(answer.headers), text)

        await stage.admin.patch(
            LINODE_NODE_CLASS, "default", {"spec": {"lkeK8sVersion": "v1.32.8+lke3", "firewallID": 7}}
        )
        provider, wanted = stage.provider(through=silent), [claim(stage, "one"), claim(stage, "two")]
        machines = [await made(provider, each) for each in wanted]
        assert any(hidden)
        await asyncio.sleep(120)
        for each, machine in zip(wanted, machines, strict=True):
            assert await provider.is_drifted(launched(each, machine.provider_id)) == ""

    on("lke-enterprise", body)


def test_a_change_that_lke_does_not_take_replaces_machines_once() -> None:
    """Those of before are drifted; what replaces them is not, or they would be replaced for ever."""

    async def body(stage: LkeStage) -> None:
        stage.fake.account.firewalls |= {7: "old", 8: "new"}
        asked = []

        async def stubborn(request: Request) -> Response:
            body = msgspec.json.decode(request.body or b"{}")
            if request.method == "PUT" and "/pools/" in request.url and "firewall_id" in body:
                asked.append(body.pop("firewall_id"))
                request = msgspec.structs.replace(request, body=msgspec.json.encode(body))
            return await stage.fake(request)

        async def change_firewall(number: int) -> None:
            await stage.admin.patch(LINODE_NODE_CLASS, "default", {"spec": {"firewallID": number}})
            await asyncio.sleep(120)

        provider, old, new = stage.provider(through=stubborn), claim(stage, "old"), claim(stage, "new")
        await change_firewall(7)
        before = await made(provider, old)
        await change_firewall(8)
        after = await made(provider, new)
        await asyncio.sleep(120)
        assert asked == [8]
        assert await provider.is_drifted(launched(old, before.provider_id)) == "NodeClassDrifted"
        assert await provider.is_drifted(launched(new, after.provider_id)) == ""

    on("lke-enterprise", body)


def test_a_pool_that_takes_changes_again_says_again_how_its_machines_were_made() -> None:
    """That LKE did not take one change says nothing of the next: a machine of before is drifted, whoever claims it."""

    async def body(stage: LkeStage) -> None:
        stubborn = True

        async def wire_(request: Request) -> Response:
            body = msgspec.json.decode(request.body or b"{}")
            if stubborn and request.method == "PUT" and "/pools/" in request.url and body.pop("k8s_version", None):
                request = msgspec.structs.replace(request, body=msgspec.json.encode(body))
            return await stage.fake(request)

        provider = stage.provider(through=wire_)
        await change(stage, lkeK8sVersion="v1.31.9+lke6")
        await made(provider, claim(stage, "one"))
        await change(stage, lkeK8sVersion="v1.32.8+lke3")
        await made(provider, claim(stage, "two"))
        stubborn = False
        await made(provider, claim(stage, "three"))
        (pool,) = stage.fake.account.pools.values()
        assert pool.k8s_version == "v1.32.8+lke3"
        stage.fake.account.scale(pool, pool.count + 1)
        await asyncio.sleep(70)
        await change(stage, lkeK8sVersion="v1.31.9+lke6")
        wanted = claim(stage, "four")
        machine = await made(provider, wanted)
        await asyncio.sleep(120)
        assert await provider.is_drifted(launched(wanted, machine.provider_id)) == "NodeClassDrifted"

    on("lke-enterprise", body)


def test_a_machine_that_was_there_before_its_class_changed_is_drifted() -> None:
    """Whoever claims it gets it as it was made, and it says so: by the pool, which changes only when it grows."""

    async def body(stage: LkeStage) -> None:
        async with kept(stage) as provider:
            await change(stage, lkeK8sVersion="v1.31.9+lke6")
            await made(provider, claim(stage, "one"))
            (pool,) = stage.fake.account.pools.values()
            stage.fake.account.scale(pool, 2)
            await asyncio.sleep(70)
            await change(stage, lkeK8sVersion="v1.32.8+lke3")
            wanted = claim(stage, "two")
            machine = await made(provider, wanted)
            assert (pool.count, pool.k8s_version) == (2, "v1.31.9+lke6")
            await asyncio.sleep(120)
            assert await provider.is_drifted(launched(wanted, machine.provider_id)) == "NodeClassDrifted"

    on("lke-enterprise", body)


def test_machines_drift_with_their_class_and_not_with_its_tags() -> None:
    """Tags are changed in place: new ones come, those that the class no longer names go, everybody else's stay."""

    async def body(stage: LkeStage) -> None:
        stage.fake.account.firewalls[7] = "nodes"
        async with kept(stage) as provider:
            wanted = claim(stage, "one")
            await change(stage, tags=["team:web", "stage:test"])
            machine = await made(provider, wanted)
            instance = machine_of(stage, machine)
            stage.fake.account.retag(instance, (*instance.tags, "by:hand"))
            await change(stage, tags=["team:api"])
            assert {"team:api", "by:hand", "karpenter.sh/nodeclaim:one"} <= set(instance.tags)
            assert not {"team:web", "stage:test"} & set(instance.tags)
            await asyncio.sleep(120)
            assert await provider.is_drifted(launched(wanted, machine.provider_id)) == ""
            await change(stage, firewallID=7)
            await asyncio.sleep(120)
            assert await provider.is_drifted(launched(wanted, machine.provider_id)) == "NodeClassDrifted"

    on("lke-enterprise", body)


@pytest.mark.parametrize("tier", ["lke", "lke-enterprise", "linode-instances"])
@pytest.mark.parametrize("running", [True, False], ids=["beside us", "between two processes"])
def test_a_class_that_is_replaced_leaves_no_old_tags_on_machines(tier: str, *, running: bool) -> None:
    """A PUT without our annotations and status: what its machines have of the class before goes, what people gave them stays."""

    async def body(stage: LkeStage) -> None:
        async with contextlib.AsyncExitStack() as processes:
            provider = await processes.enter_async_context(kept(stage))
            await change(stage, tags=["team:web", "stage:test"])
            instance = machine_of(stage, await made(provider, claim(stage, "one")))
            stage.fake.account.retag(instance, (*instance.tags, "by:hand"))
            if not running:
                await processes.aclose()
            await replace(stage, {"tags": ["team:api"]})
            await asyncio.sleep(30)
            if not running:
                await processes.enter_async_context(kept(stage))
            await asyncio.sleep(60)
            assert {"team:api", "by:hand", "karpenter.sh/nodeclaim:one"} <= set(instance.tags)
            assert not {"team:web", "stage:test"} & set(instance.tags)
            await replace(stage, {})
            await asyncio.sleep(60)
            assert not {"team:api", "team:web"} & set(instance.tags)

    on(tier, body)


@pytest.mark.parametrize("judged", ["by the keeper", "by nobody yet"])
@pytest.mark.parametrize(
    ("tier", "spec"),
    [
        ("lke", {"firewallID": 7}),
        ("lke", {"lkeK8sVersion": "1.33"}),
        ("lke-enterprise", {"firewallID": 8}),
        ("lke-enterprise", {"lkeK8sVersion": "v9.9.9+lke1"}),
        ("linode-instances", {"lkeK8sVersion": "1.33"}),
        ("linode-instances", {"firewallID": 8}),
    ],
)
def test_a_class_that_is_refused_makes_no_machine_drift(tier: str, spec: dict[str, Any], judged: str) -> None:
    """Its machines would go for a class of which none can be bought; once it can be used again they drift as ever."""

    async def body(stage: LkeStage) -> None:
        stage.fake.account.firewalls[9] = "nodes"
        async with kept(stage) as keeping:
            wanted = claim(stage, "one")
            machine = await made(keeping, wanted)
        provider = stage.provider()
        if judged == "by the keeper":
            async with kept(stage) as provider:
                await change(stage, **spec)
                assert (await told(stage))[0] == "False"
        else:
            await change(stage, **spec)
        await asyncio.sleep(120)
        assert await provider.is_drifted(launched(wanted, machine.provider_id)) == ""
        await change(stage, **dict.fromkeys(spec), tags=["team:web"])
        assert await provider.is_drifted(launched(wanted, machine.provider_id)) == ""
        if tier != "lke":
            await change(stage, firewallID=9)
            assert await provider.is_drifted(launched(wanted, machine.provider_id)) == "NodeClassDrifted"

    on(tier, body)


@pytest.mark.parametrize(
    ("tier", "drifted"), [("lke", ""), ("lke-enterprise", ""), ("linode-instances", "NodeClassDrifted")]
)
def test_a_machine_whose_hash_was_made_of_more_is_not_drifted_for_it(tier: str, drifted: str) -> None:
    """Nodes of LKE had what their class says of kubelets in their hash; instances that are none have it still."""

    async def body(stage: LkeStage) -> None:
        provider, wanted = stage.provider(), claim(stage, "one")
        machine = await made(provider, wanted)
        instance = machine_of(stage, machine)
        others = [each for each in instance.tags if not each.startswith("growth.dev/class-hash")]
        stage.fake.account.retag(instance, (*others, "growth.dev/class-hash:v1-0123456789abcdef"))
        await asyncio.sleep(120)
        assert await provider.is_drifted(launched(wanted, machine.provider_id)) == drifted

    on(tier, body)


@pytest.mark.parametrize("tier", [*TIERS, "linode-instances"])
def test_tags_that_change_during_a_purchase_reach_its_machine(tier: str) -> None:
    """Whenever in the purchase they do: a while later it has those that the class names, and none that it named before."""

    async def body(stage: LkeStage) -> None:
        async with kept(stage) as provider:
            for offset in range(7):
                old, new = f"old:{offset}", f"new:{offset}"
                await change(stage, tags=[old])
                buying = asyncio.ensure_future(made(provider, claim(stage, f"web-{offset}")))
                await asyncio.sleep(offset / 2)
                await stage.admin.patch(LINODE_NODE_CLASS, "default", {"spec": {"tags": [new]}})
                instance = machine_of(stage, await buying)
                await asyncio.sleep(900)
                assert new in instance.tags
                assert old not in instance.tags

    on(tier, body)


def test_a_machine_whose_tags_cannot_be_written_keeps_no_other_from_its_own() -> None:
    """Whichever is first in the list: others have them at once, and it has them once Linode takes them."""

    async def body(stage: LkeStage) -> None:
        async with kept(stage) as provider:
            first, second = [machine_of(stage, await made(provider, claim(stage, f"web-{each}"))) for each in range(2)]
            cloud = stage.clouds[-1]
            real = cloud.retag

            async def refused(number: int, tags: Sequence[str]) -> wire.Instance:
                if number == first.id:
                    raise Unanswered("no answer")
                return await real(number, tags)

            cloud.retag = refused  # type: ignore[method-assign] # the way to one machine is broken
            await change(stage, tags=["team:web"])
            assert ("team:web" in first.tags, "team:web" in second.tags) == (False, True)
            cloud.retag = real  # type: ignore[method-assign]
            await asyncio.sleep(60)
            assert "team:web" in first.tags

    on("lke", body)


def test_machines_whose_tags_cannot_be_written_keep_no_others_from_theirs_however_many() -> None:
    """A round ends after three of them, and the next one begins with the others."""

    async def body(stage: LkeStage) -> None:
        async with kept(stage) as provider:
            machines = [machine_of(stage, await made(provider, claim(stage, f"web-{each}"))) for each in range(6)]
            broken = {each.id for each in machines[:4]}
            cloud = stage.clouds[-1]
            real = cloud.retag

            async def refused(number: int, tags: Sequence[str]) -> wire.Instance:
                if number in broken:
                    raise Unanswered("no answer")
                return await real(number, tags)

            cloud.retag = refused  # type: ignore[method-assign]
            await change(stage, tags=["team:web"])
            await asyncio.sleep(60)
            assert {each.id for each in machines if "team:web" not in each.tags} == broken

    on("lke", body)


@pytest.mark.parametrize(("error", "most"), [(Unanswered("no answer"), 3), (FORBIDDEN, 1)], ids=["silent", "forbidden"])
def test_what_keeps_tags_from_all_machines_is_not_tried_on_each(error: CallError, most: int) -> None:
    """Calls are shared with purchases, and each that hangs takes its time."""

    async def body(stage: LkeStage) -> None:
        async with kept(stage) as provider:
            for each in range(6):
                await made(provider, claim(stage, f"web-{each}"))
            tries: list[float] = []

            async def refused(number: int, tags: Sequence[str]) -> wire.Instance:
                tries.append(stage.kernel.time())
                raise error

            stage.clouds[-1].retag = refused  # type: ignore[method-assign]
            await change(stage, tags=["team:web"])
            rounds = [1]
            for before, after in itertools.pairwise(tries):
                rounds = [*rounds, 1] if after - before > 0.7 else [*rounds[:-1], rounds[-1] + 1]
            assert len(tries) >= 3
            assert max(rounds) == most

    on("lke", body)


def test_a_tag_that_a_class_gave_up_is_known_until_every_machine_is_rid_of_it() -> None:
    """One machine cannot be written for a long time: it loses the tag all the same once it can."""

    async def body(stage: LkeStage) -> None:
        async with kept(stage) as provider:
            machine = machine_of(stage, await made(provider, claim(stage, "one")))
            await change(stage, tags=["team:web"])
            assert "team:web" in machine.tags
            cloud = stage.clouds[-1]
            real = cloud.retag

            async def refused(number: int, tags: Sequence[str]) -> wire.Instance:
                raise Unanswered("no answer")

            cloud.retag = refused  # type: ignore[method-assign]
            await change(stage, tags=["team:shop"])
            await asyncio.sleep(1500)
            cloud.retag = real  # type: ignore[method-assign]
            await asyncio.sleep(600)
            assert ("team:web" in machine.tags, "team:shop" in machine.tags) == (False, True)

    on("lke", body)


@pytest.mark.parametrize("tier", TIERS)
def test_tags_of_a_class_that_arrive_late_take_no_machine_from_its_next_claim(tier: str) -> None:
    """A machine whose tags may be on their way is not given back: they would make it the first claim's again."""

    async def body(stage: LkeStage) -> None:
        late = Late(stage, "PUT", "team:late", alone=True, seconds=20)
        provider, one = stage.provider(through=late), claim(stage, "one")
        machine = machine_of(stage, await made(provider, one))
        await stage.admin.patch(LINODE_NODE_CLASS, "default", {"spec": {"tags": ["team:late"]}})
        running = stage.kernel.create_task(stage.keeper(provider).run(), name="keeper")
        await asyncio.wait_for(late.sent.wait(), 60)
        await asyncio.sleep(1)
        held = (await provider.parts()).held
        assert isinstance(held, Pools)
        await held.give_back(machine.id, one)
        await made(provider, claim(stage, "two"))
        await asyncio.wait_for(late.arrived.wait(), 60)
        running.cancel()
        assert "uid-of-two" in await stage.held()

    on(tier, body)


def test_tags_of_a_change_that_was_overtaken_go_too() -> None:
    """One that reached some machines and not others, before the class was changed again."""

    async def body(stage: LkeStage) -> None:
        async with kept(stage) as provider:
            machines = [machine_of(stage, await made(provider, claim(stage, f"web-{number}"))) for number in range(2)]
            stage.fake.account.retag(machines[0], (*machines[0].tags, "by:hand"))
            busy = machines[1]
            cloud = stage.clouds[-1]
            real = cloud.retag

            async def refused(number: int, tags: Sequence[str]) -> wire.Instance:
                if number == busy.id:
                    raise Unanswered("no answer")
                return await real(number, tags)

            cloud.retag = refused  # type: ignore[method-assign] # the way to one machine is broken
            await change(stage, tags=["second:change"])
            assert "second:change" in machines[0].tags
            cloud.retag = real  # type: ignore[method-assign]
            await change(stage, tags=["third:change"])
            await asyncio.sleep(900)
            for machine in machines:
                assert "third:change" in machine.tags
                assert "second:change" not in machine.tags
            assert "by:hand" in machines[0].tags

    on("lke", body)


@pytest.mark.parametrize("tier", [*TIERS, "linode-instances"])
def test_what_a_class_says_of_kubelets_is_reckoned_with(tier: str) -> None:
    """A type holds so many pods less, and machines of LKE, whose kubelets nobody here sets, do not drift for it."""

    async def body(stage: LkeStage) -> None:
        join = {"server": "https://10.0.0.2:6443", "token": "shared"}
        await stage.admin.create(SECRET, {"metadata": {"name": "join"}, "stringData": join}, namespace=HOME)
        async with kept(stage) as provider:
            await change(stage, userData={"mode": "k3s", "secretRef": {"name": "join"}, "cloudProvider": "none"})
            wanted = claim(stage, "web-1")
            machine = await made(provider, wanted)
            await change(stage, kubelet={"maxPods": 20})
            assert (await told(stage))[0] == "True"
            (sold,) = [
                each for each in (await provider.catalogue()).of_classes["default"] if each.name == stage.types[0]
            ]
            assert sold.allocatable["pods"] == 20
            await asyncio.sleep(120)
            drifted = await provider.is_drifted(launched(wanted, machine.provider_id))
            assert drifted == ("NodeClassDrifted" if tier == "linode-instances" else "")
            await change(stage, kubelet={"kubeReserved": {"memory": "much" if tier in TIERS else "1Gi"}})
            assert "spec.kubelet.kubeReserved" in (await told(stage))[2]

    on(tier, body)


def test_an_account_that_cannot_be_asked_says_nothing_of_a_class() -> None:
    """One that was never judged is unknown; one that was ready stays so."""

    async def body(stage: LkeStage) -> None:
        stage.fake.faults = Faults(lost_request=1.0)
        async with kept(stage):
            await asyncio.sleep(60)
            assert (await told(stage))[0] == "Unknown"
            stage.fake.faults = Faults()
            await asyncio.sleep(120)
            assert (await told(stage))[0] == "True"
            stage.fake.faults = Faults(lost_request=1.0)
            await asyncio.sleep(900)
            assert (await told(stage))[0] == "True"

    on("lke", body)


def test_prices_and_availability_are_the_regions() -> None:
    """A plan that the region lacks is shown as unavailable; one that its list does not name can be had."""

    async def body(stage: LkeStage) -> None:
        stage.fake.cluster.region = "br-gru"
        stage.fake.market.flags["g7-premium-2", "br-gru"] = False
        catalogue = await stage.provider().catalogue()
        offered = {kind.name: kind.offerings[0] for kind in catalogue.types}
        assert {each.zone for each in offered.values()} == {"br-gru"}
        assert offered["g6-standard-2"].price == 50_400_000
        assert offered["g6-standard-2"].available
        assert not offered["g7-premium-2"].available
        assert offered["g7-premium-4"].available
        assert "g6-nanode-1" not in offered

    on("lke", body)


@pytest.mark.parametrize("tier", TIERS)
def test_fields_without_effect_on_lke_are_named_by_the_class(tier: str) -> None:
    """It stays ready, so that existing manifests go on; what does nothing is said where people look."""
    without_effect = {
        "authorizedKeys": ["ssh-ed25519 AAAA x"],
        "authorizedUsers": ["somebody"],
        "image": "private/1",
        "backupsEnabled": True,
        "osDisk": {"size": "10Gi"},
        "dataDisks": {"sdb": {"size": "10Gi"}},
        "diskEncryption": "disabled",
        "configuration": {"kernel": "linode/latest-64bit"},
        "placementGroup": {"id": 5},
        "vpcID": 5,
        "ipv6Options": {"enableRanges": True},
        "swap_size": 512,
        "userData": {"mode": "raw", "secretRef": {"name": "nowhere"}},
    }

    async def body(stage: LkeStage) -> None:
        async with kept(stage):
            await change(stage, tags=["team:web"], kubelet={"maxPods": 50})
            assert await told(stage) == ("True", "Ready", "")
            await change(stage, **without_effect)
            status, reason, message = await told(stage)
            assert (status, reason) == ("True", "Ready")
            named = {each.removeprefix("spec.") for each in message.partition(": ")[2].split(", ")}
            assert named == without_effect.keys()
            await change(stage, **dict.fromkeys(set(without_effect) - {"image"}))
            assert (await told(stage))[2].endswith(": spec.image")
            await change(stage, kubelet={"clusterDNS": ["10.0.0.10"]})
            assert (await told(stage))[2].endswith(": spec.image, spec.kubelet.clusterDNS")

    on(tier, body)
