"""The server in process keeps nulls where the real one does, and its readers must not stumble over them."""

import asyncio

from growth.api.volumes import CSI_NODE
from growth.kube.memory import MemoryApi, MemoryServer
from growth.sim.kernel import Kernel
from growth.sim.ports import SimClock, SimRandom


def test_a_null_in_a_stored_object_is_read_as_a_missing_field() -> None:
    """A driver without topology keys is stored with a null, as by the real server, and read as a driver without any."""
    kernel = Kernel(seed=1)
    api = MemoryApi(MemoryServer(SimClock(kernel), SimRandom(1, "server")))
    body = {"metadata": {"name": "one"}, "spec": {"drivers": [{"name": "csi.example", "nodeID": "one"}]}}
    made = asyncio.run(api.create(CSI_NODE, body))
    kernel.end()
    assert [driver.topology_keys for driver in made.spec.drivers] == [()]
