"""Edits of raw objects keep what they do not know."""

import copy
import datetime as dt
from collections.abc import Callable

import pytest

from growth.api import edits
from growth.api.kinds import Json

NOW = dt.datetime(2026, 11, 15, 17, 0, tzinfo=dt.UTC)
LATER = NOW + dt.timedelta(hours=1)


def conditioned(**condition: str) -> Json:
    return {
        "metadata": {"name": "n", "generation": 3},
        "status": {"conditions": [{"type": "Other", "status": "True", "x": "kept"}, {"type": "Ready", **condition}]},
    }


def ready(draft: Json) -> Json:
    (found,) = (each for each in draft["status"]["conditions"] if each["type"] == "Ready")
    condition: Json = found
    return condition


def test_a_condition_moves_its_time_when_its_status_changes() -> None:
    """True becomes False: the transition is now; unknown keys of the condition stay."""
    draft = conditioned(status="True", lastTransitionTime="T", lastHeartbeatTime="H")
    edits.set_condition(draft, "Ready", status="False", reason="Broken", message="it broke", now=NOW)
    assert ready(draft) == {
        "type": "Ready",
        "status": "False",
        "reason": "Broken",
        "message": "it broke",
        "lastTransitionTime": "2026-11-15T17:00:00Z",
        "lastHeartbeatTime": "H",
        "observedGeneration": 3,
    }
    assert draft["status"]["conditions"][0] == {"type": "Other", "status": "True", "x": "kept"}


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    """Another reason is no transition."""
    draft = conditioned(status="True", lastTransitionTime="T")
    edits.set_condition(draft, "Ready", status="True", reason="Other", now=NOW)
    assert ready(draft)["lastTransitionTime"] == "T"


def test_a_new_condition_is_added_at_the_end() -> None:
    """An object without status gets one; the reason is the type where none is given, since servers want one."""
    draft: Json = {"metadata": {"name": "n"}}
    edits.set_condition(draft, "Ready", status="True", now=NOW)
    assert draft["status"]["conditions"] == [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "message": "",
            "lastTransitionTime": "2026-11-15T17:00:00Z",
        }
    ]


def test_conditions_of_nodes_have_no_generation() -> None:
    """With `observed` off the field is not written."""
    draft = conditioned(status="True", lastTransitionTime="T")
    edits.set_condition(draft, "Ready", status="True", now=NOW, observed=False)
    assert "observedGeneration" not in ready(draft)


def test_an_empty_message_that_the_server_dropped_is_not_written_again() -> None:
    """Core kinds drop empty texts; the same condition again must be no change."""
    stored: Json = {"metadata": {}, "status": {"conditions": [{"type": "A", "status": "True", "reason": "A", "lastTransitionTime": "T"}]}}  # fmt: skip
    draft = copy.deepcopy(stored)
    edits.set_condition(draft, "A", status="True", now=NOW)
    assert draft == stored


def test_a_condition_can_be_removed() -> None:
    """Only the named one goes; with the last one the list goes too."""
    draft = conditioned(status="True")
    edits.remove_condition(draft, "Ready")
    assert [each["type"] for each in draft["status"]["conditions"]] == ["Other"]
    edits.remove_condition(draft, "Other")
    assert draft["status"] == {}


def test_a_taint_is_known_by_key_and_effect() -> None:
    """The same key with another effect is another taint; the value changes in place, `timeAdded` stays."""
    draft: Json = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule", "value": "1", "timeAdded": "T"}]}}
    edits.add_taint(draft, key="a", effect="NoExecute")
    edits.add_taint(draft, key="a", effect="NoSchedule", value="2")
    assert draft["spec"]["taints"] == [
        {"key": "a", "effect": "NoSchedule", "value": "2", "timeAdded": "T"},
        {"key": "a", "effect": "NoExecute"},
    ]


def test_a_taint_without_value_takes_an_old_value_away() -> None:
    """Asked for no value, none is left over from before."""
    draft: Json = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule", "value": "1", "timeAdded": "T"}]}}
    edits.add_taint(draft, key="a", effect="NoSchedule")
    assert draft["spec"]["taints"] == [{"key": "a", "effect": "NoSchedule", "timeAdded": "T"}]


def test_a_taint_is_removed_by_key_and_perhaps_effect() -> None:
    """With an effect only that one goes, without it all of the key; a Node without taints has no list."""
    draft: Json = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]}}
    edits.remove_taint(draft, key="a", effect="NoSchedule")
    assert draft["spec"]["taints"] == [{"key": "a", "effect": "NoExecute"}]
    edits.remove_taint(draft, key="a")
    assert draft["spec"] == {}


def test_owners_are_known_by_uid() -> None:
    """An owner that is there already keeps the keys that we do not write."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    draft: Json = {"metadata": {"ownerReferences": [{**owner, "blockOwnerDeletion": True}]}}
    edits.add_owner(draft, {**owner, "controller": True})
    edits.add_owner(draft, {**owner, "uid": "v"})
    assert draft["metadata"]["ownerReferences"] == [
        {**owner, "blockOwnerDeletion": True, "controller": True},
        {**owner, "uid": "v"},
    ]
    edits.remove_owner(draft, "u")
    edits.remove_owner(draft, "v")
    assert draft["metadata"] == {}


def test_labels_and_annotations_are_set_and_removed_by_key() -> None:
    """None removes; the others stay."""
    draft: Json = {"metadata": {"labels": {"a": "1", "b": "2"}}}
    edits.set_labels(draft, {"a": None, "c": "3"})
    edits.set_annotations(draft, {"x": "y", "z": None})
    assert draft["metadata"] == {"labels": {"b": "2", "c": "3"}, "annotations": {"x": "y"}}


EDITS: list[Callable[[Json], None]] = [
    lambda draft: edits.set_labels(draft, {"a": "2", "b": None}),
    lambda draft: edits.set_annotations(draft, {"a": "2"}),
    lambda draft: edits.add_finalizer(draft, "f"),
    lambda draft: edits.remove_finalizer(draft, "g"),
    lambda draft: edits.add_owner(draft, {"uid": "u", "name": "o"}),
    lambda draft: edits.remove_owner(draft, "w"),
    lambda draft: edits.add_taint(draft, key="k", effect="NoSchedule"),
    lambda draft: edits.remove_taint(draft, key="l"),
    lambda draft: edits.remove_condition(draft, "Gone"),
]


@pytest.mark.parametrize("edit", EDITS)
def test_doing_an_edit_twice_is_doing_it_once(edit: Callable[[Json], None]) -> None:
    """An edit states how things shall be, so a repetition after a conflict changes nothing more."""
    draft: Json = {
        "metadata": {"labels": {"b": "1"}, "finalizers": ["g", "h"], "ownerReferences": [{"uid": "w"}, {"uid": "x"}]},
        "spec": {"taints": [{"key": "l", "effect": "NoExecute"}]},
        "status": {"conditions": [{"type": "Gone", "status": "True"}]},
    }
    edit(draft)
    once = copy.deepcopy(draft)
    edit(draft)
    assert draft == once


@pytest.mark.parametrize("edit", EDITS)
def test_edits_manage_with_an_object_that_has_nothing_yet(edit: Callable[[Json], None]) -> None:
    """Missing and null lists and maps are as empty ones."""
    bare: Json = {"metadata": {}}
    null: Json = {
        "metadata": {"labels": None, "annotations": None, "finalizers": None, "ownerReferences": None},
        "spec": {"taints": None},
        "status": {"conditions": None},
    }
    edit(bare)
    edit(null)
    for section, fields in bare.items():
        for field, value in fields.items():
            assert null[section][field] == value


def test_setting_a_condition_twice_changes_nothing_more() -> None:
    """A repetition at a later time is no transition."""
    draft: Json = {"metadata": {"name": "n"}}
    edits.set_condition(draft, "Ready", status="True", now=NOW)
    once = copy.deepcopy(draft)
    edits.set_condition(draft, "Ready", status="True", now=LATER)
    assert draft == once
