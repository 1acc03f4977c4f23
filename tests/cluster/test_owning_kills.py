"""`kill -9` in the middle of buying and giving back, on a real control plane. `python -m bench kill` is the campaign."""

import pytest

from bench.kill import campaign

# Ten kills in all.
KILLS = {1: 7, 2: 3}


@pytest.mark.parametrize("replicas", [1, 2])
def test_whoever_leads_may_be_killed_at_any_moment(control_plane: None, replicas: int) -> None:
    """Afterwards machines = claims = Nodes and every pod runs; at no revision was a limit exceeded or a machine lost."""
    found = campaign(moments=KILLS[replicas], replicas=replicas, seed=replicas, rest_every=4)
    assert found["broken"] == ""
    assert found["moments"] == KILLS[replicas]
    assert found["bought"] > 0
