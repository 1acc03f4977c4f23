"""The ConfigMap of faults: what can be asked for, and what is said of the rest."""

import datetime as dt

from growth.providers.kwok.faults import Faults, NoCapacity, Vanish, parse


def test_every_fault_can_be_asked_for() -> None:
    """Each key is read into its meaning; comments and empty lines are nothing."""
    faults, problems = parse(
        {
            "noCapacity": "# comment\n\nc-*/zone-a/spot until 2030-01-01T00:00:00Z\n*/*/*",
            "neverRegister": "a-*\nb-*",
            "neverReady": "c",
            "vanish": "d after 1m30s\ne",
            "stuckDelete": "f",
            "refuseDelete": "g",
            "slowAnswers": "2s",
            "lostAnswers": "0.25",
            "unavailable": "true",
        }
    )
    assert problems == ()
    assert faults == Faults(
        no_capacity=(
            NoCapacity(("c-*", "zone-a", "spot"), dt.datetime(2030, 1, 1, tzinfo=dt.UTC)),
            NoCapacity(("*", "*", "*")),
        ),
        never_register=("a-*", "b-*"),
        never_ready=("c",),
        vanish=(Vanish("d", 90.0), Vanish("e")),
        stuck_delete=("f",),
        refuse_delete=("g",),
        slow_answers=2.0,
        lost_answers=0.25,
        unavailable=True,
    )


def test_what_cannot_be_understood_is_named_and_the_rest_counts() -> None:
    """One bad line spoils no other, and each gets a sentence that says where and how."""
    faults, problems = parse(
        {
            "noCapacity": "c-4x\n*/*/spot",
            "vanish": "* after soon",
            "lostAnswers": "2",
            "unavailable": "yes",
            "neverEver": "x",
        }
    )
    assert faults == Faults(no_capacity=(NoCapacity(("*", "*", "spot")),))
    assert len(problems) == 5
    assert "neverEver is not known: use one of noCapacity" in problems[0]
    assert problems[1] == "noCapacity: 'c-4x': write TYPE/ZONE/CAPACITY-TYPE, each a pattern such as *"
    assert "'soon' is not a duration" in problems[2]
