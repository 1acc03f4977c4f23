"""In which orders the pods of a move are rehearsed: kube-scheduler binds them as they come back, and they come as they like."""

from growth.api.pods import Container, PodSpec, ResourceRequirements
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import Demand
from growth.planning.disruption.search.orders import SHAPES, orders


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


def test_two_kinds_come_by_turns() -> None:
    """Each takes of the room of the other: who would fit after all of the others does not fit between them."""
    web, api = pods("web", "400m", 2), pods("api", "200m", 2)
    tried = [[each.shape for each in order] for order in orders([*web, *api])]
    assert [api[0].shape, web[0].shape, api[0].shape, web[0].shape] in tried


def test_few_pods_are_tried_in_all_orders_and_many_by_turns() -> None:
    """Pods of one shape are alike: two and two come in six orders; of many more one of each shape in turn is tried."""
    assert len(orders([*pods("web", "400m", 2), *pods("api", "200m", 2)])) == 6
    web, api = pods("web", "400m", 30), pods("api", "200m", 30)
    by_turns = [each.shape for pair in zip(web, api, strict=True) for each in pair]
    tried = [[each.shape for each in order] for order in orders([*api, *web])]
    assert by_turns in tried
    assert by_turns[::-1] in tried


def test_every_order_has_every_pod_once() -> None:
    """However they come, all of them come; and of many shapes not each is tried in the worst moment."""
    for number in (1, 2, SHAPES, SHAPES + 1):
        evicted = [each for at in range(number) for each in pods(f"app-{at}", f"{at + 1}", 4)]
        tried = orders(evicted)
        assert all(sorted(each.key for each in order) == sorted(each.key for each in evicted) for order in tried)
        assert len(tried) == (1 if number == 1 else 7 + (number if number <= SHAPES else 0))
    assert orders([]) == [[]]


def test_however_pods_are_listed_the_orders_are_the_same() -> None:
    """Whoever decides and whoever checks list them differently, and must not come to different answers."""
    evicted = [*pods("web", "400m", 9), *pods("api", "200m", 9), *pods("job", "400m", 9)]
    assert orders(evicted) == orders(evicted[::-1])
