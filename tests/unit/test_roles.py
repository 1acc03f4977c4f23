"""The rights that `growth rbac` prints."""

import json

import pytest
import yaml

from growth.cli.entry import run
from growth.operator.roles import objects


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
