"""What LKE pools are held to: the rules of claims, counts, tags and deletions, each tier."""

import asyncio
import contextlib
from typing import Any

import msgspec
import pytest

from growth.api import names
from growth.api.clouds import (
    CloudError,
    CloudMachine,
    CloudUnavailable,
    CreateError,
    InvariantViolation,
    MachineNotFound,
    QuotaExceeded,
)
from growth.api.karpenter import NodeClaim
from growth.api.linodeclasses import LinodeNodeClassSpec
from growth.ports import Response, TransportError
from growth.providers.linode.classes import hash_of
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode import Faults
from growth.sim.clouds.linode.market import KINDS
from growth.sim.clouds.linode.objects import Instance, Pool
from growth.sim.ports import Answer, Request
from tests.conformance.providers.stages import OURS, LkeStage, claim, need, on

TIERS = ("lke", "lke-enterprise")
CLAIM = "karpenter.sh/nodeclaim"
# The second is longer than a tag holds.
POOLS = ("web", "a-pool-with-quite-a-long-name-that-does-not-fit")


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=POOLS, ids=["short", "long"])
def pool(request: pytest.FixtureRequest) -> str:
    """What a pool of the cluster is called."""
    return str(request.param)


def wanted_of(stage: LkeStage, name: str, pool: str = "web", **more: Any) -> NodeClaim:
    kind = need(names.INSTANCE_TYPE_LABEL, more.pop("type_", stage.types[0]))
    return claim(stage, name, kind, labels={names.NODE_POOL_LABEL: pool}, **more)


async def made(provider: LinodeProvider, wanted: NodeClaim) -> CloudMachine:
    for _ in range(60):
        try:
            return await provider.create(wanted)
        except (CreateError, CloudUnavailable) as error:
            if isinstance(error, CreateError) and not error.retryable:
                raise
            await asyncio.sleep(5)
    raise AssertionError("no machine")


async def gone(provider: LinodeProvider, which: NodeClaim) -> None:
    for _ in range(200):
        with contextlib.suppress(CloudUnavailable):
            try:
                await provider.delete(which)
            except MachineNotFound:
                return
        await asyncio.sleep(5)
    raise AssertionError("it is still there")


def pools_of(stage: LkeStage) -> list[Pool]:
    return [pool for pool in stage.fake.account.pools.values() if pool.cluster.label == OURS]


def machine_of(stage: LkeStage, machine: CloudMachine) -> Instance:
    return stage.fake.account.instances[int(machine.provider_id.removeprefix("linode://"))]


def in_node(stage: LkeStage, pool: Pool, index: int) -> Instance:
    stage.fake.advance()
    number = pool.nodes[index].instance
    assert number is not None
    return stage.fake.account.instances[number]


def add_pool(stage: LkeStage, *tags: str, count: int = 1, type_: str = "") -> Pool:
    """Somebody else makes a pool in our cluster."""
    account = stage.fake.account
    pool = Pool(
        id=account.number(),
        cluster=stage.fake.cluster,
        kind=KINDS[type_ or stage.types[0]],
        tags=tags,
        created=account.now,
        autoscaler={"enabled": False},
    )
    account.pools[pool.id] = pool
    account.scale(pool, count)
    return pool


def writes(stage: LkeStage) -> list[tuple[str, str]]:
    return [(call.method, call.path) for call in stage.fake.calls if call.method != "GET"]


# -- one pool for each pool and type ------------------------------------------------------------------------------------


def test_a_pool_for_each_pool_and_type(tier: str) -> None:
    """Two pools of the cluster and two types of one are three of LKE's; the second claim of a key grows the first's."""

    async def body(stage: LkeStage) -> None:
        provider, (small, large) = stage.provider(), stage.types
        for name, pool, type_ in (("a", "web", small), ("b", "web", large), ("c", "db", small), ("d", "web", small)):
            await made(provider, wanted_of(stage, name, pool, type_=type_))
        shapes = sorted(
            (pool.kind.id, pool.count, next(t for t in pool.tags if "nodepool" in t)) for pool in pools_of(stage)
        )
        assert shapes == [
            (small, 1, "karpenter.sh/nodepool:db"),
            (small, 2, "karpenter.sh/nodepool:web"),
            (large, 1, "karpenter.sh/nodepool:web"),
        ]

    on(tier, body)


def test_a_pool_says_whose_it_is(tier: str) -> None:
    """Of which cluster, which pool of it and which class, and that Growth made it: all of that, and nothing else."""

    async def body(stage: LkeStage) -> None:
        await made(stage.provider(), wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        assert sorted(pool.tags) == [
            "growth.dev/cluster:abc123",
            "growth.dev/nodeclass:default",
            "karpenter.k8s.linode/lke-managed:true",
            "karpenter.sh/nodepool:web",
        ]

    on(tier, body)


def test_a_pool_that_is_missing_is_made_with_one_node_and_not_grown(tier: str) -> None:
    """For one claim there is one write to pools, one node and one machine; and few calls."""

    async def body(stage: LkeStage) -> None:
        await made(stage.provider(), wanted_of(stage, "a"))
        path = f"/v4beta/lke/clusters/{stage.fake.cluster.id}/pools"
        assert [each for each in writes(stage) if "/pools" in each[1]] == [("POST", path)]
        await asyncio.sleep(70)
        (pool,) = pools_of(stage)
        assert (pool.count, len(pool.nodes), len(stage.fake.ledger.purchases)) == (1, 1, 1)
        (cloud,) = stage.clouds
        assert cloud.journal.total <= 20

    on(tier, body)


def test_pools_of_both_apis_with_one_name_are_two(tier: str) -> None:
    """The key is the API group and the name."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        await made(provider, claim(stage, "b", labels={names.POOL_LABEL: "web"}))
        assert sorted(pool.count for pool in pools_of(stage)) == [1, 1]

    on(tier, body)


def test_a_foreign_pool_of_the_same_type_is_left_alone(tier: str) -> None:
    """Without our mark and for another pool, whatever else it says: not grown, not claimed from, not collected."""

    async def body(stage: LkeStage) -> None:
        foreign = add_pool(stage, "karpenter.sh/nodepool:web-2", "karpenter.k8s.linode/lke-managed=true", count=3)
        await asyncio.sleep(400)
        provider = stage.provider()
        machine = await made(provider, wanted_of(stage, "a"))
        assert machine_of(stage, machine).pool != foreign.id
        await provider.collect()
        assert (foreign.count, len(foreign.nodes)) == (3, 3)
        assert [each.claim for each in await provider.list()] == ["a"]

    on(tier, body)


@pytest.mark.parametrize("twice", ["karpenter.sh/nodepool=web", "karpenter.sh/nodepool:other"])
def test_what_is_bought_in_a_pool_is_deleted_from_it(tier: str, twice: str) -> None:
    """Whoever gave it a second tag: one that says the same changes nothing, and a pool of two is bought in by neither."""

    async def body(stage: LkeStage) -> None:
        provider, wanted = stage.provider(), wanted_of(stage, "b")
        await made(provider, wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        pool.tags = (*pool.tags, twice)
        await made(provider, wanted)
        assert len(pools_of(stage)) == (1 if "=" in twice else 2)
        await asyncio.sleep(70)
        await gone(provider, wanted)
        assert (pools_of(stage), pool.count) == ([pool], 1)

    on(tier, body)


def test_a_pool_that_lke_scales_itself_is_refused(tier: str) -> None:
    """Two cannot scale one pool; the claim says so, and other pools go on."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        pools_of(stage)[0].autoscaler = {"enabled": True, "min": 1, "max": 5}
        with pytest.raises(CreateError, match="autoscaler is on") as told:
            await provider.create(wanted_of(stage, "b"))
        assert (told.value.reason, told.value.retryable) == ("LKEAutoscalerEnabled", True)
        await made(provider, wanted_of(stage, "c", "db"))

    on(tier, body)


# -- claims -------------------------------------------------------------------------------------------------------------


def test_the_first_open_machine_is_claimed_and_nothing_is_bought(tier: str) -> None:
    """By the list's order; the tags that it has stay, the class' own come, all in one write."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        stage.fake.account.scale(pool, 3)
        await asyncio.sleep(70)
        open_ = [in_node(stage, pool, index) for index in (1, 2)]
        first = open_[0] if tier == "lke" else min(open_, key=lambda each: each.id)
        stage.fake.account.retag(first, (*first.tags, "team:web"))
        before = len(writes(stage))
        machine = await provider.create(wanted_of(stage, "b"))
        assert machine_of(stage, machine) is first
        assert writes(stage)[before:] == [("PUT", f"/v4beta/linode/instances/{first.id}")]
        assert pool.count == 3
        assert {"team:web", "karpenter.sh/nodeclaim:b", "karpenter.sh/nodepool:web", "growth.dev/uid:uid-of-b"} <= set(
            first.tags
        )

    on(tier, body)


def test_a_machine_without_a_claims_tag_is_claimed_by_writing_it(tier: str) -> None:
    """Whatever other tags it has; the pool does not grow, and the list says whose it is."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        stage.fake.account.scale(pool, 2)
        await asyncio.sleep(70)
        open_ = in_node(stage, pool, 1)
        stage.fake.account.retag(open_, (*open_.tags, "team:web"))
        machine = await made(provider, wanted_of(stage, "b"))
        assert (machine_of(stage, machine), pool.count) == (open_, 2)
        assert f"{CLAIM}:b" in open_.tags
        assert sorted(each.claim for each in await provider.list()) == ["a", "b"]

    on(tier, body)


def test_a_machine_is_claimed_in_one_write_with_its_identity(tier: str) -> None:
    """The name and the UID of the claim: without the second nobody could tell it from a later claim of that name."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        stage.fake.account.scale(pool, 2)
        await asyncio.sleep(70)
        before = len(writes(stage))
        machine = machine_of(stage, await made(provider, wanted_of(stage, "b")))
        assert {f"{CLAIM}:b", "growth.dev/uid:uid-of-b"} <= set(machine.tags)
        assert writes(stage)[before:] == [("PUT", f"/v4beta/linode/instances/{machine.id}")]

    on(tier, body)


def test_a_create_that_is_repeated_answers_with_the_machine_that_has_the_tag(tier: str) -> None:
    """By the same process and by the next; nothing is bought and nothing written."""

    async def body(stage: LkeStage) -> None:
        provider, wanted = stage.provider(), wanted_of(stage, "a")
        machine = await made(provider, wanted)
        before = writes(stage)
        for each in (provider, stage.provider()):
            assert (await made(each, wanted)).provider_id == machine.provider_id
        assert (writes(stage), pools_of(stage)[0].count) == (before, 1)

    on(tier, body)


def test_a_pool_without_an_open_machine_grows_by_one(tier: str) -> None:
    """For each claim: what is there has a claim, and nothing is on its way."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        for count, name in enumerate("abc", start=1):
            await made(provider, wanted_of(stage, name))
            (pool,) = pools_of(stage)
            assert (pool.count, len(stage.fake.ledger.purchases)) == (count, count)

    on(tier, body)


def test_a_machine_gets_all_of_its_tags_when_it_is_claimed(tier: str) -> None:
    """Whose it is, of which cluster, pool and class, how it was made, and what the class wants; LKE's own stay."""

    async def body(stage: LkeStage) -> None:
        machine = machine_of(stage, await made(stage.provider(), wanted_of(stage, "a")))
        own = {each for each in machine.tags if each.startswith(("lke", "nodepool="))}
        assert len(own) == (0 if tier == "lke" else 2)
        assert set(machine.tags) - own == {
            "team:web",
            "growth.dev/cluster:abc123",
            "growth.dev/nodeclass:default",
            "growth.dev/uid:uid-of-a",
            f"growth.dev/class-hash:{hash_of(LinodeNodeClassSpec())}",
            "karpenter.k8s.linode/lke-managed:true",
            "karpenter.sh/nodeclaim:a",
            "karpenter.sh/nodepool:web",
        }

    on(tier, body, tags=["team:web"])


def test_a_machine_that_goes_while_it_is_claimed_is_no_answer(tier: str) -> None:
    """It is looked at again before the claim is told of it; the claim gets another."""

    async def body(stage: LkeStage) -> None:
        lost: list[Instance] = []

        async def taken(request: Request) -> Response:
            answer = await stage.fake(request)
            if request.method == "PUT" and CLAIM in str(request.body) and not lost:
                lost.append(stage.fake.account.instances[int(request.url.rpartition("/")[2])])
                stage.fake.account.take_down(lost[0])
            return answer

        provider, wanted = stage.provider(through=taken), wanted_of(stage, "a")
        with pytest.raises(CreateError, match="is being deleted") as told:
            await provider.create(wanted)
        assert (told.value.reason, told.value.retryable) == ("NodePoolProvisioning", True)
        machine = machine_of(stage, await made(provider, wanted))
        assert machine is not lost[0]
        assert machine.status != "deleting"

    on(tier, body)


def test_a_claim_is_never_on_a_pool(tier: str) -> None:
    """`karpenter.sh/nodeclaim` is an instance's."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        for number in range(3):
            await made(provider, wanted_of(stage, f"claim-{number}"))
        assert not any(each.startswith(CLAIM) for pool in pools_of(stage) for each in pool.tags)
        claims = [[each for each in machine.tags if each.startswith(CLAIM)] for machine in stage.fake.machines()]
        assert sorted(claims) == [[f"{CLAIM}:claim-{number}"] for number in range(3)]

    on(tier, body)


def test_tags_with_an_equals_sign_are_read(tier: str) -> None:
    """A machine that another writer tagged so is claimed, and not ours to take."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        stage.fake.account.scale(pool, 2)
        await asyncio.sleep(70)
        other = in_node(stage, pool, 1)
        stage.fake.account.retag(other, (*other.tags, f"{CLAIM}=theirs", f"growth.dev/cluster:{OURS}"))
        machine = await made(provider, wanted_of(stage, "b"))
        assert machine_of(stage, machine) is not other
        assert pool.count == 3

    on(tier, body)


def test_names_longer_than_a_tag_stay_two(tier: str) -> None:
    """They are shortened with a digest; the list names the claims in full."""

    async def body(stage: LkeStage) -> None:
        provider, long = stage.provider(), "a-pool-with-quite-a-long-name-that-does-not-fit"
        wanted = [wanted_of(stage, f"{long}-{tail}", f"{long}-{tail[0]}") for tail in ("x1", "x2", "y1")]
        machines = [await made(provider, each) for each in wanted]
        assert len({machine.provider_id for machine in machines}) == 3
        assert sorted(pool.count for pool in pools_of(stage)) == [1, 2]
        assert all(len(tag) <= 50 for machine in stage.fake.machines() for tag in machine.tags)
        for each, machine in zip(wanted, machines, strict=True):
            assert (await stage.provider().create(each)).provider_id == machine.provider_id
            await gone(provider, each)
        assert pools_of(stage) == []

    on(tier, body)


# -- reservations ---------------------------------------------------------------------------------------------------------


def test_waiting_never_buys_twice(tier: str) -> None:
    """An instance that comes after the bound: the purchase says so, and its retry claims what was bought."""

    async def body(stage: LkeStage) -> None:
        stage.fake.faults = Faults(late_id=1.0)
        provider, wanted = stage.provider(), wanted_of(stage, "a")
        with pytest.raises(CreateError, match="after 15 s") as told:
            await provider.create(wanted)
        assert (told.value.reason, told.value.retryable) == ("NodePoolProvisioning", True)
        await made(provider, wanted)
        assert (pools_of(stage)[0].count, len(stage.fake.ledger.purchases)) == (1, 1)

    on(tier, body)


def test_a_machine_that_does_not_come_in_time_is_tried_again(tier: str) -> None:
    """The purchase is no failure of the claim: a later try ends with the machine."""

    async def body(stage: LkeStage) -> None:
        stage.fake.faults = Faults(late_id=1.0)
        provider, wanted = stage.provider(), wanted_of(stage, "a")
        with pytest.raises(CreateError, match="on its way") as told:
            await provider.create(wanted)
        assert told.value.retryable
        assert (await made(provider, wanted)).claim == "a"

    on(tier, body)


def test_tags_that_linode_shows_late_are_tried_again(tier: str) -> None:
    """A machine that was claimed just now does not show it: the claim does not fail, and a later try ends with that machine."""

    async def body(stage: LkeStage) -> None:
        before: dict[str, Response] = {}
        behind = [True]

        async def late(request: Request) -> Response:
            path = request.url
            if request.method == "PUT" and CLAIM in str(request.body):
                before[path] = await stage.fake(msgspec.structs.replace(request, method="GET", body=None))
            if request.method == "GET" and path in before and behind:
                behind.clear()
                return before[path]
            return await stage.fake(request)

        provider, wanted = stage.provider(through=late), wanted_of(stage, "a")
        with pytest.raises(CreateError, match="a moment ago") as told:
            await provider.create(wanted)
        assert (told.value.reason, told.value.retryable) == ("NodePoolProvisioning", True)
        await made(provider, wanted)
        assert (pools_of(stage)[0].count, len(stage.fake.ledger.purchases)) == (1, 1)

    on(tier, body)


def test_a_node_without_an_instance_is_waited_for_whether_it_says_null_or_zero() -> None:
    """Neither is a machine; the purchase claims the one that comes, and the pool is asked for no other."""

    async def body(stage: LkeStage) -> None:
        zeros = []

        async def with_zeros(request: Request) -> Response:
            answer = await stage.fake(request)
            said = answer.body.replace(b'"instance_id":null', b'"instance_id":0')
            zeros.append(said != answer.body)
            return Answer(answer.status, dict(answer.headers), said)

        machine = await made(stage.provider(through=with_zeros), wanted_of(stage, "a"))
        assert any(zeros)
        assert not [each.path for each in stage.fake.calls if each.path.endswith(("/instances/0", "/instances/None"))]
        assert machine_of(stage, machine).tags
        assert (pools_of(stage)[0].count, len(stage.fake.ledger.purchases)) == (1, 1)

    on("lke", body)


def test_tags_of_an_enterprise_pool_come_to_its_machines() -> None:
    """All of them, beside those that LKE gives each machine: by these a machine is found before its pool lists it."""

    async def body(stage: LkeStage) -> None:
        await made(stage.provider(), wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        stage.fake.account.scale(pool, 2)
        await asyncio.sleep(70)
        own = {f"lke{pool.cluster.id}", f"nodepool={pool.id}"}
        assert set(in_node(stage, pool, 1).tags) == {*pool.tags, *own}

    on("lke-enterprise", body)


def test_an_enterprise_machine_is_claimed_before_its_pool_lists_it() -> None:
    """Members are found among the instances: the pool says so up to a minute later."""

    async def body(stage: LkeStage) -> None:
        await made(stage.provider(), wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        assert [node.shown_from > stage.fake.account.now for node in pool.nodes] == [True]

    on("lke-enterprise", body)


def test_refusals_that_pass_are_told_as_provisioning(tier: str) -> None:
    """429 and 5xx of any call, whatever is said with them."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await provider.catalogue()
        for faults in (Faults(rate_limit=1.0), Faults(server_error=1.0), Faults(bad_gateway=1.0), Faults(busy=1.0)):
            stage.fake.faults = faults
            with pytest.raises(CreateError) as told:
                await provider.create(wanted_of(stage, "a"))
            assert (told.value.reason, told.value.retryable) == ("NodePoolProvisioning", True)
            stage.fake.faults = Faults()
            await asyncio.sleep(120)
        for status in (408, 409, 429, 500, 502, 503, 504):

            async def refusing(request: Request, status: int = status) -> Response:
                if request.method == "POST":
                    return Answer(status, {}, b'{"errors": [{"reason": "Not now."}]}')
                return await stage.fake(request)

            another = stage.provider(through=refusing)
            with pytest.raises(CreateError) as told:
                await another.create(wanted_of(stage, "a"))
            assert (told.value.reason, told.value.retryable) == ("NodePoolProvisioning", True)

    on(tier, body)


def test_a_node_that_never_gets_its_machine_goes_by_its_own_name(tier: str) -> None:
    """After five minutes it no longer counts, another is bought in its place, and it is deleted."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        stage.fake.faults = Faults(stuck=1.0)
        with pytest.raises(CreateError):
            await provider.create(wanted_of(stage, "b"))
        stage.fake.faults = Faults()
        (pool,) = pools_of(stage)
        stuck = pool.nodes[1].id
        for _ in range(14):
            await asyncio.sleep(30)
            await provider.collect()
        assert [node.id for node in pool.nodes if node.id == stuck] == []
        assert ("DELETE", f"/v4beta/lke/clusters/{pool.cluster.id}/nodes/{stuck}") in writes(stage)
        await made(provider, wanted_of(stage, "b"))
        assert (pool.count, len(stage.fake.ledger.purchases)) == (2, 2)

    on(tier, body)


def test_a_count_that_no_node_stands_for_is_lowered(tier: str) -> None:
    """Never below the nodes that are listed."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        stage.fake.faults = Faults(partial=1.0)
        with pytest.raises(CreateError):
            await provider.create(wanted_of(stage, "b"))
        stage.fake.faults = Faults()
        (pool,) = pools_of(stage)
        assert (pool.count, len(pool.nodes)) == (2, 1)
        for _ in range(14):
            await asyncio.sleep(30)
            await provider.collect()
        assert (pool.count, len(pool.nodes)) == (1, 1)
        assert await stage.held() == ["uid-of-a"]

    on(tier, body)


def test_what_nobody_claims_stands_for_five_minutes_and_no_longer(tier: str) -> None:
    """A purchase that was given up: its node goes, its pool with it where it was the last; a claimed one never."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        stage.fake.account.scale(pool, 2)
        add_pool(stage, *(tag.replace("web", "lost") for tag in pool.tags))
        await asyncio.sleep(295)
        assert await provider.collect() == 0
        await asyncio.sleep(15)  # as a machine comes a few seconds after it was asked for
        assert await provider.collect() == 2
        assert [each.id for each in pools_of(stage)] == [pool.id]
        assert await stage.held() == ["uid-of-a"]

    on(tier, body)


# -- two truths -----------------------------------------------------------------------------------------------------------


def test_two_pools_for_one_key_stop_that_key_only(tier: str) -> None:
    """Both in use: nothing is bought and nothing is deleted for it; others go on."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        second = add_pool(stage, *pool.tags)
        await asyncio.sleep(400)
        before = writes(stage)
        with pytest.raises(InvariantViolation, match="2 pools"):
            await provider.create(wanted_of(stage, "b"))
        assert await provider.collect() == 0
        assert writes(stage) == before
        assert second.id in stage.fake.account.pools
        await made(provider, wanted_of(stage, "c", "db"))

    on(tier, body)


def test_a_second_pool_of_a_lost_answer_is_removed(tier: str) -> None:
    """Young, ours, and nobody has a machine of it."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        add_pool(stage, *pool.tags)
        await asyncio.sleep(30)
        await made(provider, wanted_of(stage, "b"))
        assert [each.id for each in pools_of(stage)] == [pool.id]
        assert await stage.held() == ["uid-of-a", "uid-of-b"]

    on(tier, body)


def test_a_second_pool_without_machines_that_was_seen_for_long_is_nobodys_to_remove(tier: str) -> None:
    """No answer is as late: somebody made it, and decides which of the two stays."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        second = add_pool(stage, *pool.tags)
        await asyncio.sleep(70)
        machine = in_node(stage, second, 0)
        stage.fake.account.retag(machine, (*machine.tags, f"{CLAIM}:theirs", f"growth.dev/cluster:{OURS}"))
        with pytest.raises(InvariantViolation, match="2 pools"):
            await provider.create(wanted_of(stage, "b"))
        await asyncio.sleep(400)
        second.nodes[0].instance = None
        del stage.fake.account.instances[machine.id]
        with pytest.raises(InvariantViolation, match="2 pools"):
            await provider.create(wanted_of(stage, "b"))
        assert second.id in stage.fake.account.pools

    on(tier, body)


def test_two_machines_for_one_claim_are_a_contradiction(tier: str) -> None:
    """For that pool and type nothing is bought and nothing is deleted; others go on."""

    async def body(stage: LkeStage) -> None:
        provider, wanted = stage.provider(), wanted_of(stage, "a")
        one = machine_of(stage, await made(provider, wanted))
        other = machine_of(stage, await made(provider, wanted_of(stage, "b")))
        (pool,) = pools_of(stage)
        stage.fake.account.scale(pool, 3)
        await asyncio.sleep(400)
        stage.fake.account.retag(other, tuple(tag.replace(":b", ":a").replace("of-b", "of-a") for tag in other.tags))
        before = writes(stage)
        new = stage.provider()
        with pytest.raises(InvariantViolation, match="2 machines are tagged for claim a"):
            await new.create(wanted)
        for _ in range(4):
            with pytest.raises(CreateError, match="on its way"):
                await new.create(wanted_of(stage, "c"))
        await asyncio.sleep(10)
        with pytest.raises(InvariantViolation, match="2 machines are tagged for claim a"):
            await new.create(wanted_of(stage, "c"))
        assert await new.collect() == 0
        assert writes(stage) == before
        assert {one.status, other.status} == {"running"}
        await made(new, wanted_of(stage, "d", "db"))

    on(tier, body)


def test_a_machine_with_two_claims_is_a_contradiction(tier: str) -> None:
    """It is given to neither, the list says of nobody that it is theirs, and its pool and type stop; others go on."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        machine = machine_of(stage, await made(provider, wanted_of(stage, "a")))
        (pool,) = pools_of(stage)
        stage.fake.account.scale(pool, 2)
        await asyncio.sleep(400)
        stage.fake.account.retag(machine, (*machine.tags, f"{CLAIM}:other"))
        before, new = writes(stage), stage.provider()
        for name in ("a", "b"):
            with pytest.raises(InvariantViolation, match="tagged for 2 claims"):
                await new.create(wanted_of(stage, name))
        assert await new.collect() == 0
        assert [each.claim for each in await provider.list()] == [""]
        assert writes(stage) == before
        await made(new, wanted_of(stage, "c", "db"))

    on(tier, body)


def test_a_machine_with_two_claims_is_deleted_for_neither(tier: str) -> None:
    """Whether the claim names it or not: nobody can say whose it is."""

    async def body(stage: LkeStage) -> None:
        provider, wanted = stage.provider(), wanted_of(stage, "a")
        answer = await made(provider, wanted)
        machine = machine_of(stage, answer)
        await asyncio.sleep(70)
        stage.fake.account.retag(machine, (*machine.tags, f"{CLAIM}:other", "growth.dev/uid:uid-of-other"))
        launched = NodeClaim(
            metadata=wanted.metadata, spec=wanted.spec, status=type(wanted.status)(provider_id=answer.provider_id)
        )
        for which in (wanted, launched):
            with pytest.raises(InvariantViolation, match="tagged for 2 claims"):
                await stage.provider().delete(which)
        assert machine.status == "running"

    on(tier, body)


# -- ends -----------------------------------------------------------------------------------------------------------------


def test_a_node_is_deleted_and_the_pool_only_with_the_last(tier: str) -> None:
    """Never the machine by itself: LKE would make another."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        first, second = wanted_of(stage, "a"), wanted_of(stage, "b")
        await made(provider, first)
        await made(provider, second)
        (pool,) = pools_of(stage)
        await asyncio.sleep(70)
        await gone(provider, first)
        assert (pool.count, len(pool.nodes), pool.id in stage.fake.account.pools) == (1, 1, True)
        await gone(provider, second)
        assert pools_of(stage) == []
        deleted = [path for method, path in writes(stage) if method == "DELETE"]
        assert [("/nodes/" in path, "/pools/" in path) for path in deleted] == [(True, False), (False, True)]

    on(tier, body)


def test_a_pool_goes_with_its_last_node_and_not_before(tier: str) -> None:
    """The nodes of others in it stay."""

    async def body(stage: LkeStage) -> None:
        provider, claims = stage.provider(), [wanted_of(stage, name) for name in "abc"]
        for each in claims:
            await made(provider, each)
        (pool,) = pools_of(stage)
        await asyncio.sleep(70)
        for left in (2, 1):
            await gone(provider, claims.pop())
            assert pools_of(stage) == [pool]
            assert (pool.count, len(pool.nodes)) == (left, left)
        await gone(provider, claims.pop())
        assert pools_of(stage) == []

    on(tier, body)


@pytest.mark.parametrize("how", ["no answer", "503", "it lacks the pool"])
def test_a_pool_list_that_fails_says_nothing_of_the_machine(tier: str, how: str) -> None:
    """The deletion is tried again, and nobody hears that the machine is gone."""

    async def body(stage: LkeStage) -> None:
        wanted = wanted_of(stage, "a")
        machine = await made(stage.provider(), wanted)
        await asyncio.sleep(70)

        async def without_pools(request: Request) -> Response:
            if "/pools" not in request.url:
                return await stage.fake(request)
            if how == "no answer":
                raise TransportError("the connection broke")
            if how == "503":
                return Answer(503, {}, b'{"errors": [{"reason": "Not now."}]}')
            return Answer(200, {}, b'{"data": [], "page": 1, "pages": 1, "results": 0}')

        deaf = stage.provider(through=without_pools)
        launched = NodeClaim(
            metadata=wanted.metadata, spec=wanted.spec, status=type(wanted.status)(provider_id=machine.provider_id)
        )
        for which in (wanted, launched):
            with pytest.raises(CloudError) as told:
                await deaf.delete(which)
            assert isinstance(told.value, CloudUnavailable)
        assert await stage.held() == ["uid-of-a"]

    on(tier, body)


def test_an_enterprise_node_that_is_not_listed_yet_is_not_gone() -> None:
    """With others in its pool it can be deleted only when LKE lists it."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        first, second = wanted_of(stage, "a"), wanted_of(stage, "b")
        await asyncio.gather(made(provider, first), made(provider, second))
        with pytest.raises(CloudUnavailable, match="does not list its node yet"):
            await provider.delete(first)
        await gone(provider, first)
        assert await stage.held() == ["uid-of-b"]

    on("lke-enterprise", body)


def test_the_last_node_stays_while_a_purchase_counts_on_its_pool(tier: str, pool: str) -> None:
    """A deletion beside purchases of the same key: every purchase has its machine at the end."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        for number in range(6):
            old, new = wanted_of(stage, f"old-{number}", pool), wanted_of(stage, f"new-{number}", pool)
            await made(provider, old)
            await asyncio.sleep(70)
            await asyncio.gather(gone(provider, old), made(provider, new))
            assert await stage.held() == [f"uid-of-new-{number}"]
            await gone(provider, new)
        assert pools_of(stage) == []

    on(tier, body)


@pytest.mark.parametrize("listed", [True, False])
def test_the_last_node_is_not_deleted_under_a_purchase(tier: str, *, listed: bool) -> None:
    """Whose own node somebody took away at Linode: what it counts on stays until it gives up, then the pool goes with its last."""

    async def body(stage: LkeStage) -> None:
        provider, old, new = stage.provider(), wanted_of(stage, "old"), wanted_of(stage, "new")
        await made(provider, old)
        (pool,) = pools_of(stage)
        await asyncio.sleep(70 if listed else 0)
        stage.fake.faults = Faults(late_id=1.0)
        buying = asyncio.ensure_future(provider.create(new))
        await asyncio.sleep(5)
        assert pool.count == 2
        stage.fake.account.remove_node(pool, pool.nodes[-1])
        with pytest.raises(CloudUnavailable, match="counts on the last node"):
            await provider.delete(old)
        assert pools_of(stage) == [pool]
        with pytest.raises(CreateError):
            await buying
        await gone(provider, old)
        assert pools_of(stage) == []

    on(tier, body)


def test_a_full_account_stops_purchases_for_a_while(tier: str) -> None:
    """A limit is no want of stock: no offering is left out for it."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        add_pool(stage, count=100)
        add_pool(stage, count=100)
        add_pool(stage, count=50)
        with pytest.raises(QuotaExceeded, match="limit"):
            await provider.create(wanted_of(stage, "a"))
        before = writes(stage)
        with pytest.raises(QuotaExceeded):
            await provider.create(wanted_of(stage, "b"))
        assert writes(stage) == before
        catalogue = await provider.catalogue()
        assert all(offering.available for kind in catalogue.types for offering in kind.offerings)

    on(tier, body)


def test_a_pool_that_takes_no_more_nodes_stops_that_pool_only(tier: str) -> None:
    """The class is not blamed, the type is not left out, and another pool of the cluster gets its machine."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        stage.fake.account.scale(pool, 100)
        await asyncio.sleep(100)
        for instance in stage.fake.machines():
            if not any(tag.startswith(CLAIM) for tag in instance.tags):
                mark = (f"{CLAIM}:other-{instance.id}", f"growth.dev/cluster:{OURS}")
                stage.fake.account.retag(instance, (*instance.tags, *mark))
        with pytest.raises(QuotaExceeded, match="takes no more nodes"):
            await provider.create(wanted_of(stage, "b"))
        assert (await made(provider, wanted_of(stage, "c", "db"))).instance_type == stage.types[0]

    on(tier, body)


def test_a_token_that_may_not_write_is_told_in_words(tier: str) -> None:
    """And which rights it needs."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        stage.fake.readonly = True
        with pytest.raises(CloudError, match="make another with the rights to read and write"):
            await provider.create(wanted_of(stage, "a"))

    on(tier, body)


# -- writes that arrive late ----------------------------------------------------------------------------------------------


class Late:
    """The way to the fake on which a write of that sort takes half a minute; `alone`: others of it pass meanwhile.

    `status` is what somebody on the way answers meanwhile; 0: nobody answers.
    """

    def __init__(
        self,
        stage: LkeStage,
        method: str,
        word: str,
        *,
        alone: bool = False,
        seconds: float = 30.0,
        status: int = 0,
    ) -> None:
        self.alone = alone
        self._status = status
        self._seconds = seconds
        self.sent = asyncio.Event()
        self._stage = stage
        self._sort = (method, word)
        self.arrived = asyncio.Event()
        self._used = False

    async def __call__(self, request: Request) -> Response:
        method, word = self._sort
        over = self.arrived.is_set() or (self._used and self.alone)
        if over or request.method != method or word not in request.url + str(request.body):
            return await self._stage.fake(request)
        if not self._used:
            self._used = True
            self.sent.set()
            self._stage.kernel.create_task(self._later(request), name="late")
        if self._status:
            body = b'{"errors": [{"reason": "Request timed out"}]}'
            return Answer(self._status, {"content-type": "application/json"}, body)
        raise TransportError("no answer")

    async def _later(self, request: Request) -> None:
        await asyncio.sleep(self._seconds)
        await self._stage.fake(request)
        self.arrived.set()


# Each says nothing of what became of a write.
@pytest.fixture(params=[0, 408, 504], ids=["lost", "408", "504"])
def status(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_a_count_that_arrives_late_takes_no_node_away(tier: str, status: int) -> None:
    """Until it is seen, or can no longer come, nobody else writes the pool's count."""

    async def body(stage: LkeStage) -> None:
        late = Late(stage, "PUT", "count", alone=True, status=status)
        provider = stage.provider(through=late)
        claims = [wanted_of(stage, f"claim-{number}") for number in range(4)]
        await made(provider, claims[0])
        machines = await asyncio.gather(*(made(provider, each) for each in claims[1:]))
        await asyncio.wait_for(late.arrived.wait(), 120)
        await asyncio.sleep(60)
        assert len({each.provider_id for each in machines}) == 3
        assert await stage.held() == sorted(each.metadata.uid for each in claims)
        assert len(stage.fake.ledger.purchases) == 4

    on(tier, body)


@pytest.mark.parametrize("after", [0, 12])
def test_tags_that_arrive_late_take_no_machine_from_another(tier: str, status: int, after: int) -> None:
    """A machine whose tags were written without an answer is that claim's or nobody's, until they can no longer come."""

    async def body(stage: LkeStage) -> None:
        late = Late(stage, "PUT", f"{CLAIM}:first", status=status)
        provider = stage.provider(through=late)
        first, second = wanted_of(stage, "first"), wanted_of(stage, "second")
        with pytest.raises(CreateError):
            await provider.create(first)
        await asyncio.sleep(after)
        machines = [await made(provider, second), await made(provider, first)]
        await asyncio.wait_for(late.arrived.wait(), 120)
        await asyncio.sleep(60)
        shown = {each.provider_id: each.claim for each in await provider.list()}
        assert [shown[each.provider_id] for each in machines] == ["second", "first"]

    on(tier, body)


def test_a_deletion_of_a_pool_that_arrives_late_takes_no_new_node(tier: str, pool: str, status: int) -> None:
    """Nothing is bought in a pool that may go any moment."""

    async def body(stage: LkeStage) -> None:
        late = Late(stage, "DELETE", "/pools/", status=status)
        provider = stage.provider(through=late)
        old, new = wanted_of(stage, "old", pool), wanted_of(stage, "new", pool)
        await made(provider, old)
        await asyncio.sleep(70)
        with contextlib.suppress(CloudUnavailable):
            await provider.delete(old)
        await made(provider, new)
        await gone(provider, old)
        await asyncio.sleep(60)
        assert await stage.held() == ["uid-of-new"]

    on(tier, body)


def test_a_deletion_of_a_pool_that_is_repeated_takes_no_new_node(tier: str, pool: str) -> None:
    """A purchase that comes between two attempts waits until the deletion is done."""

    async def body(stage: LkeStage) -> None:
        refused = asyncio.Event()

        async def refusing_once(request: Request) -> Response:
            if request.method == "DELETE" and "/pools/" in request.url and not refused.is_set():
                refused.set()
                return Answer(503, {"retry-after": "6"}, b"{}")
            return await stage.fake(request)

        provider = stage.provider(through=refusing_once)
        old, new = wanted_of(stage, "old", pool), wanted_of(stage, "new", pool)
        await made(provider, old)
        await asyncio.sleep(70)
        ending = asyncio.ensure_future(gone(provider, old))
        await refused.wait()
        await asyncio.gather(ending, made(provider, new))
        assert await stage.held() == ["uid-of-new"]

    on(tier, body)


def test_a_new_leader_waits_for_the_last_writes_of_the_one_before(tier: str) -> None:
    """A count and tags that the old one sent arrive after the new one has begun: nothing is lost, nothing is shared."""

    async def body(stage: LkeStage) -> None:
        first = wanted_of(stage, "first")
        await made(stage.provider(), first)
        for number, (method, word) in enumerate((("PUT", "count"), ("PUT", f"{CLAIM}:old-1"))):
            late = Late(stage, method, word, seconds=8)
            old = asyncio.ensure_future(made(stage.provider(through=late), wanted_of(stage, f"old-{number}")))
            await late.sent.wait()
            old.cancel()
            await asyncio.gather(old, return_exceptions=True)
            new = stage.provider()
            claims = [wanted_of(stage, f"old-{number}"), wanted_of(stage, f"new-{number}")]
            machines = await asyncio.gather(*(made(new, each) for each in reversed(claims)))
            await asyncio.sleep(60)
            shown = {each.provider_id: each.claim for each in await new.list()}
            assert [shown[each.provider_id] for each in machines] == [f"new-{number}", f"old-{number}"]
        assert await stage.held() == [f"uid-of-{each}" for each in ("first", "new-0", "new-1", "old-0", "old-1")]
        assert len(stage.fake.ledger.purchases) == 5

    on(tier, body)
