"""What a person deletes by hand goes, with its machine, and what still wants to run gets another."""

import pytest

from bench.owning import desk
from tests.cluster.owning import Autoscaled

PER_MACHINE = 3  # of one cpu, on machines of four


@pytest.mark.parametrize("kind", ["node", "nodeclaim"])
def test_a_deleted_node_or_claim_ends_with_no_machine(autoscaled: Autoscaled, kind: str) -> None:
    """The machine goes with it, its pods move to a new one, and the other machine is left alone."""
    pool = f"hand-{kind}"
    autoscaled.pool(pool)
    autoscaled.deploy(pool, 2 * PER_MACHINE, pool=pool)
    autoscaled.wait_running(pool, 2 * PER_MACHINE)
    victim, other = autoscaled.wait_matched(pool, 2)
    name = victim["status"]["nodeName"] if kind == "node" else victim["metadata"]["name"]

    autoscaled.delete(kind, name)

    assert not any(each["claimUID"] == victim["metadata"]["uid"] for each in autoscaled.machines())
    autoscaled.wait_running(pool, 2 * PER_MACHINE)
    uids = {each["metadata"]["uid"] for each in autoscaled.wait_matched(pool, 2)}
    assert victim["metadata"]["uid"] not in uids
    assert other["metadata"]["uid"] in uids
    autoscaled.clear(pool, pool=pool)


def test_a_deleted_pool_takes_its_machines_along(autoscaled: Autoscaled) -> None:
    """Claims go by their owner, drained, each with its machine; pods wait for a pool that is gone."""
    autoscaled.pool("doomed")
    autoscaled.deploy("doomed", 2 * PER_MACHINE, pool="doomed")
    autoscaled.wait_running("doomed", 2 * PER_MACHINE)
    autoscaled.wait_matched("doomed", 2)

    autoscaled.delete("nodepool", "doomed")

    autoscaled.wait_gone("doomed")
    assert autoscaled.machines() == []
    assert autoscaled.running("doomed") == []
    autoscaled.desk.delete(f"{desk.APPS}/doomed")
