"""The rights that `growth rbac` prints."""

import json
import pathlib

import pytest
import yaml

from growth.api.pods import POD_TEMPLATE
from growth.cli import live
from growth.cli.entry import run
from growth.cli.manifests.collection import TEMPLATED
from growth.operator.roles import objects, reader

ROOT = pathlib.Path(__file__).parents[2]


def test_both_formats_say_the_same_for_the_namespace_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Accounts, roles and bindings of that namespace; every binding names a role and an account that are printed too."""
    assert run(["rbac", "--namespace", "platform"]) == 0
    printed = list(yaml.safe_load_all(capsys.readouterr().out))
    assert run(["rbac", "--namespace", "platform", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == printed == objects(namespace="platform")
    known = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in printed}
    bindings = [each for each in printed if each["kind"].endswith("Binding")]
    assert len(bindings) == 5
    for each in bindings:
        place = each["metadata"].get("namespace", "")
        assert (each["roleRef"]["kind"], place, each["roleRef"]["name"]) in known
        assert [("ServiceAccount", "platform", subject["name"]) in known for subject in each["subjects"]] == [True]


@pytest.mark.parametrize("provider", ["kwok", "hetzner"])
def test_nothing_is_allowed_wholesale(provider: str) -> None:
    """No rule has a star."""
    for each in objects(namespace="growth", provider=provider):
        for rule in each.get("rules", ()):
            assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])


def secrets(provider: str) -> dict[tuple[str, str], list[str]]:
    """What may be done with Secrets: by the role's kind and namespace."""
    return {
        (each["kind"], each["metadata"].get("namespace", "")): rule["verbs"]
        for each in objects(namespace="home", provider=provider)
        for rule in each.get("rules", ())
        if "secrets" in rule["resources"]
    }


def test_secrets_are_read_by_name_at_home_and_nowhere_else() -> None:
    """With Hetzner one Secret at a time in Growth's namespace, and tokens are made that nobody may read; else none at all."""
    assert secrets("kwok") == {}
    assert secrets("hetzner") == {("Role", "home"): ["get"], ("Role", "kube-system"): ["create"]}


def test_the_reader_may_read_what_the_commands_read_and_change_nothing() -> None:
    """Every kind that is listed, and no verb beyond looking."""
    rules = [rule for each in reader(namespace="growth") for rule in each.get("rules", ())]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    granted = {(group, resource) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]}
    read = {(kind.group, kind.plural) for kind in (*live.NEEDED, *live.OPTIONAL, *TEMPLATED, POD_TEMPLATE)}
    assert read - granted == {("batch", "jobs")}
    assert not any(resource == "secrets" for _, resource in granted)


def test_the_readers_manifest_is_shipped_as_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """`deploy/growth-reader.yaml` is `growth rbac --read-only`."""
    assert run(["rbac", "--read-only"]) == 0
    assert (ROOT / "deploy" / "growth-reader.yaml").read_text() == capsys.readouterr().out
