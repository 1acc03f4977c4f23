"""In which orders the pods of a move are rehearsed: kube-scheduler binds them as they come back, and they come as they like."""

from growth.api.pods import Container, PodSpec, ResourceRequirements
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import Demand
from growth.planning.disruption.search.believing import SHAPES, orders


def pods(name: str, cpu: str, number: int) -> list[Demand]:
    """So many alike."""
    asked = ResourceRequirements(requests={"cpu": cpu})
    shape = PodShape("default", {"app": name}, PodSpec(containers=(Container(name="main", resources=asked),)))
    return [Demand(f"default/{name}-{at}", shape) for at in range(number)]


def test_one_shape_comes_just_before_the_last_of_another() -> None:
    """Machines that four pods fill exactly are nearly full when another kind comes: one of the four is left over."""
    web, other = pods("web", "400m", 4), pods("api", "500m", 1)
    tried = [[each.key for each in order] for order in orders([*other, *web])]
    assert [*(each.key for each in web[:3]), other[0].key, web[3].key] in tried


def test_every_order_has_every_pod_once() -> None:
    """However they come, all of them come; and of many shapes not each is tried."""
    for number in (1, 2, SHAPES, SHAPES + 1):
        evicted = [each for at in range(number) for each in pods(f"app-{at}", f"{at + 1}", 3)]
        tried = orders(evicted)
        assert all(sorted(each.key for each in order) == sorted(each.key for each in evicted) for order in tried)
        assert len(tried) == 5 + (number if 1 < number <= SHAPES else 0)
