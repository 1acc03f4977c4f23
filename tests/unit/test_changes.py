"""Reading, editing and sending the difference, on a scripted API."""

import asyncio
import copy
from typing import Any

import pytest

from growth.api import edits
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.kube.changes import change, difference, has_list
from growth.kube.errors import Conflict


class ScriptedApi:
    """One object; the first `conflicts` patches are refused after somebody else has written. Keeps what was sent."""

    def __init__(self, stored: Json, *, conflicts: int = 0) -> None:
        self.stored = stored
        self.conflicts = conflicts
        self.reads = 0
        self.sent: list[Json] = []

    async def get(self, kind: Any, name: str, *, namespace: str = "") -> Json:
        self.reads += 1
        return copy.deepcopy(self.stored)

    async def patch(self, kind: Any, name: str, patch: Json, **options: Any) -> Json:
        self.sent.append({"patch": patch, **options})
        if len(self.sent) <= self.conflicts:
            self.stored["metadata"]["resourceVersion"] += "1"
            raise Conflict("somebody else was first")
        return {"patched": True}


def node(**spec: Any) -> Json:
    return {"metadata": {"name": "n", "uid": "u", "resourceVersion": "7", "labels": {"a": "1"}}, "spec": spec}


def changed(api: ScriptedApi, edit: Any, **options: Any) -> Json:
    return asyncio.run(change(api, NODE, "n", edit, **options))  # type: ignore[arg-type]  # two verbs suffice


def test_an_edit_that_changes_nothing_writes_nothing() -> None:
    """No difference, no write, and the object as read."""
    api = ScriptedApi(node())
    assert changed(api, lambda draft: edits.set_labels(draft, {"a": "1"})) == node()
    assert api.sent == []


def test_maps_alone_need_no_precondition() -> None:
    """A key of a map is set whatever others do to the rest: only the uid guards."""
    api = ScriptedApi(node())
    changed(api, lambda draft: edits.set_labels(draft, {"b": "2"}))
    assert api.sent == [
        {
            "patch": {"metadata": {"labels": {"b": "2"}}},
            "namespace": "",
            "subresource": "",
            "revision": "",
            "uid": "u",
        }
    ]


def test_a_caller_can_ask_for_the_precondition() -> None:
    """With `guarded` a change of maps too holds only on the object that was read."""
    api = ScriptedApi(node())
    changed(api, lambda draft: edits.set_labels(draft, {"b": "2"}), guarded=True)
    assert api.sent[0]["revision"] == "7"


def test_lists_are_sent_whole_with_the_revision_that_was_read() -> None:
    """A list is replaced, so the write must fail when somebody else changed it meanwhile; unknown keys go along."""
    api = ScriptedApi(node(taints=[{"key": "a", "effect": "NoSchedule", "timeAdded": "T"}]))
    changed(api, lambda draft: edits.add_taint(draft, key="b", effect="NoExecute"))
    assert api.sent[0]["revision"] == "7"
    assert api.sent[0]["patch"] == {
        "spec": {
            "taints": [
                {"key": "a", "effect": "NoSchedule", "timeAdded": "T"},
                {"key": "b", "effect": "NoExecute"},
            ]
        }
    }


def test_a_conflict_reads_and_edits_afresh() -> None:
    """The second attempt stands on what the other writer left, not on the first read."""
    api = ScriptedApi(node(), conflicts=2)
    assert changed(api, lambda draft: edits.add_finalizer(draft, "f")) == {"patched": True}
    assert api.reads == 3
    assert [sent["revision"] for sent in api.sent] == ["7", "71", "711"]


def test_what_was_just_read_need_not_be_read_again() -> None:
    """The write holds on exactly that object; after a conflict it is read all the same."""
    api = ScriptedApi(node(), conflicts=1)
    changed(api, lambda draft: edits.set_labels(draft, {"b": "2"}), known=node())
    assert api.reads == 1
    assert [sent["revision"] for sent in api.sent] == ["7", ""]


def test_conflicts_without_end_are_raised() -> None:
    """After the last attempt the caller learns of the conflict."""
    api = ScriptedApi(node(), conflicts=99)
    with pytest.raises(Conflict):
        changed(api, lambda draft: edits.add_finalizer(draft, "f"), attempts=3)
    assert len(api.sent) == 3


@pytest.mark.parametrize(("subresource", "section"), [("", "status"), ("status", "spec"), ("status", "metadata")])
def test_an_edit_that_the_server_would_drop_is_refused(subresource: str, section: str) -> None:
    """A status write reaches the status only, any other write all but the status: the rest would vanish silently."""

    def edit(draft: Json) -> None:
        draft.setdefault(section, {})["x"] = 1

    api = ScriptedApi(node())
    with pytest.raises(ValueError, match=section):
        changed(api, edit, subresource=subresource)
    assert api.sent == []


def test_a_null_cannot_be_set() -> None:
    """In a merge patch null means «remove»: setting it is refused with the place, while one that was there may stay."""
    with pytest.raises(ValueError, match=r"a\.b: a merge patch cannot set null"):
        difference({"a": {}}, {"a": {"b": None}})
    assert difference({"a": None, "b": 1}, {"a": None, "b": 2}) == {"b": 2}


@pytest.mark.parametrize(
    ("patch", "answer"),
    [
        ({}, False),
        ({"a": {"b": {"c": "d"}}, "e": None}, False),
        ({"a": []}, True),
        ({"a": {"b": {"c": [1]}}}, True),
    ],
)
def test_a_list_anywhere_in_a_patch_is_noticed(patch: Json, answer: bool) -> None:  # noqa: FBT001  # a table's column
    """However deep: a list in the patch overwrites what others put there."""
    assert has_list(patch) is answer


def test_the_last_entry_of_a_list_goes_only_from_the_object_that_was_read() -> None:
    """Then the list goes whole: what others have put there meanwhile would go with it. Of a map it is a key, as always."""
    api = ScriptedApi(node(taints=[{"key": "a", "effect": "NoSchedule"}]))
    changed(api, lambda draft: edits.remove_taint(draft, key="a"))
    changed(api, lambda draft: edits.set_labels(draft, {"a": None}))
    assert [(each["patch"], each["revision"]) for each in api.sent] == [
        ({"spec": {"taints": None}}, "7"),
        ({"metadata": {"labels": {"a": None}}}, ""),
    ]
    assert has_list({"spec": None}, {"spec": {"of": {"taints": [1]}}})


def test_no_attempt_at_all_is_an_error() -> None:
    """A caller that asks for no attempt made a mistake; it must not look like success."""
    with pytest.raises(ValueError, match="attempts is 0"):
        changed(ScriptedApi(node()), lambda _: None, attempts=0)
