"""What pods are told of the places that they will have."""

from typing import cast

from growth.api.meta import ObjectReference
from growth.controllers.provisioning.telling import NOMINATION_SECONDS, REMEMBERED_SECONDS, Teller
from growth.kube.events import Recorder
from tests.unit.controllers.test_memory_of_moves import Clock, pods


class Told:
    """A recorder that only keeps what it hears."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def event(self, about: ObjectReference, reason: str, message: str, **more: str) -> None:
        del about, reason, more
        self.messages.append(message.rpartition(" ")[2])


def test_a_place_is_told_once_however_often_it_is_planned() -> None:
    """A drain may wait for hours; another place is news, though not within two minutes, and so is one after a long time."""
    clock, told = Clock(), Told()
    teller = Teller(cast("Recorder", told), clock)
    (pod,) = pods(1)
    for minute in range(60):
        clock.seconds = 60.0 * minute
        teller.nominated(pod, node="a")
    assert told.messages == ["node/a"]
    teller.nominated(pod, node="b")
    clock.seconds += 60
    teller.nominated(pod, node="c")
    assert told.messages == ["node/a", "node/b"]
    clock.seconds += NOMINATION_SECONDS
    teller.nominated(pod, node="c")
    clock.seconds += REMEMBERED_SECONDS
    teller.nominated(pod, node="c")
    assert told.messages == ["node/a", "node/b", "node/c", "node/c"]
