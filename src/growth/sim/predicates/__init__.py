"""kube-scheduler's rules, slow and obvious: where a pod may be bound, and why not.

Written from the rules alone and sharing nothing with planning, so that the two can be held against each other. Imports
`growth.api` and `growth.units` only. Of the filters of kube-scheduler these are missing: dynamic resource allocation,
disks in the tree of Kubernetes itself, and what only a running kubelet knows.
"""

from growth.sim.predicates.hosts import Host, Scene, requests
from growth.sim.predicates.verdict import fits, refusals

__all__ = ["Host", "Scene", "fits", "refusals", "requests"]
