"""What worlds with a name are told in: events at their times, and objects that are changed or taken away."""

from typing import Any, Final

from growth.api.kinds import Json
from growth.sim.scenario.manifests import asks
from growth.sim.scenario.model import Event
from growth.sim.scenario.oddities import NOBODY, claim

FAULTS: Final = "growth-kwok-faults"


def at(when: str, do: Any, body: Json, *, status: bool = False) -> Event:
    return Event(at=when, do=do, object=body, subresource="status" if status else "")


def named(api_version: str, kind: str, name: str, *, namespace: str = "", **body: Any) -> Json:
    metadata: Json = {"name": name, **body.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def the_pool(name: str, **change: Any) -> Json:
    return named("karpenter.sh/v1", "NodePool", name, **change)


def the_claim(name: str, **change: Any) -> Json:
    return named("karpenter.sh/v1", "NodeClaim", name, **change)


def the_node(name: str, **change: Any) -> Json:
    return named("v1", "Node", name, **change)


def cloud(**data: str | None) -> Json:
    """What is wrong with the cloud from now on.

    Among the first objects it may be empty only: whoever disturbs the world writes there too when the run begins.
    """
    return named("v1", "ConfigMap", FAULTS, namespace="growth", data=data)


def only_on(name: str) -> Json:
    """Where pods of a claim made by hand run: nothing else has its label, and its taint lets nobody else in."""
    return {"nodeSelector": {"example.com/of": name}, "tolerations": [{"key": NOBODY["key"], "operator": "Exists"}]}


def claim_for_pods(name: str, **spec: Any) -> Json:
    made = claim(name, **spec)
    made["metadata"]["labels"] = {"example.com/of": name}
    return made


def of(value: str) -> Json:
    return asks("example.com/of", "In", value)
