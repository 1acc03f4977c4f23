"""How results are printed: columns for people, JSON and YAML for programs. Always to stdout; notes go to stderr."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

Section = tuple[str, tuple[str, ...], list[tuple[object, ...]]]
"""A table of a report: its title, headings and rows."""


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns under headings in capitals, as kubectl prints them; the last one is not padded."""
    lines = [[heading.upper() for heading in headings], *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        print("   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_report(sections: Iterable[Section], *, summary: Iterable[str]) -> None:
    """Each table under its title, then the lines below them."""
    for title, headings, rows in sections:
        print(title)
        print_table(headings, rows)
        print()
    for line in summary:
        print(line)


def print_json(value: Any) -> None:
    """Indented, in the order given."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_yaml(documents: Iterable[Any]) -> None:
    """One document after the other, ready for `kubectl apply -f -`."""
    import yaml

    class Dumper(yaml.CSafeDumper):
        """Without anchors: what two documents share is written out twice."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  the library's signature
            return True

    for document in documents:
        print("---")
        text = yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
        print(text, end="")


def note(text: str) -> None:
    """A line about the output, for the person."""
    print(f"growth: {text}", file=sys.stderr)
