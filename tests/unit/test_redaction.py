"""No secret reaches a log line, an event or an error."""

import dataclasses
from typing import Any

import pytest

from growth.telemetry.redaction import HIDDEN, names_secret, redacted, redacted_text

SECRET = "s3cr3t-Value.0123456789"
JWT = "eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJrdWJlcm5ldGVz.c2lnbmF0dXJlLXBhcnQ"
PEM = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\nabc=\n-----END EC PRIVATE KEY-----"


@pytest.mark.parametrize(
    "key",
    [
        "token",
        "Token",
        "apiToken",
        "HCLOUD_TOKEN",
        "linode-token",
        "password",
        "root_pass",
        "root_password",
        "secret",
        "client_secret",
        "Authorization",
        "proxy-authorization",
        "user_data",
        "userData",
        "kubeconfig",
        "client-key-data",
        "apiKey",
        "set-cookie",
        "credentials",
    ],
)
def test_the_value_of_a_secrets_key_is_hidden(key: str) -> None:
    """Whatever the value's type, nothing of it is left; whether there is one may be said."""
    for value in (SECRET, SECRET.encode(), {"inner": SECRET}, [SECRET], 123456):
        assert redacted({key: value}) == {key: HIDDEN}
    assert redacted({key: None}) == {key: None}
    assert redacted({key: True}) == {key: True}


@pytest.mark.parametrize(
    "key", ["secret_name", "token_ttl", "pod", "node", "nodepool", "price", "monkey", "author", "tokenizer", "keys"]
)
def test_other_keys_keep_their_values(key: str) -> None:
    """A name that only looks alike hides nothing."""
    assert not names_secret(key)
    assert redacted({key: "default"}) == {key: "default"}


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {SECRET}",
        f"sent with bearer {SECRET}",
        "Basic dXNlcjpwYXNzd29yZA==",
        f"https://admin:{SECRET}@example.com/path",
        f"token={SECRET}",
        f"?access_token={SECRET}&page=2",
        f'{{"token": "{SECRET}", "id": 7}}',
        f"password: {SECRET}",
        f"Access(user='me', api_token='{SECRET}', region='fsn1')",
        f'user_data="#cloud-config\\nruncmd: [{SECRET}]"',
        f"HCLOUD_TOKEN={SECRET} growth run",
        f'body: {{\\"token\\":\\"{SECRET}\\",\\"id\\":7}}',
        f'cut off: token="{SECRET}',
        f"the token was {JWT} and is gone",
        f"key file: {PEM}",
        f"cut off: {PEM[:40]}",
    ],
)
def test_secrets_are_cut_out_of_texts(text: str) -> None:
    """The usual carriers of secrets lose them, wherever in a text they stand."""
    clean = redacted_text(text)
    assert HIDDEN in clean
    for part in (SECRET, "dXNlcjpwYXNzd29yZA", JWT, "MHcCAQEE"):
        assert part not in clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"GET https://u:{SECRET}@example.com/path failed", f"GET https://u:{HIDDEN}@example.com/path failed"),
        (f'{{"token": "{SECRET}", "id": 7}}', f'{{"token": {HIDDEN}, "id": 7}}'),
        (f"?access_token={SECRET}&page=2", f"?access_token={HIDDEN}&page=2"),
        ("pod default/web-1 does not fit: cpu lacks 500m", "pod default/web-1 does not fit: cpu lacks 500m"),
        ("the basic plan; a bearer of news", "the basic plan; a bearer of news"),
        ("https://example.com:6443/api?limit=5", "https://example.com:6443/api?limit=5"),
    ],
)
def test_what_stands_around_a_secret_stays(text: str, clean: str) -> None:
    """A line remains readable, and a line without secrets remains itself."""
    assert redacted_text(text) == clean


@dataclasses.dataclass
class Login:
    user: str
    token: str


def test_values_become_plain_types_without_secrets() -> None:
    """Nested mappings, sequences, objects and errors are searched too; bytes are only counted."""
    value: dict[str, Any] = {
        "headers": [{"authorization": SECRET}, ("x", f"token={SECRET}")],
        "login": Login("me", SECRET),
        "error": ValueError(f"refused: Bearer {SECRET}"),
        "body": b"12345",
        "zones": {"b", "a"},
        "count": 3,
    }
    clean = redacted(value)
    assert SECRET not in repr(clean)
    assert clean["headers"] == [{"authorization": HIDDEN}, ["x", f"token={HIDDEN}"]]
    assert clean["body"] == "5 bytes"
    assert clean["zones"] == ["a", "b"]
    assert clean["count"] == 3
    assert "me" in clean["login"]


def test_a_value_that_contains_itself_ends() -> None:
    """A cycle is cut, not followed."""
    value: dict[str, Any] = {}
    value["self"] = value
    assert "…" in repr(redacted(value))


@pytest.mark.parametrize(
    "piece", ["a", "a-", "a.", "x://a:", "token ", 'token="', "bearer ", "-eyJaaaaaaaaa", "eyJaaaaaaaaa."]
)
def test_odd_texts_of_any_length_are_searched_in_step_with_it(piece: str) -> None:
    """A hundred thousand pieces end as soon as it takes to read them, and a secret behind them is still found."""
    clean = redacted_text(piece * 100_000 + f" Bearer {SECRET}")
    assert SECRET not in clean
