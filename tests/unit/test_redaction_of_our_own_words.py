"""What keeps secrets out of texts cuts nothing out of what Growth itself says."""

import ast
import pathlib
from collections.abc import Iterator
from typing import Final

import pytest

from growth.telemetry.redaction import redacted_text

SOURCE: Final = pathlib.Path(__file__).parents[2] / "src" / "growth"

# By file or folder and what such a text holds; the reason why it may look as if it held a secret.
NOT_FOR_PEOPLE: Final = {
    ("providers/userdata.py", "http://169.254.169.254"): "shell of user data, which fetches a token and hands it on",
    ("kube/memory/builtin/core.py", "illegal base64 data"): "the API server's own words, with which it is compared",
    ("kube/memory/reads.py", "invalid continue token"): "the API server's own words, with which it is compared",
}
# People call Secrets what they hold, and nothing is read as a secret more easily.
SECRETS_NAME: Final = "join-token"
ANY_VALUE: Final = "thing"


def _texts(source: str) -> Iterator[tuple[int, str]]:
    """Every sentence and its line: texts with a space and a letter that are no docstring; values are ordinary words."""
    tree = ast.parse(source)
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = ""
            for each in node.values:
                parts.add(id(each))
                if isinstance(each, ast.Constant):
                    text += str(each.value)
                else:
                    text += SECRETS_NAME if text.endswith("Secret ") else ANY_VALUE
        elif isinstance(node, ast.Expr):
            parts.add(id(node.value))  # docstrings, of attributes too
            continue
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        else:
            continue
        if " " in text and any(map(str.isalpha, text)):
            yield node.lineno, text


def _excuse(file: str, text: str) -> tuple[str, str] | None:
    return next((each for each in NOT_FOR_PEOPLE if file == each[0] and each[1] in text), None)


def test_nothing_is_cut_out_of_our_own_messages() -> None:
    """A word behind `token:` is taken for a secret, in our sentences too: then write no colon there. Each excuse is used."""
    used: set[tuple[str, str]] = set()
    cut: list[str] = []
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        for line, text in _texts(path.read_text()):
            if (clean := redacted_text(text)) == text:
                continue
            excuse = _excuse(file, text)
            if excuse is None:
                cut.append(f"src/growth/{file}:{line} {clean}")
            else:
                used.add(excuse)
    assert not cut, "\n".join(["people would read:", *cut])
    assert used == set(NOT_FOR_PEOPLE)


@pytest.mark.parametrize(
    "source",
    [
        'raise ValueError("it takes no token: make another")',
        'raise ValueError(f"{where} holds no" f" token: {what}")',
        'raise ValueError(f"Secret {name}: it holds nothing")',
        'def it() -> None:\n    """It has no token: none."""\n    raise ValueError("there is no secret: make one")',
    ],
)
def test_a_message_that_would_be_cut_is_found(source: str) -> None:
    """However it is put together, and once."""
    assert len([text for _, text in _texts(source) if redacted_text(text) != text]) == 1
