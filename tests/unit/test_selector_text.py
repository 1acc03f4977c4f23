"""Label selectors of objects, as they are asked of a server."""

from growth.api.meta import LabelSelector, LabelSelectorRequirement, selector_text
from growth.kube.memory.selectors import parse_labels


def test_a_selector_in_the_servers_syntax() -> None:
    """Every operator selects through the server what it selects in a pod's rule."""
    expressions = (
        LabelSelectorRequirement("tier", "In", ("b", "a")),
        LabelSelectorRequirement("track", "NotIn", ("canary",)),
        LabelSelectorRequirement("team", "Exists"),
        LabelSelectorRequirement("old", "DoesNotExist"),
    )
    text = selector_text(LabelSelector({"app": "web"}, expressions))
    assert text == "app=web,tier in (a,b),track notin (canary),team,!old"
    selects = parse_labels(text)
    assert selects is not None
    assert selects({"app": "web", "tier": "a", "team": "x"})
    assert not selects({"app": "web", "tier": "a", "team": "x", "track": "canary"})
    assert not selects({"app": "web", "tier": "a", "team": "x", "old": ""})
    assert not selects({"app": "web", "tier": "c", "team": "x"})
    assert selector_text(LabelSelector()) == ""
