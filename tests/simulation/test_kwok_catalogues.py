"""The whole way from pod to machine and back with each catalogue that the KWOK cloud can sell."""

import asyncio
import json
import pathlib

import pytest

from growth.api import names
from growth.api.core import CONFIG_MAP, NAMESPACE
from growth.api.crds import all_crds
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Json, Kind
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.api.nodes import NODE
from growth.api.workloads import REPLICA_SET
from growth.operator.checks import identity_of
from growth.operator.clouds import kwok_catalogue
from growth.operator.settings import SettingError, read
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.replica import KwokCloud, Replica
from growth.sim.world.cluster import SimCluster

_CRD: Kind[Json] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, dict
)
FILE = [
    {
        "name": "own-4",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "4", "memory": "16Gi", "pods": "58"},
        "offerings": [{"price": 0.2, "zone": "here", "capacityType": "on-demand"}],
    }
]


def whole_way(**flags: str) -> set[tuple[str, str]]:
    """Buys for ten pods of one core each, sees them run, and sees every machine gone; types and zones that were bought."""
    settings = read({"provider": "kwok", **flags}, {})

    async def main(kernel: Kernel) -> set[tuple[str, str]]:
        cluster = SimCluster(kernel)
        admin = cluster.admin
        cluster.start()
        for definition in all_crds():
            await admin.create(_CRD, definition)
        await admin.create(NAMESPACE, {"metadata": {"name": "growth"}})
        await asyncio.sleep(1)
        KwokCloud.of(kernel, cluster.server, cluster=await identity_of(admin)).start(kernel)
        await admin.create(KWOK_NODE_CLASS, {"metadata": {"name": "default"}, "spec": {"nodeRegistrationDelay": "5s"}})
        reference = {"group": names.KWOK_CLASS_GROUP, "kind": "KWOKNodeClass", "name": "default"}
        amd64 = {"key": names.ARCH_LABEL, "operator": "In", "values": ["amd64"]}
        template = {"spec": {"nodeClassRef": reference, "requirements": [amd64]}}
        disruption = {"consolidateAfter": "10s", "budgets": [{"nodes": "100%"}]}
        pool: Json = {"metadata": {"name": "default"}, "spec": {"template": template, "disruption": disruption}}
        await admin.create(NODE_POOL, pool)
        replica = Replica(kernel, cluster.server, settings=settings, catalogue=kwok_catalogue(settings.process))
        process = replica.start()
        await cluster.add_replica_set("web", 10)
        await asyncio.sleep(90)
        assert [pod.status.phase for pod in await cluster.pods()] == ["Running"] * 10
        labels = [node.metadata.labels for node in (await admin.list(NODE)).items]
        await admin.patch(REPLICA_SET, "web", {"spec": {"replicas": 0}}, namespace="default")
        await asyncio.sleep(300)
        records = await admin.list(CONFIG_MAP, namespace="growth", labels=names.KWOK_MACHINE_LABEL)
        assert (records.items, (await admin.list(NODE)).items, (await admin.list(NODE_CLAIM)).items) == ((), (), ())
        assert not process.dead
        return {(each[names.INSTANCE_TYPE_LABEL], each[names.ZONE_LABEL]) for each in labels}

    return sim.run(main, seed=1).value


def test_karpenters_types() -> None:
    """Without a word it is Karpenter's list."""
    assert all(name.endswith("-amd64-linux") and zone.startswith("test-zone-") for name, zone in whole_way())


@pytest.mark.parametrize(("catalogue", "prefix"), [("hetzner", "c"), ("linode", "g6-")])
def test_a_real_clouds_types(catalogue: str, prefix: str) -> None:
    """Types, prices and places of a real cloud, on simulated machines."""
    bought = whole_way(kwokCatalogue=catalogue)
    assert bought
    assert all(name.startswith(prefix) for name, _ in bought)


def test_types_from_a_file(tmp_path: pathlib.Path) -> None:
    """What the file lists is sold, and nothing else; a file that cannot be read names itself."""
    path = tmp_path / "types.json"
    path.write_text(json.dumps(FILE))
    assert whole_way(instanceTypes=str(path)) == {("own-4", "here")}
    path.write_text("{")
    with pytest.raises(SettingError, match=r"--instance-types: .*types.json: is not JSON"):
        whole_way(instanceTypes=str(path))
