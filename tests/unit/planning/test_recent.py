"""Answers that are found again: by what a question says, and only the last ones."""

from growth.planning.recent import Recent


def test_an_equal_question_has_the_answer_of_before() -> None:
    """Questions are compared by what they say, not by which object says it."""
    recent: Recent[list[int], str] = Recent(kept=2)
    assert recent.find([1]) is None
    assert recent.keep([1], "one") == "one"
    assert recent.find([1]) == "one"
    assert recent.find([2]) is None


def test_the_question_that_was_asked_longest_ago_is_forgotten() -> None:
    """So many are kept; one that is asked again is among the last."""
    recent: Recent[int, str] = Recent(kept=2)
    recent.keep(1, "one")
    recent.keep(2, "two")
    assert recent.find(1) == "one"
    recent.keep(3, "three")
    assert (recent.find(1), recent.find(2), recent.find(3)) == ("one", None, "three")
