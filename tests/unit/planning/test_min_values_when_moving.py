"""`minValues` when nodes are replaced: as at a launch, and once more after dearer types were left out."""

from typing import Any, Literal, get_args

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.planning.disruption.decide import Options, decide
from growth.planning.disruption.model import Decided, Move
from growth.planning.disruption.search import SearchOptions
from growth.planning.solve import Options as Planning
from growth.providers.catalogues import builtin
from tests.manifests import AMD64, LINUX, need
from tests.unit.planning.clusters import cluster, machine, pods, pool

Packer = Literal["cost", "first-fit"]
PACKERS = get_args(Packer)

# The types from the cheapest to the dearest: three families (c, s, m) of each size.
_PRICES = {
    kind.name: min(each.price or 0 for each in kind.offerings if each.capacity_type == names.ON_DEMAND)
    for kind in builtin("kwok").types
    if kind.name.endswith("-amd64-linux")
}
_MEMORY = {kind.name: kind.capacity["memory"] >> 30 for kind in builtin("kwok").types}  # GiB
TYPES = sorted(_PRICES, key=_PRICES.__getitem__)
# Of these each holds a pod of one core.
FIT = TYPES[3:]
FAMILY = "karpenter.kwok.sh/instance-family"


def asking(*requirements: Json, terms: str = "on-demand", **spec: Any) -> Json:
    return pool(requirements=[*requirements, need(names.CAPACITY_TYPE_LABEL, "In", terms), AMD64, LINUX], **spec)


def decided(*objects: Json | list[Json], packer: Packer, spot_to_spot: bool = True) -> Decided:
    search = SearchOptions(planning=Planning(packer=packer), spot_to_spot=spot_to_spot)
    return decide(cluster(*objects), Options(search=search))


def only(made: Decided) -> Move:
    (move,) = made.moves
    return move


def apart(made: list[Json]) -> list[Json]:
    """The pods, which share a node with none of their sort."""
    term = {"topologyKey": names.HOSTNAME_LABEL, "labelSelector": {"matchLabels": {"sort": "apart"}}}
    for pod in made:
        pod["metadata"]["labels"]["sort"] = "apart"
        pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return made


@pytest.mark.parametrize("packer", PACKERS)
def test_a_replacement_lists_as_many_values_as_a_launch_would(packer: Packer) -> None:
    """At least as many types as asked for, and each of them cheaper than what goes."""
    of = asking(need(names.INSTANCE_TYPE_LABEL, "Exists", minValues=12))
    (replacement,) = only(decided(of, machine("a", TYPES[-1]), pods(1, on="a"), packer=packer)).replacements
    assert len(replacement.types) >= 12
    assert all(_PRICES[name] < _PRICES[TYPES[-1]] for name in replacement.types)


@pytest.mark.parametrize("packer", PACKERS)
def test_what_is_dearer_is_left_out_before_the_minimum_is_checked_again(packer: Packer) -> None:
    """Ten of eleven types must stay open: the eleventh can be replaced by the ten below it, and they by nothing."""
    eleven = FIT[:11]
    of = asking(need(names.INSTANCE_TYPE_LABEL, "In", *eleven, minValues=10))
    (replacement,) = only(decided(of, machine("a", eleven[10]), pods(1, on="a"), packer=packer)).replacements
    assert sorted(replacement.types) == sorted(eleven[:10])
    for kind in eleven[:10]:
        made = decided(of, machine("a", kind), pods(1, on="a"), packer=packer)
        assert made.moves == ()
    (kept,) = made.kept
    assert "minValues 10" in kept.message


@pytest.mark.parametrize("packer", PACKERS)
def test_the_minimum_of_every_label_counts(packer: Packer) -> None:
    """Enough types are cheaper, but all of them are of one family: the move is rejected."""
    kinds = ("c-2x-amd64-linux", "c-4x-amd64-linux", "c-8x-amd64-linux", "m-8x-amd64-linux")
    types = need(names.INSTANCE_TYPE_LABEL, "In", *kinds, minValues=3)
    both = need(FAMILY, "In", "c", "m", minValues=2)
    nodes = [machine("a", "m-8x-amd64-linux"), pods(1, on="a")]
    assert decided(asking(types, both), *nodes, packer=packer).moves == ()
    assert len(only(decided(asking(types), *nodes, packer=packer)).replacements) == 1


@pytest.mark.parametrize("packer", PACKERS)
def test_each_of_several_replacements_meets_the_minimum(packer: Packer) -> None:
    """A move of several nodes is rejected as a whole where one of its machines would have too little choice."""
    nodes = [each for at in "abc" for each in (machine(at, TYPES[-1]), apart(pods(1, on=at, cpu=3)))]
    asked = need(names.INSTANCE_TYPE_LABEL, "Exists", minValues=20)
    made = decided(asking(asked), *nodes, packer=packer)
    bought = [replacement for move in made.moves for replacement in move.replacements]
    assert len(bought) == 3
    assert all(len(each.types) >= 20 for each in bought)
    unmeetable = need(names.INSTANCE_TYPE_LABEL, "Exists", minValues=36)
    assert not any(move.replacements for move in decided(asking(unmeetable), *nodes, packer=packer).moves)


# --- spot to spot


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("wanted", [None, 3])
def test_spot_to_spot_lists_the_fifteen_cheapest(packer: Packer, wanted: int | None) -> None:
    """Without a minimum, and with one that is smaller, fifteen types are listed: the cheapest."""
    asked = [need(names.INSTANCE_TYPE_LABEL, "Exists", minValues=wanted)] if wanted else []
    of = asking(*asked, terms="spot")
    (replacement,) = only(
        decided(of, machine("a", TYPES[-1], terms="spot"), pods(1, on="a"), packer=packer)
    ).replacements
    assert sorted(replacement.types) == sorted(FIT[:15])


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("limits", [{"nodes": 10}, {"cpu": 1000}])
def test_a_limit_that_is_far_away_shortens_no_list_of_spot(packer: Packer, limits: Json) -> None:
    """Fifteen types are listed in a pool with a limit as in one without."""
    of = asking(terms="spot", limits=limits)
    (replacement,) = only(
        decided(of, machine("a", TYPES[-1], terms="spot"), pods(1, on="a"), packer=packer)
    ).replacements
    assert sorted(replacement.types) == sorted(FIT[:15])
    assert replacement.planned.instance_types == replacement.types


@pytest.mark.parametrize("packer", PACKERS)
def test_what_a_limit_has_no_room_for_is_none_of_the_fifteen(packer: Packer) -> None:
    """The list has the fifteen cheapest that the pool may still buy; where these are fewer nothing moves."""

    def limited(beside: int) -> Decided:
        of = asking(terms="spot", limits={"memory": f"{512 + beside}Gi"})  # 512 are those of the node that is there
        return decided(of, machine("a", TYPES[-1], terms="spot"), pods(1, on="a"), packer=packer)

    (replacement,) = only(limited(128)).replacements
    fitting = [name for name in FIT if _MEMORY[name] <= 128]
    assert sorted(replacement.types) == sorted(fitting[:15]) != sorted(FIT[:15])
    made = limited(64)
    assert made.moves == ()
    (kept,) = made.kept
    assert "15 cheaper instance type options" in kept.message


@pytest.mark.parametrize("packer", PACKERS)
def test_what_one_replacement_may_become_is_not_left_for_the_next(packer: Packer) -> None:
    """Whichever types come of all that the moves of a decision list, the limit holds."""
    nodes: list[Json] = []
    for zone in ("test-zone-a", "test-zone-b", "test-zone-c"):
        (pod,) = pods(1, on=zone)
        pod["spec"]["nodeSelector"] = {names.ZONE_LABEL: zone}
        nodes += [*machine(zone, TYPES[-1], terms="spot", zone=zone), pod]
    for beside in (128, 256, 384, 1024):
        of = asking(terms="spot", limits={"memory": f"{3 * 512 + beside}Gi"})
        listed = [each.types for move in decided(of, nodes, packer=packer).moves for each in move.replacements]
        assert 0 < sum(max(_MEMORY[name] for name in types) for types in listed) <= beside
    assert len(listed) == 3


@pytest.mark.parametrize("packer", PACKERS)
def test_spot_to_spot_lists_more_where_the_minimum_is_more(packer: Packer) -> None:
    """Thirty asked for are thirty listed."""
    of = asking(need(names.INSTANCE_TYPE_LABEL, "Exists", minValues=30), terms="spot")
    (replacement,) = only(
        decided(of, machine("a", TYPES[-1], terms="spot"), pods(1, on="a"), packer=packer)
    ).replacements
    assert sorted(replacement.types) == sorted(FIT[:30])


@pytest.mark.parametrize("packer", PACKERS)
def test_spot_to_spot_lists_until_every_label_has_its_values(packer: Packer) -> None:
    """The cheapest prefix of at least fifteen types that has all families asked for, not fifteen and a stray one."""
    kinds = [name for name in FIT if name.startswith("c-")] + [name for name in FIT if name.startswith("s-")]
    cheap_first = sorted(kinds, key=_PRICES.__getitem__)[:18]
    dear = "m-96x-amd64-linux"
    of = asking(
        need(names.INSTANCE_TYPE_LABEL, "In", *cheap_first, dear, TYPES[-1]),
        need(FAMILY, "In", "c", "s", "m", minValues=3),
        terms="spot",
    )
    (replacement,) = only(
        decided(of, machine("a", TYPES[-1], terms="spot"), pods(1, on="a"), packer=packer)
    ).replacements
    listed = sorted([*cheap_first, dear], key=_PRICES.__getitem__)
    assert 15 < listed.index(dear) < len(listed) - 1
    assert sorted(replacement.types) == sorted(listed[: listed.index(dear) + 1])


@pytest.mark.parametrize("packer", PACKERS)
def test_spot_to_spot_needs_fifteen_cheaper_types_whatever_the_minimum(packer: Packer) -> None:
    """With fourteen cheaper ones nothing moves, even where three are all that was asked for."""
    of = asking(need(names.INSTANCE_TYPE_LABEL, "Exists", minValues=3), terms="spot")
    assert decided(of, machine("a", FIT[14], terms="spot"), pods(1, on="a"), packer=packer).moves == ()
    assert decided(of, machine("a", FIT[15], terms="spot"), pods(1, on="a"), packer=packer).moves != ()


@pytest.mark.parametrize("packer", PACKERS)
def test_spot_to_spot_has_a_gate(packer: Packer) -> None:
    """Off as it comes."""
    of = asking(terms="spot")
    nodes = [machine("a", TYPES[-1], terms="spot"), pods(1, on="a")]
    assert decided(of, *nodes, packer=packer, spot_to_spot=False).moves == ()
    assert not SearchOptions().spot_to_spot
