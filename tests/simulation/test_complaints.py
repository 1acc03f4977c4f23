"""What a vendor refuses and no check foresaw stands in the conditions of node classes at once, whoever sells the machines."""

import asyncio

import pytest

from tests.conformance.providers.stages import on
from tests.simulation.class_keeping import KEPT, KeptStage, kept, read, told

# Until what was told is written.
WRITTEN_SECONDS = 3.0


@pytest.fixture(params=KEPT)
def cloud(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_refusal_that_no_check_foresaw_is_told_in_the_class(cloud: str) -> None:
    """For a few minutes: then it is tried again."""

    async def body(stage: KeptStage) -> None:
        async with kept(stage) as provider:
            assert (await told(stage))[0] == "True"
            provider.readiness.complain(await read(stage), "no such thing (invalid_input)")
            await asyncio.sleep(WRITTEN_SECONDS)
            status, reason, message = await told(stage)
            assert (status, reason) == ("False", "Refused")
            assert "no such thing (invalid_input)" in message
            await asyncio.sleep(340)
            assert (await told(stage))[0] == "True"

    on(cloud, body)


def test_a_token_that_is_refused_meanwhile_is_told_in_every_class(cloud: str) -> None:
    """Until it may be good again."""

    async def body(stage: KeptStage) -> None:
        await stage.admin.create(stage.node_class, {"metadata": {"name": "other"}, "spec": {}})
        async with kept(stage) as provider:
            provider.readiness.token_refused("make another")
            await asyncio.sleep(WRITTEN_SECONDS)
            for name in ("default", "other"):
                assert (await told(stage, name))[1:] == ("TokenRefused", "make another")
            await asyncio.sleep(400)
            for name in ("default", "other"):
                assert (await told(stage, name))[0] == "True"

    on(cloud, body)
