"""Two hundred purchases at once while much goes wrong: every claim gets one machine, and pays for one."""

import asyncio
import collections
import contextlib
import itertools
from typing import Any

import pytest

from growth.api import names
from growth.api.clouds import CloudMachine, CloudUnavailable, CreateError
from growth.api.karpenter import NodeClaim
from growth.providers.contract import CloudProvider
from growth.sim.clouds.hetzner import Faults
from tests.conformance.providers.stages import TOKEN, HetznerStage, claim, need, on

CLAIMS = 200
# Any type that fits: where some are short for a while there are others.
AMD64 = need(names.ARCH_LABEL, "amd64")


async def launched(provider: CloudProvider, wanted: NodeClaim) -> CloudMachine:
    """As the lifecycle does it: again after every error that passes, a little later each time."""
    for attempt in range(60):
        try:
            return await provider.create(wanted)
        except (CloudUnavailable, CreateError) as error:
            if isinstance(error, CreateError) and not error.retryable:
                raise
            await asyncio.sleep(min(5 * 1.5**attempt, 60))
    raise AssertionError(f"no machine for {wanted.metadata.name}")


def purchases_of(stage: HetznerStage) -> None:
    """Whatever was bought beyond the one that stands had failed at the vendor's and was gone before the next."""
    failed = {
        number
        for action in stage.fake.project.actions.values()
        if action.failed and action.error is not None and action.error[0] != "server_deleted"
        for kind, number in action.resources
        if kind == "server"
    }
    assert failed  # or this would say nothing
    by_claim = collections.defaultdict(list)
    for purchase in stage.fake.ledger.purchases:
        by_claim[purchase.labels["growth.dev/claim-uid"]].append(purchase)
    assert len(by_claim) == CLAIMS
    for bought in by_claim.values():
        assert [each.ended is None for each in bought] == [False] * (len(bought) - 1) + [True]
        for earlier, later in itertools.pairwise(bought):
            assert earlier.server in failed
            assert earlier.ended is not None
            assert earlier.ended <= later.bought
    assert len(stage.fake.ledger.purchases) - CLAIMS == len(
        [each for each in stage.fake.ledger.purchases if each.server in failed]
    )


def rush(seed: int, **spec: Any) -> None:
    """All at once, with a tenth of the calls refused, answers lost and actions that fail late."""

    async def body(stage: HetznerStage) -> None:
        stage.fake.faults = Faults(
            rate_limit=0.04,
            server_error=0.03,
            bad_gateway=0.03,
            half_done=0.02,
            lost_request=0.02,
            lost_answer=0.04,
            late_failure=0.05,
        )
        provider = stage.provider()
        claims = [claim(stage, f"claim-{number}", AMD64) for number in range(CLAIMS)]
        machines = await asyncio.gather(*(launched(provider, wanted) for wanted in claims))
        stage.fake.faults = Faults()
        assert [machine.claim_uid for machine in machines] == [wanted.metadata.uid for wanted in claims]
        assert len({machine.provider_id for machine in machines}) == CLAIMS
        assert await stage.held() == sorted(wanted.metadata.uid for wanted in claims)
        purchases_of(stage)
        (client,) = stage.clients
        outcomes = {outcome for _, outcome in client.journal.counts()}
        assert outcomes >= {"200", "201", "lost", "429", "502"}  # or this test would say nothing
        told = [str(entry) for entry in client.journal.entries()]
        assert not any(TOKEN[at : at + 8] in text for text in told for at in range(len(TOKEN) - 8))
        if spec:
            seated = [len(group.servers) for group in stage.fake.project.placement_groups.values()]
            assert sum(seated) == CLAIMS
            assert max(seated) <= 10

    on("hetzner", body, seed=seed, **spec)


@pytest.mark.parametrize("seed", range(20))
def test_every_claim_has_one_machine_whatever_goes_wrong(seed: int) -> None:
    """One machine a claim, one claim a machine, and nothing bought beyond that but what the vendor could not complete."""
    rush(seed)


@pytest.mark.parametrize("seed", range(4))
def test_placement_groups_are_filled_and_not_overfilled(seed: int) -> None:
    """The same where machines stand on different hosts: ten to a group, in as many groups as it takes."""
    rush(seed, placementGroup="Spread")


def test_a_spent_account_delays_and_harms_nothing() -> None:
    """Somebody else uses up the account's calls: no claim is lost, none is bought twice, and the calls are not forced."""

    async def body(stage: HetznerStage) -> None:
        provider = stage.provider()
        await provider.catalogue()
        stage.fake.spend(3600)
        claims = [claim(stage, f"claim-{number}") for number in range(20)]
        results = await asyncio.gather(*(launched(provider, wanted) for wanted in claims), return_exceptions=True)
        assert not [each for each in results if isinstance(each, BaseException)]
        assert await stage.held() == sorted(wanted.metadata.uid for wanted in claims)
        refused = [call for call in stage.fake.calls if call.code == "rate_limit_exceeded"]
        assert len(refused) <= 3

    on("hetzner", body)


def test_a_spent_account_is_told_as_silence() -> None:
    """Nothing is said to be missing because nobody may ask."""

    async def body(stage: HetznerStage) -> None:
        provider, wanted = stage.provider(), claim(stage, "one")
        made = await provider.create(wanted)
        await asyncio.sleep(120)
        stage.fake.spend(3600)
        for _ in range(100):
            stage.fake.spend(3600)
            with contextlib.suppress(CloudUnavailable):
                assert (await provider.get(made.provider_id)).provider_id == made.provider_id
            await asyncio.sleep(0.5)
        assert await stage.held() == ["uid-of-one"]

    on("hetzner", body)
