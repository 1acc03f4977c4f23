"""Laws of many writers at once: what Growth's promises about limits and leases stand on."""

import asyncio
from collections.abc import Awaitable

from growth.api.kinds import Json
from growth.kube.api import EventType
from growth.kube.errors import AlreadyExists, ApiError, Conflict, TooManyRequests
from tests.conformance.kinds import BUDGET, CONFIG_MAP, LEASE
from tests.conformance.test_pods import budget, running
from tests.conformance.world import FREE, World, name_of, revision_of


async def outcomes(*calls: Awaitable[object]) -> tuple[int, list[type[ApiError]]]:
    """How many calls passed, and the errors of the others."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    failed = [result for result in results if isinstance(result, BaseException)]
    assert all(isinstance(error, ApiError) for error in failed), failed
    return len(results) - len(failed), [type(error) for error in failed if isinstance(error, ApiError)]


async def test_of_many_conditional_writers_one_wins(world: World) -> None:
    """Of patches with the same revision exactly one passes; the others conflict."""
    made = await world.config_map(data={})
    passed, errors = await outcomes(
        *(
            world.api.patch(
                CONFIG_MAP,
                name_of(made),
                {"data": {f"k{number}": "x"}},
                namespace=world.namespace,
                revision=revision_of(made),
            )
            for number in range(10)
        )
    )
    assert (passed, errors) == (1, [Conflict] * 9)
    assert len((await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace))["data"]) == 1


async def test_unconditional_patches_lose_nothing(world: World) -> None:
    """Patches without a precondition that touch different keys all take effect."""
    made = await world.config_map(data={})
    wanted = {f"k{number}": "x" for number in range(5)}
    passed, errors = await outcomes(
        *(
            world.api.patch(CONFIG_MAP, name_of(made), {"data": {key: value}}, namespace=world.namespace)
            for key, value in wanted.items()
        )
    )
    assert (passed, errors) == (5, [])
    assert (await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace))["data"] == wanted


async def test_a_name_is_given_to_one_of_many(world: World) -> None:
    """Of creations with the same name exactly one passes."""
    kind = await world.kind(FREE)
    passed, errors = await outcomes(*(world.make(kind, {"n": number}, name="same") for number in range(8)))
    assert (passed, errors) == (1, [AlreadyExists] * 7)


async def test_a_lease_has_one_holder(world: World) -> None:
    """Of candidates that replace a Lease they have read, exactly one gets it."""
    made = await world.api.create(
        LEASE, {"metadata": {"name": "lock"}, "spec": {"holderIdentity": ""}}, namespace=world.namespace
    )
    passed, errors = await outcomes(
        *(
            world.api.update(
                LEASE, "lock", {**made, "spec": {"holderIdentity": f"c{number}"}}, namespace=world.namespace
            )
            for number in range(5)
        )
    )
    assert (passed, errors) == (1, [Conflict] * 4)


async def test_a_budget_is_not_overspent(world: World) -> None:
    """Of many evictions at once no more pass than the budget allows; the others are told to wait, or that they collided."""
    pods = [await running(world, labels={"app": "x"}) for _ in range(5)]
    held = await budget(world, allowed=2)
    passed, errors = await outcomes(*(world.api.evict(name_of(pod), namespace=world.namespace) for pod in pods))
    assert passed <= 2
    assert set(errors) <= {TooManyRequests, Conflict}
    spent = await world.api.get(BUDGET, name_of(held), namespace=world.namespace)
    assert spent["status"]["disruptionsAllowed"] == 2 - passed
    assert len(spent["status"].get("disruptedPods") or {}) == passed


async def test_a_list_and_what_follows_make_the_newer_list(world: World) -> None:
    """The objects of a list, changed by the events after its revision, are the objects of a later list."""
    kind = await world.kind(FREE)
    for number in range(6):
        await world.make(kind, {"n": number}, name=f"o{number}")
    before = await world.api.list(kind, namespace=world.namespace)

    async def churn(name: str) -> None:
        await world.api.patch(kind, name, {"spec": {"n": -1}}, namespace=world.namespace)
        if name in ("o1", "o4"):
            await world.api.delete(kind, name, namespace=world.namespace)
        if name == "o4":
            await world.make(kind, {"n": 4}, name=name)

    await asyncio.gather(*(churn(f"o{number}") for number in range(6)), *(world.make(kind, {}) for _ in range(3)))
    await world.make(kind, {}, name="end")
    after = await world.api.list(kind, namespace=world.namespace)
    kept: dict[str, Json] = {name_of(item): item for item in before.items}
    events = await world.events(kind, lambda event: name_of(event.object) == "end", revision=before.revision)
    for event in events:
        if event.type is EventType.DELETED:
            del kept[name_of(event.object)]
        else:
            kept[name_of(event.object)] = event.object
    assert [kept[name] for name in sorted(kept)] == list(after.items)
