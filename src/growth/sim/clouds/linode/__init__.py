"""A fake of Linode's REST API (v4 and v4beta): LKE clusters of both tiers with their pools, and instances.

    LinodeFake.handle(request) ── rates (by sort of call) ── faults ── routing ── lke, instances
                                                                                     │
    market: types, prices, stock      account: what exists, what is under way ───────┘── ledger: what was bought and is billed

Nothing runs in the background: what is under way has its moment, and every request first brings the account up to now by
the fake's own clock. So the same requests at the same times give the same answers.

What it keeps of the real one. Standard: a pool lists a new node at once, its instance is null for some seconds, and tags
of pools stay with pools. Enterprise: a pool lists its nodes half a minute late; its tags are put on the instances, with two
of LKE's own. Both: `PUT count`, deletion of one node, which lowers the count, `PUT tags`, which replaces, tags of 3 to 50
characters that lists may see late, filters that find parts of texts, pages, limits by sort of call with their headers,
«Linode busy.», no capacity, nodes that never get an instance, an LKE node whose machine was deleted getting another,
machines that take a while to go, locks. What it leaves out answers 404: making clusters, disks, volumes, networks, firewalls'
rules.
"""

from growth.sim.clouds.ledger import Ledger, Purchase
from growth.sim.clouds.linode.account import Limits, Times
from growth.sim.clouds.linode.fake import FakeSettings, LinodeFake
from growth.sim.clouds.linode.faults import Faults, parse_faults, parse_stock
from growth.sim.clouds.linode.objects import ENTERPRISE, STANDARD

__all__ = [
    "ENTERPRISE",
    "STANDARD",
    "FakeSettings",
    "Faults",
    "Ledger",
    "Limits",
    "LinodeFake",
    "Purchase",
    "Times",
    "parse_faults",
    "parse_stock",
]
