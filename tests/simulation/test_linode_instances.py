"""Machines at Linode that are no nodes of LKE: how they are made, join, drift and end."""

import asyncio

import pytest
import yaml

from growth.api.clouds import (
    CloudError,
    CloudUnavailable,
    CreateError,
    InvariantViolation,
    MachineNotFound,
    NodeClassNotReady,
)
from growth.api.core import SECRET
from growth.api.karpenter import NodeClaim
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.ports import Response, TransportError
from growth.providers.http import Unanswered
from growth.providers.linode import wire
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode.market import KINDS
from growth.sim.ports import Answer, Request
from tests.conformance.providers.stages import HOME, TOKEN, LinodeInstanceStage, claim, on
from tests.simulation.class_keeping import kept, told
from tests.simulation.crashing import Crashing, crashed
from tests.simulation.test_linode_classes import change, launched
from tests.simulation.test_linode_pools import Late, add_pool, gone, made
from tests.simulation.test_linode_rush import TROUBLE, claims_of
from tests.simulation.test_linode_rush import launched as bought

INSTANCES = "linode-instances"
JOIN = {"apiServerEndpoint": "10.0.0.2:6443", "caCertHashes": "sha256:" + "ab" * 32}


async def with_user_data(stage: LinodeInstanceStage) -> None:
    await stage.admin.create(SECRET, {"metadata": {"name": "join"}, "stringData": JOIN}, namespace=HOME)
    asked = {"mode": "kubeadm", "secretRef": {"name": "join"}, "cloudProvider": "none"}
    await stage.admin.patch(LINODE_NODE_CLASS, "default", {"spec": {"userData": asked}})
    await asyncio.sleep(2)


def test_a_machine_joins_with_user_data_of_its_own() -> None:
    """Its name, its provider ID by Linode's metadata service, and a token that ends by itself."""

    async def body(stage: LinodeInstanceStage) -> None:
        await with_user_data(stage)
        await made(stage.provider(), claim(stage, "web-1"))
        (machine,) = stage.fake.machines()
        assert (machine.label, machine.cluster, machine.image) == ("web-1", None, "linode/ubuntu24.04")
        document = yaml.safe_load(machine.user_data)
        files = {each["path"]: each["content"] for each in document["write_files"]}
        join = yaml.safe_load(files["/etc/kubernetes/growth-join.yaml"])
        arguments = {each["name"]: each["value"] for each in join["nodeRegistration"]["kubeletExtraArgs"]}
        assert join["nodeRegistration"]["name"] == "web-1"
        assert arguments["provider-id"].startswith("linode://")
        assert {"key": "karpenter.sh/unregistered", "effect": "NoExecute"} in join["nodeRegistration"]["taints"]
        assert "Metadata-Token" in files["/usr/local/sbin/growth-join"]
        assert TOKEN not in machine.user_data

    on(INSTANCES, body)


@pytest.mark.parametrize(("said", "sent"), [(None, 0), (0, 0), (512, 512)])
def test_a_machine_has_no_swap_unless_its_class_says_so(said: int | None, sent: int) -> None:
    """Linode gives machines a swap disk where nothing is said, and kubelets do not start with one."""

    async def body(stage: LinodeInstanceStage) -> None:
        await stage.admin.patch(LINODE_NODE_CLASS, "default", {"spec": {"swap_size": said}})
        await made(stage.provider(), claim(stage, "web-1"))
        (machine,) = stage.fake.machines()
        assert machine.settings["swap_size"] == sent

    on(INSTANCES, body)


def test_a_secret_that_is_missing_makes_no_machine() -> None:
    """The claim is told where it is looked for."""

    async def body(stage: LinodeInstanceStage) -> None:
        asked = {"mode": "kubeadm", "secretRef": {"name": "join"}}
        await stage.admin.patch(LINODE_NODE_CLASS, "default", {"spec": {"userData": asked}})
        with pytest.raises(NodeClassNotReady, match="no Secret join in namespace growth"):
            await stage.provider().create(claim(stage, "web-1"))
        assert stage.fake.machines() == ()

    on(INSTANCES, body)


def test_user_data_that_is_too_long_with_a_claims_labels_is_told_in_the_class() -> None:
    """By itself the class is ready. While the condition says it no claim is made and let go again and again."""

    async def body(stage: LinodeInstanceStage) -> None:
        long = {**JOIN, "prepare": "# " + "x" * 10_000}
        await stage.admin.create(SECRET, {"metadata": {"name": "join"}, "stringData": long}, namespace=HOME)
        async with kept(stage) as provider:
            await change(stage, userData={"mode": "kubeadm", "secretRef": {"name": "join"}, "cloudProvider": "none"})
            assert (await told(stage))[0] == "True"
            labels = {f"example.com/{number}": "y" * 60 for number in range(100)}
            with pytest.raises(NodeClassNotReady, match="16384"):
                await provider.create(claim(stage, "web-1", labels=labels))
            await asyncio.sleep(5)
            status, reason, message = await told(stage)
            assert (status, reason) == ("False", "Refused")
            assert "bytes for web-1, and" in message
            with pytest.raises(NodeClassNotReady, match="is not ready"):
                await provider.create(claim(stage, "web-2", labels=labels))
            await asyncio.sleep(400)
            assert (await told(stage))[0] == "True"

    on(INSTANCES, body)


def test_a_region_that_linode_does_not_have_is_told_by_its_setting() -> None:
    """No class is blamed for it, and nothing is sold or bought."""

    async def body(stage: LinodeInstanceStage) -> None:
        wanted = claim(stage, "web-1")
        for stage.zone in ("us-esat", "us-east/../us-east", "us-east/availability"):
            for call in (LinodeProvider.catalogue, LinodeProvider.list, lambda provider: provider.create(wanted)):
                with pytest.raises(CloudError, match=f"no region {stage.zone!r}.*--linode-region"):
                    await call(stage.provider())
        assert stage.fake.machines() == ()

    on(INSTANCES, body)


def test_user_data_needs_a_region_with_the_metadata_service() -> None:
    """Without user data machines are bought there too: their image joins by itself."""

    async def body(stage: LinodeInstanceStage) -> None:
        stage.zone = "ap-west"
        provider = stage.provider()
        await made(provider, claim(stage, "web-1"))
        await with_user_data(stage)
        with pytest.raises(
            NodeClassNotReady, match=r"spec\.userData is not possible in region ap-west, .* --linode-region"
        ):
            await provider.create(claim(stage, "web-2"))
        assert [each.label for each in stage.fake.machines()] == ["web-1"]

    on(INSTANCES, body)


@pytest.mark.parametrize(
    "spec", [{"vpcID": 3}, {"backupsEnabled": True}, {"lkeK8sVersion": "1.33"}, {"configuration": {"kernel": "x"}}]
)
def test_a_field_without_effect_is_refused(spec: dict[str, object]) -> None:
    """And named."""

    async def body(stage: LinodeInstanceStage) -> None:
        await stage.admin.patch(LINODE_NODE_CLASS, "default", {"spec": spec})
        with pytest.raises(NodeClassNotReady, match=f"spec.{next(iter(spec))}: Growth cannot make such instances"):
            await stage.provider().create(claim(stage, "web-1"))

    on(INSTANCES, body)


@pytest.mark.parametrize("mode", ["raw", ""])
def test_max_pods_need_user_data_that_growth_makes(mode: str) -> None:
    """With raw user data, or none, no kubelet would hear of them: the class says so."""

    async def body(stage: LinodeInstanceStage) -> None:
        await stage.admin.create(
            SECRET, {"metadata": {"name": "join"}, "stringData": {"userData": "#!/bin/sh"}}, namespace=HOME
        )
        asked = {"userData": {"mode": mode, "secretRef": {"name": "join"}}} if mode else {}
        async with kept(stage) as provider:
            await change(stage, kubelet={"maxPods": 20}, **asked)
            status, reason, message = await told(stage)
            assert (status, reason) == ("False", "FieldUnsupported")
            assert message.startswith("spec.kubelet.maxPods: ")
            await change(stage, kubelet=None, **asked)
            await made(provider, claim(stage, "web-1"))

    on(INSTANCES, body)


def test_a_class_whose_machines_cannot_join_says_so() -> None:
    """Linode's own images join no cluster by themselves. An image of one's own may, and user data says how."""

    async def body(stage: LinodeInstanceStage) -> None:
        async with kept(stage):
            status, reason, message = await told(stage)
            assert (status, reason) == ("True", "Ready")
            assert message.startswith("spec.userData is not set, ")
            assert "linode/ubuntu24.04" in message
            await change(stage, image="linode/ubuntu22.04")
            assert "linode/ubuntu22.04" in (await told(stage))[2]
            await change(stage, image="private/1")
            assert await told(stage) == ("True", "Ready", "")
            await change(stage, image=None)
            await with_user_data(stage)
            assert await told(stage) == ("True", "Ready", "")

    on(INSTANCES, body)


def test_a_class_whose_image_has_no_cloud_init_says_so() -> None:
    """Nothing there would read what Growth makes for it to join. Of an image that nobody can look at nothing is said."""

    async def body(stage: LinodeInstanceStage) -> None:
        account = stage.fake.account
        account.images |= {"private/1": "bare", "private/2": "with cloud-init"}
        account.without_cloud_init.add("private/1")
        await with_user_data(stage)
        async with kept(stage):
            await change(stage, image="private/1")
            status, reason, message = await told(stage)
            assert (status, reason) == ("True", "Ready")
            assert message.startswith("spec.image: Linode does not say of private/1 ")
            real = stage.clouds[-1].image

            async def silent(name: str) -> wire.Image:
                raise Unanswered("no answer")

            stage.clouds[-1].image = silent  # type: ignore[method-assign] # that nobody answers is no news of the image
            await change(stage, tags=["team:web"])
            assert (await told(stage))[2] == message
            stage.clouds[-1].image = real  # type: ignore[method-assign]
            for image in ("private/2", "private/3", None):
                await change(stage, image=image)
                assert await told(stage) == ("True", "Ready", "")
            await stage.admin.create(
                SECRET, {"metadata": {"name": "own"}, "stringData": {"userData": "{}"}}, namespace=HOME
            )
            await change(stage, image="private/1", userData={"mode": "raw", "secretRef": {"name": "own"}})
            assert await told(stage) == ("True", "Ready", "")

    on(INSTANCES, body)


def test_a_name_that_somebody_else_has_is_not_taken() -> None:
    """A machine without our mark stays as it is; the claim goes, and another is made."""

    async def body(stage: LinodeInstanceStage) -> None:
        account = stage.fake.account
        account.buy(label="web-1", kind=KINDS["g6-standard-2"], region=stage.zone)
        with pytest.raises(CreateError, match="not this cluster's") as told:
            await stage.provider().create(claim(stage, "web-1"))
        assert not told.value.retryable
        with pytest.raises(MachineNotFound):
            await stage.provider().delete(claim(stage, "web-1"))
        assert len(stage.fake.machines()) == 1

    on(INSTANCES, body)


@pytest.mark.parametrize("name", ["a", "my--pool-x7k2p", "a.b--c---d-1", "x--" * 20 + "xyz"])
def test_a_claim_of_any_name_gets_its_machine(name: str) -> None:
    """A name that Linode takes for no label is changed and gets a digest, the same at every try."""

    async def body(stage: LinodeInstanceStage) -> None:
        lost = False

        async def once(request: Request) -> Response:
            nonlocal lost
            answer = await stage.fake(request)
            if request.method == "POST" and not lost:
                lost = True
                raise TransportError("no answer")
            return answer

        wanted = claim(stage, name, uid="one")
        machine = await made(stage.provider(through=once), wanted)
        assert machine.claim_uid == wanted.metadata.uid
        assert len(stage.fake.ledger.purchases) == 1
        await gone(stage.provider(), wanted)
        assert await stage.held() == []

    on(INSTANCES, body)


def test_a_name_that_no_node_can_have_buys_nothing() -> None:
    """The machine would run and never join."""

    async def body(stage: LinodeInstanceStage) -> None:
        with pytest.raises(CreateError, match="64 characters") as told:
            await stage.provider().create(claim(stage, "x" * 64))
        assert not told.value.retryable
        assert stage.fake.machines() == ()

    on(INSTANCES, body)


def test_a_node_of_lke_is_never_deleted_by_itself() -> None:
    """Whatever a claim says, as one that was bought before --linode-cluster became --linode-region: the error says what to do."""

    async def body(stage: LinodeInstanceStage) -> None:
        add_pool(stage)
        await asyncio.sleep(70)
        (machine,) = stage.fake.machines()
        wrong = launched(claim(stage, "web-1"), f"linode://{machine.id}")
        with pytest.raises(
            InvariantViolation, match=r"is a node of LKE cluster \d+, .*: run Growth with the --linode-cluster"
        ):
            await stage.provider().delete(wrong)
        assert machine.status == "running"

    on(INSTANCES, body)


def test_a_machine_with_two_claims_is_deleted_for_neither() -> None:
    """Whether the claim names it or not: nobody can say whose it is."""

    async def body(stage: LinodeInstanceStage) -> None:
        provider, wanted = stage.provider(), claim(stage, "web-1")
        answer = await made(provider, wanted)
        (machine,) = stage.fake.machines()
        stage.fake.account.retag(
            machine, (*machine.tags, "karpenter.sh/nodeclaim:other", "growth.dev/uid:uid-of-other")
        )
        for which in (wanted, launched(wanted, answer.provider_id)):
            with pytest.raises(InvariantViolation, match="tagged for 2 claims"):
                await provider.delete(which)
        assert await stage.held() == [wanted.metadata.uid]

    on(INSTANCES, body)


def test_a_changed_class_is_drift() -> None:
    """Of everything that a machine is made with, but tags."""

    async def body(stage: LinodeInstanceStage) -> None:
        provider, wanted = stage.provider(), claim(stage, "web-1")
        machine = await made(provider, wanted)
        for spec, drift in (({"tags": ["team:web"]}, ""), ({"image": "linode/ubuntu22.04"}, "NodeClassDrifted")):
            await stage.admin.patch(LINODE_NODE_CLASS, "default", {"spec": spec})
            await asyncio.sleep(70)
            assert await provider.is_drifted(launched(wanted, machine.provider_id)) == drift

    on(INSTANCES, body)


def test_crashes_after_any_request_buy_and_end_one() -> None:
    """A purchase and a deletion, crashed after each of their requests."""

    async def body(stage: LinodeInstanceStage) -> int:
        for after in range(1, 40):
            wanted = claim(stage, f"one-{after}")
            cloud = Crashing(stage.fake, after)
            died = await crashed(made(stage.provider(through=cloud), wanted), cloud)
            await made(stage.provider(), wanted)
            assert await stage.held() == [wanted.metadata.uid]
            cloud = Crashing(stage.fake, after)
            died |= await crashed(gone(stage.provider(through=cloud), wanted), cloud)
            await gone(stage.provider(), wanted)
            assert await stage.held() == []
            assert len(stage.fake.ledger.purchases) == after
            if not died:
                return after
        raise AssertionError("it never ended")

    assert on(INSTANCES, body) > 3


def test_an_answer_that_never_comes_buys_once() -> None:
    """The label is unique: the repeat is refused, and finds the first."""

    async def body(stage: LinodeInstanceStage) -> None:
        lost = False

        async def once(request: Request) -> Response:
            nonlocal lost
            answer = await stage.fake(request)
            if request.method == "POST" and not lost:
                lost = True
                raise TransportError("no answer")
            return answer

        wanted: NodeClaim = claim(stage, "web-1")
        provider = stage.provider(through=once)
        machine = await provider.create(wanted)
        assert lost
        assert [each.label for each in stage.fake.machines()] == ["web-1"]
        assert machine.claim_uid == wanted.metadata.uid
        with pytest.raises((CloudUnavailable, InvariantViolation)):
            await provider.create(claim(stage, "web-1", uid="another"))

    on(INSTANCES, body)


@pytest.mark.parametrize("seconds", [5, 30, 55])
def test_a_purchase_that_lands_late_leaves_no_machine_without_its_claim(seconds: float) -> None:
    """A claim is not said to have no machine while one that nobody answered for may still come; then that one goes."""

    async def body(stage: LinodeInstanceStage) -> None:
        late = Late(stage, "POST", "/linode/instances", seconds=seconds)
        provider, wanted = stage.provider(through=late), claim(stage, "web-1")
        with pytest.raises(CreateError, match="did not answer"):
            await provider.create(wanted)
        await gone(provider, wanted)
        await asyncio.sleep(120)
        assert late.arrived.is_set()
        assert await stage.held() == []

    on(INSTANCES, body)


def test_a_purchase_that_lands_after_its_repeat_ended_leaves_nothing() -> None:
    """While the repeat's machine stands the label keeps the first out; when it is gone the first may still come."""

    async def body(stage: LinodeInstanceStage) -> None:
        late = Late(stage, "POST", "/linode/instances", seconds=45)
        provider, wanted = stage.provider(through=late), claim(stage, "web-1")
        with pytest.raises(CreateError, match="did not answer"):
            await provider.create(wanted)
        late.alone = True
        machine = await made(provider, wanted)
        assert not late.arrived.is_set()
        await gone(provider, launched(wanted, machine.provider_id))
        await asyncio.sleep(120)
        assert late.arrived.is_set()
        assert await stage.held() == []

    on(INSTANCES, body)


def test_a_machine_that_lists_do_not_show_yet_is_its_claims() -> None:
    """By its label, which is the claim's name, and by what this process bought."""

    async def body(stage: LinodeInstanceStage) -> None:
        wanted = claim(stage, "web-1")

        async def blind(request: Request) -> Response:
            """Lists by tag are behind."""
            answer = await stage.fake(request)
            if request.method != "GET" or "growth.dev/cluster" not in str(request.headers):
                return answer
            return Answer(answer.status, dict(answer.headers), b'{"data": [], "page": 1, "pages": 1, "results": 0}')

        provider = stage.provider(through=blind)
        machine = await made(provider, wanted)
        assert (await provider.create(wanted)).provider_id == machine.provider_id
        assert len(stage.fake.ledger.purchases) == 1
        other = stage.provider(through=blind)
        await other.delete(wanted)
        assert [each.status for each in stage.fake.machines()] in (["deleting"], [])

    on(INSTANCES, body)


@pytest.mark.parametrize("seed", range(3))
def test_every_claim_has_one_machine_whatever_goes_wrong(seed: int) -> None:
    """Two hundred purchases at once by two processes, a quarter of them by both, while much goes wrong; then all end as well."""

    async def ended(provider: LinodeProvider, wanted: NodeClaim) -> None:
        for attempt in range(60):
            try:
                await provider.delete(wanted)
            except MachineNotFound:
                return
            except InvariantViolation:
                raise
            except CloudError:
                pass
            await asyncio.sleep(min(5 * 1.5**attempt, 60))
        raise AssertionError(f"the machine of {wanted.metadata.name} does not end")

    async def body(stage: LinodeInstanceStage) -> None:
        stage.fake.faults = TROUBLE
        one, two = stage.provider(), stage.provider()
        claims = claims_of(stage)
        rush = [(two if number % 3 == 0 else one, wanted) for number, wanted in enumerate(claims)]
        both = [(two if provider is one else one, wanted) for provider, wanted in rush[:50]]
        machines = await asyncio.gather(*(bought(provider, wanted) for provider, wanted in [*rush, *both]))
        named = {machine.claim_uid: machine.provider_id for machine in machines}
        assert [machine.claim_uid for machine in machines] == [wanted.metadata.uid for _, wanted in [*rush, *both]]
        assert all(named[machine.claim_uid] == machine.provider_id for machine in machines)
        assert len(set(named.values())) == len(stage.fake.ledger.purchases) == len(claims)
        half = len(claims) // 2
        told = [*(launched(each, named[each.metadata.uid]) for each in claims[:half]), *claims[half:]]
        await asyncio.gather(*(ended(one, wanted) for wanted in told))
        assert stage.fake.ledger.standing == ()

    on(INSTANCES, body, seed=seed)
