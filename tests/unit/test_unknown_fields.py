"""What a cluster's definition has that ours lacks."""

import copy
from typing import Any

import pytest

from growth.api.crds import all_crds
from growth.cli.unknown_fields import unknown_fields

Schema = dict[str, Any]


def crd(schema: Schema, *, version: str = "v1", others: tuple[str, ...] = ()) -> Schema:
    versions = [{"name": name, "schema": {"openAPIV3Schema": schema}} for name in (version, *others)]
    return {"spec": {"versions": versions}}


def fields(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


TEXT: Schema = {"type": "string"}
ANYTHING: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("theirs", "ours", "unknown"),
    [
        (fields(spec=fields(a=TEXT)), fields(spec=fields(a=TEXT, b=TEXT)), []),
        (fields(spec=fields(a=TEXT, b=TEXT)), fields(spec=fields(a=TEXT)), ["spec.b"]),
        (fields(apiVersion=TEXT, kind=TEXT, metadata={"type": "object"}), fields(), []),
        (
            fields(spec=fields(list={"type": "array", "items": fields(x=TEXT, y=TEXT)})),
            fields(spec=fields(list={"type": "array", "items": fields(x=TEXT)})),
            ["spec.list[].y"],
        ),
        (
            fields(spec=fields(map={"type": "object", "additionalProperties": fields(x=TEXT, y=TEXT)})),
            fields(spec=fields(map={"type": "object", "additionalProperties": fields(x=TEXT)})),
            ["spec.map.*.y"],
        ),
        (
            fields(spec=fields(limits={"type": "object", "additionalProperties": TEXT})),
            fields(spec=fields(limits={"type": "object"})),
            ["spec.limits.*"],
        ),
        (fields(spec=fields(a=fields(b=fields(c=TEXT)))), fields(spec=fields(a=ANYTHING)), []),
        (fields(spec=fields(a=ANYTHING)), fields(spec=fields(a=fields(b=TEXT))), ["spec.a.*"]),
        (fields(spec=fields(a=fields(metadata=TEXT))), fields(spec=fields(a=fields())), ["spec.a.metadata"]),
        (fields(spec=fields(a=TEXT)), {"type": "object", "additionalProperties": True}, []),
    ],
)
def test_every_depth_is_compared(theirs: Schema, ours: Schema, unknown: list[str]) -> None:
    """Properties, lists and maps are followed; what ours keeps unseen counts as known."""
    assert unknown_fields(crd(theirs), crd(ours)) == unknown


def test_versions_are_compared_one_by_one() -> None:
    """A version that ours lacks would be dropped too; a path says which version it is of."""
    theirs = crd(fields(spec=fields(a=TEXT)), others=("v1beta1",))
    assert unknown_fields(theirs, crd(fields(spec=fields()))) == ["v1: spec.a", "version v1beta1"]


def test_our_own_definitions_lack_nothing_of_themselves() -> None:
    """What we print can be applied again and again."""
    for one in all_crds():
        assert unknown_fields(copy.deepcopy(one), one) == []
