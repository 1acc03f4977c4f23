"""`python -m bench` lists the benchmarks; `python -m bench NAME [options] [-o json]` runs one.

A benchmark is a module of this package with `add_arguments(parser)` and `measure(options)`, which returns what is to be
printed: names and values, mappings of them, or lists of rows. Its docstring says from where to where each side is timed.
"""

import argparse
import importlib
import json
import pkgutil
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import bench


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help"}:
        print((__doc__ or "").splitlines()[0])
        for name, module in _benchmarks():
            print(f"  {name:12} {(module.__doc__ or '').splitlines()[0]}")
        return 0
    name = arguments[0]
    chosen = _benchmark(name)
    if chosen is None:
        names = ", ".join(known for known, _ in _benchmarks())
        print(f"bench: there is no benchmark {name!r}; choose one of: {names}", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(
        prog=f"python -m bench {name}",
        description=chosen.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="how to print the result")
    chosen.add_arguments(parser)
    options = parser.parse_args(arguments[1:])
    result: dict[str, Any] = chosen.measure(options)
    if options.output == "json":
        print(json.dumps({"benchmark": name, **result}, indent=2))
    else:
        _print(result)
    # A benchmark that is a test too says when it failed.
    return int("failed" in vars(chosen) and chosen.failed(result))


def _benchmarks() -> Iterator[tuple[str, types.ModuleType]]:
    for found in pkgutil.iter_modules(bench.__path__):
        if not found.ispkg and found.name != "__main__":
            module = _benchmark(found.name)
            if module is not None:
                yield found.name, module


def _benchmark(name: str) -> types.ModuleType | None:
    """The module, if there is one by this name and it measures something."""
    if name not in {found.name for found in pkgutil.iter_modules(bench.__path__)}:
        return None
    module = importlib.import_module(f"bench.{name}")
    return module if hasattr(module, "measure") else None


def _print(result: Mapping[str, Any]) -> None:
    rows = list(_rows(result))
    width = max((len(label) for label, value in rows if not _is_table(value)), default=0)
    for label, value in rows:
        if _is_table(value):
            print(f"\n{label}")
            _print_table(value)
        else:
            print(f"{label:{width}}  {_text(value)}")


def _rows(result: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in result.items():
        label = f"{prefix}{name.replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from _rows(value, f"{label} · ")
        else:
            yield label, value


def _is_table(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[name.replace("_", " ") for name in names]]
    cells += [[_text(row.get(name, "")) for name in names] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    for line in cells:
        first, *others = zip(line, widths, strict=True)
        print("  ".join([f"{first[0]:<{first[1]}}", *(f"{text:>{width}}" for text, width in others)]).rstrip())


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
