"""The node class of a world whose machines Hetzner sells: each seed has another, so that all that a class may ask is tried."""

import dataclasses
from typing import Final

from growth.api.instance_types import Catalogue, InstanceType
from growth.api.kinds import Json
from growth.providers.catalogues.hetzner import LOCATIONS, PODS
from growth.sim.ports import SimRandom

NETWORK: Final = "cluster"
"""It is in every project of a world."""
FEW_PODS: Final = 40


def drawn(seed: int) -> Json:
    """What the class `default` says in the world of that seed."""
    random = SimRandom(seed, "hetzner class")
    # All are drawn in every world, so that a new one shifts no other.
    spread, network, hidden = random.chance(0.5), random.chance(0.5), random.chance(0.3)
    backups, few_pods = random.chance(0.3), random.chance(0.3)
    some_places, missing = random.chance(0.3), random.choice(LOCATIONS)
    return {
        **({"placementGroup": "Spread"} if spread else {}),
        **({"networks": [NETWORK]} if network else {}),
        **({"publicNet": {"ipv4": False, "ipv6": False}} if network and hidden else {}),
        **({"backups": True} if backups else {}),
        **({"maxPods": FEW_PODS} if few_pods else {}),
        **({"locations": [each for each in LOCATIONS if each != missing]} if some_places else {}),
    }


def sold_to(spec: Json, catalogue: Catalogue) -> Catalogue:
    """What of the catalogue machines of such a class can be."""
    places, pods = spec.get("locations") or LOCATIONS, spec.get("maxPods", PODS)

    def narrowed(kind: InstanceType) -> InstanceType:
        offerings = tuple(each for each in kind.offerings if each.zone in places)
        return dataclasses.replace(kind, capacity={**kind.capacity, "pods": pods}, offerings=offerings)

    return dataclasses.replace(catalogue, types=tuple(map(narrowed, catalogue.types)))
