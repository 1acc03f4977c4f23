"""An autoscaler on a whole plane."""

from collections.abc import Iterator

import pytest

from bench.owning import autoscaler
from bench.owning.desk import Desk
from tests.cluster.owning import Autoscaled
from tools.controlplane.plane import Plane


@pytest.fixture(scope="module")
def autoscaled(plane: Plane) -> Iterator[Autoscaled]:
    """Growth runs on the plane and is ready; a node class `default` is there, and no pool."""
    server = Desk(plane)
    autoscaler.prepare(server, autoscaler.GROWTH)
    with autoscaler.stopped_at_last(autoscaler.growth(plane, *autoscaler.QUICK)) as process:
        process.wait_ready()
        yield Autoscaled(plane, process, server)
