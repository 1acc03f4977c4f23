"""Built-in kinds on the server in process beside a real one: equal manifests make equal objects or equal refusals."""

import asyncio
from typing import Any

import pytest

from growth.api.kinds import Json, Kind
from growth.kube.api import Api
from growth.kube.errors import ApiError
from growth.kube.memory import MemoryApi, MemoryServer
from growth.ports import SystemClock, SystemRandom
from tests.conformance.kinds import NAMESPACE
from tests.conformance.manifests import MANIFESTS, Manifest
from tests.conformance.programs import normal
from tests.conformance.world import Backend

# Chosen by each server for itself.
OWN = {"clusterIP", "clusterIPs", "nodePort", "lastPhaseTransitionTime"}
OWN_LABELS = {"batch.kubernetes.io/controller-uid", "controller-uid"}


def kind_of(server: MemoryServer, plural: str) -> Kind[Json]:
    (found,) = (one for one in server.catalogue if one.plural == plural)
    return Kind(found.group, found.version, found.kind, found.plural, found.namespaced, dict)


def comparable(value: Any) -> Any:
    """The object without what two servers may rightly give differently."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items() if key not in OWN | OWN_LABELS}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return value


async def outcome(call: Any) -> Any:
    """What was answered: an object, or the refusal's class, reason and the fields that it names."""
    try:
        return comparable(normal(await call))
    except ApiError as refusal:
        causes = refusal.details.get("causes") or ()
        named = sorted({(cause.get("reason", ""), cause.get("field", "")) for cause in causes})
        return (type(refusal).__name__, refusal.code, named)


async def story(api: Api, kind: Kind[Json], manifest: Manifest, *, name: str, namespace: str) -> list[Any]:
    where = namespace if kind.namespaced else ""
    body = {**manifest.body, "metadata": {"name": name}}
    told = [await outcome(api.create(kind, body, namespace=where))]
    if isinstance(told[0], tuple):
        return told
    if manifest.status is not None:
        change = {"status": manifest.status}
        told.append(await outcome(api.patch(kind, name, change, namespace=where, subresource="status")))
    told += [await outcome(api.patch(kind, name, change, namespace=where)) for change in manifest.changes]
    if not kind.namespaced:
        await api.delete(kind, name)
    return told


@pytest.mark.plane
@pytest.mark.parametrize(
    ("number", "manifest"), list(enumerate(MANIFESTS)), ids=[f"{one.kind}-{n}" for n, one in enumerate(MANIFESTS)]
)
def test_a_manifest_means_the_same_to_both(real_backend: Backend, number: int, manifest: Manifest) -> None:
    """Created, its status written and changed step by step, an object looks the same on both, and so do refusals."""
    namespace = name = f"manifest-{number}"

    async def law() -> None:
        server = MemoryServer(SystemClock(), SystemRandom())
        kind = kind_of(server, manifest.kind)
        memory = MemoryApi(server)
        async with real_backend.connect() as real:
            told = []
            for api in (memory, real):
                if kind.namespaced:
                    await api.create(NAMESPACE, {"metadata": {"name": namespace}})
                told.append(await story(api, kind, manifest, name=name, namespace=namespace))
        ours, theirs = told
        for step, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            assert our == their, f"step {step} of {manifest}"

    asyncio.run(law())
