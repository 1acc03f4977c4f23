"""Wherever the API is said to be, the cluster's tier is found out, or it is said what to do."""

import asyncio
import urllib.parse

import msgspec
import pytest

from growth.api import names
from growth.api.clouds import CloudUnavailable
from growth.api.conditions import find
from growth.api.kinds import Json
from growth.ports import Response
from growth.sim.ports import Answer, Request
from tests.conformance.providers.stages import OURS, LkeStage, Wire, claim, on
from tests.simulation.class_keeping import kept, read, told
from tests.simulation.test_linode_pools import TIERS, made

GATEWAY = "https://gateway.test/clouds/linode"


def through_gateway(stage: LkeStage, version: str) -> Wire:
    """Something in between that has the vendor's API, in one version, at a path of its own."""

    async def forward(request: Request) -> Response:
        path = request.url.removeprefix(GATEWAY)
        return await stage.fake(msgspec.structs.replace(request, url=f"https://linode.test{version}{path}"))

    return forward


def without_tiers(stage: LkeStage) -> Wire:
    """The API as it is for accounts that were never given LKE Enterprise."""

    async def ask(request: Request) -> Response:
        answer = await stage.fake(request)
        if not urllib.parse.urlsplit(request.url).path.endswith("/lke/clusters"):
            return answer
        body: Json = msgspec.json.decode(answer.body)
        for cluster in body["data"]:
            del cluster["tier"]
        return Answer(answer.status, dict(answer.headers), msgspec.json.encode(body))

    return ask


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("path", ["", "/", "/v4", "/v4/", "/v4beta", "/v4beta/"])
def test_the_tier_is_found_whichever_version_the_address_names(tier: str, path: str) -> None:
    """Only v4beta tells it, and v4 is what the vendor's own pages name."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider(endpoint=f"https://linode.test{path}")
        assert (await provider.parts()).home.tier == stage.tier
        await made(provider, claim(stage, "one"))
        assert {each.path.split("/")[1] for each in stage.fake.calls} == {"v4beta"}

    on(tier, body)


@pytest.mark.parametrize("tier", TIERS)
def test_a_path_that_names_no_version_is_taken_as_it_is(tier: str) -> None:
    """Whoever is behind it may well ask v4beta."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider(endpoint=GATEWAY, through=through_gateway(stage, "/v4beta"))
        assert (await provider.parts()).home.tier == stage.tier

    on(tier, body)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("version", ["/v4", "/v3"])
def test_an_address_that_does_not_tell_the_tier_is_refused(tier: str, version: str) -> None:
    """Nothing is bought on a guess: the error says which address will do."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider(endpoint=GATEWAY, through=through_gateway(stage, version))
        with pytest.raises(CloudUnavailable, match=r"--api-endpoint .* ends with /v4beta"):
            await provider.create(claim(stage, "one"))
        assert stage.fake.ledger.purchases == ()

    on(tier, body)


def test_an_account_that_knows_no_tiers_has_standard_clusters() -> None:
    """Linode does not show the field to everybody."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider(through=without_tiers(stage))
        assert (await provider.parts()).home.tier == "standard"

    on("lke", body)


@pytest.mark.parametrize(
    ("labels", "said"), [((), "no LKE cluster is called"), ((OURS, OURS), "2 LKE clusters are called")]
)
@pytest.mark.parametrize("tier", TIERS)
def test_a_label_that_no_cluster_has_or_several_buys_nothing_and_is_told(
    tier: str, labels: tuple[str, ...], said: str
) -> None:
    """For as long as it is so: each class says it, and goes on as soon as one cluster is called so."""

    async def body(stage: LkeStage) -> None:
        clusters = stage.fake.account.clusters
        ours = [number for number, each in clusters.items() if each.label == OURS]
        other = stage.fake.account.add_cluster("else", region=stage.zone, tier=stage.tier)
        if labels:
            other.label = OURS
        else:
            clusters[ours[0]].label = "unknown"
        async with kept(stage) as provider:
            with pytest.raises(CloudUnavailable, match=said):
                await provider.create(claim(stage, "one"))
            with pytest.raises(CloudUnavailable, match=said):
                await provider.list()
            await asyncio.sleep(1800)
            judged = find((await read(stage)).status.conditions, names.VALIDATION_SUCCEEDED)
            assert judged is not None
            assert (judged.status, judged.reason) == ("Unknown", "NotJudged")
            assert said in judged.message
            clusters[ours[0]].label, other.label = OURS, "else"
            await asyncio.sleep(360)
            assert (await told(stage))[0] == "True"
            await made(provider, claim(stage, "one"))

    on(tier, body)
