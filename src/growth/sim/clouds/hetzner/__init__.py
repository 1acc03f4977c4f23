"""A fake of Hetzner Cloud's REST API v1: servers with everything around them, in one project.

    HetznerFake.handle(request) ── routing ── rates (3,600 an hour) ── faults ── servers, resources
                                                                                   │
    market: types, prices, stock      project: what exists, what is under way ─────┘── ledger: what was bought and is billed

Nothing runs in the background: what is under way has its moment, and every request first brings the project up to now by
the fake's own clock. So the same requests at the same times give the same answers.

What it keeps of the real one: names unique in the project, label rules and selectors, paging, actions with progress that
can fail late, locks while an action runs, stock by type and location that the flag `available` does not tell, prices by
location, deprecation by location, images by architecture, ten servers in a placement group, quotas, the read-only token,
late private addresses, servers that take a while to go. What it leaves out answers 404: volumes, load balancers, floating
and primary addresses, certificates, DNS, storage boxes, metrics, consoles, rescue systems, ISOs and resizing.
"""

from growth.sim.clouds.hetzner.fake import FakeSettings, HetznerFake
from growth.sim.clouds.hetzner.faults import Faults, parse_faults, parse_stock
from growth.sim.clouds.hetzner.ledger import Ledger, Purchase
from growth.sim.clouds.hetzner.project import Limits
from growth.sim.clouds.hetzner.servers import Times

__all__ = [
    "FakeSettings",
    "Faults",
    "HetznerFake",
    "Ledger",
    "Limits",
    "Purchase",
    "Times",
    "parse_faults",
    "parse_stock",
]
