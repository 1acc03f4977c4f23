"""A workload comes and goes on a whole real control plane; so do its machines. What that costs the API server."""

from collections import Counter

from bench.owning import desk
from bench.owning.audit import Write
from growth.api.kinds import Json
from tests.cluster.owning import Autoscaled, size_of

# The NodePool of Karpenter's guide to its KWOK provider, word for word.
GUIDE: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                ],
                "nodeClassRef": {"name": "default", "kind": "KWOKNodeClass", "group": "karpenter.kwok.sh"},
                "expireAfter": "720h",
            }
        },
        "limits": {"cpu": 1000},
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "10s"},
    },
}
PODS = 200
WRITES_ON_A_CLAIM = 5
WRITES_ON_A_NODE = 2
CLAIM_BYTES = 4096


def plain(replicas: int) -> Json:
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": "1", "memory": "256Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "inflate"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "inflate"}},
            "template": {"metadata": {"labels": {"app": "inflate"}}, "spec": {"containers": [container]}},
        },
    }


def test_the_guides_pool_carries_a_deployment_up_and_down(autoscaled: Autoscaled) -> None:
    """0 → 200 → 0: every pod runs, within the promised number of writes; then every machine is gone."""
    autoscaled.desk.create(desk.POOLS, GUIDE)
    autoscaled.desk.create(desk.APPS, plain(0))
    autoscaled.scale("inflate", PODS)
    autoscaled.wait_running("inflate", PODS)
    claims = autoscaled.wait_matched("default")
    check_writes(autoscaled, claims)
    assert max(size_of(claim) for claim in claims) <= CLAIM_BYTES
    autoscaled.wait_counted("default", len(claims))

    autoscaled.scale("inflate", 0)
    autoscaled.wait_gone("default")
    assert autoscaled.machines() == []
    autoscaled.wait_counted("default", 0)


def check_writes(autoscaled: Autoscaled, claims: list[Json]) -> None:
    """At most five on each claim and two on each Node, from the server's own log; no Node is made by us."""

    def logged() -> list[Write]:
        """Once the log tells of every claim that there is; a write is logged a moment after its answer."""
        own = autoscaled.writes_of("growth")
        made, ended = (
            sum(each.resource == "nodeclaims" and each.verb == verb for each in own) for verb in ("create", "delete")
        )
        # One that turned out to be empty, because pods went elsewhere, is given back.
        return own if made - ended == len(claims) else []

    own: list[Write] = autoscaled.until(logged, "the log tells of every claim")
    on_claims = Counter(each.name for each in own if each.resource == "nodeclaims" and each.name)
    created = [each for each in own if each.resource == "nodeclaims" and each.verb == "create"]
    on_nodes = Counter(each.name for each in own if each.resource == "nodes")
    names = [claim["metadata"]["name"] for claim in claims]
    # A creation is logged without a name when the server was to make one up.
    unnamed = not any(each.name for each in created)
    assert max(on_claims[name] + unnamed for name in names) <= WRITES_ON_A_CLAIM, on_claims
    assert max(on_nodes[claim["status"]["nodeName"]] for claim in claims) <= WRITES_ON_A_NODE, on_nodes
    assert not [each for each in own if each.resource == "nodes" and each.verb == "create"]
