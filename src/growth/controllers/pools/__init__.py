"""NodePools as they are: whether they can be bought from, and what they have.

`validation` says what is wrong with a pool, `status` what its status is to say, both pure; `controller.Pools` keeps it
written, keeps the hashes by which machines of an older template are recognised, and writes nothing while nothing changes.
"""

from growth.controllers.pools.controller import METRICS, Pools

__all__ = ["METRICS", "Pools"]
