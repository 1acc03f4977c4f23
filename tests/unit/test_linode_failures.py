"""What a refusal of Linode's is taken for, and how it is told."""

import pytest

from growth.providers.http import Problem, Refused
from growth.providers.linode.client import problem
from growth.providers.linode.failures import OF_TOKENS, Meaning, in_words, meaning

NOT_SOLD = (
    "The Linode plan you chose is not currently available in the selected region. Please select another region or plan type,"
    " or contact Support for assistance."
)


def refused(status: int, reason: str, field: str = "api") -> Refused:
    return Refused("POST /linode/instances", status=status, problem=Problem(code=field, message=reason))


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (403, NOT_SOLD),
        (400, NOT_SOLD),
        (400, "The selected plan type is currently unavailable in this region"),
        (400, "Linode plan g6-standard-2 is not available in us-east"),
        (400, "This region is at capacity"),
    ],
)
def test_a_plan_that_a_region_lacks_is_no_matter_of_the_token(status: int, reason: str) -> None:
    """Whatever status the vendor says it with."""
    assert meaning(refused(status, reason)) is Meaning.CAPACITY


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "Invalid Token"),
        (401, NOT_SOLD),
        (403, "Your OAuth token is not authorized to use this endpoint."),
        (403, "Your account must be activated before you can use this endpoint"),
        (403, "The type of your token has no capacity to write"),
    ],
)
def test_what_a_token_may_not_do_is_said_in_the_vendors_words_too(status: int, reason: str) -> None:
    """They tell a token from an account that is not activated."""
    error = refused(status, reason)
    assert meaning(error) is Meaning.FATAL
    assert OF_TOKENS in in_words(error)
    assert reason in in_words(error)


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("placement_group.id", "Placement Group is at its limit of 5 Linodes"),
        ("placement_group", "Placement group has reached capacity"),
        ("metadata.user_data", "user_data must not exceed the 16KB limit"),
        ("image", "image requires a Linode type with a larger capacity disk"),
        ("swap_size", "Swap size exceeds disk capacity"),
        ("firewall_id", "Firewall device limit reached for this firewall"),
    ],
)
def test_a_field_of_the_class_is_the_classs_whatever_the_words(field: str, reason: str) -> None:
    """No type is left out for it, and the account is not held to be full."""
    assert meaning(refused(400, reason, field)) is Meaning.CONFIG


def test_limits_are_the_accounts_and_counts_the_pools() -> None:
    """Where no field of the class is blamed."""
    assert meaning(refused(400, "Account Limit reached. Please open a support ticket.")) is Meaning.QUOTA
    assert meaning(refused(400, "Cluster node limit of 250 exceeded", "count")) is Meaning.QUOTA
    assert meaning(refused(400, "Must be 1-100", "count")) is Meaning.FULL
    assert meaning(refused(400, "Not for this cluster", "type")) is Meaning.CAPACITY


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"errors": [{"reason": "image is not valid", "field": "image"}]}', "image"),
        (b'{"errors": [{"reason": "image is not valid", "field": null}]}', "api"),
        (b'{"errors": [{"reason": "image is not valid", "field": ""}]}', "api"),
        (b'{"errors": [{"reason": "image is not valid"}]}', "api"),
    ],
)
def test_a_refusal_is_the_vendors_with_or_without_a_field(body: bytes, code: str) -> None:
    """Null is as good as nothing; what is taken for a proxy's page would be tried for ever."""
    assert problem(body) == Problem(code=code, message="image is not valid")


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"null", b'{"errors": []}', b'{"errors": null}', b'{"errors": [{}]}']
)
def test_what_is_no_error_of_the_vendors_is_a_proxys(body: bytes) -> None:
    """A page by something in between says nothing of the request."""
    assert problem(body) is None
