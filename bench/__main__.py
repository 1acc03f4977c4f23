"""`python -m bench` lists the benchmarks; `python -m bench NAME [options] [-o json]` runs one."""

import argparse
import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

# Each is a module of this package with `add_arguments(parser)`, `measure(options)`, and a docstring that says from
# where to where each side is timed.
BENCHMARKS: Final = ("decode", "day", "electing", "informer", "judge", "plan", "differential")


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(__doc__)
        for name in BENCHMARKS:
            summary = (importlib.import_module(f"bench.{name}").__doc__ or "").splitlines()[0]
            print(f"  {name:12} {summary}")
        return 0
    name = arguments[0]
    if name not in BENCHMARKS:
        print(f"bench: there is no benchmark {name!r}; choose one of: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"bench.{name}")
    parser = argparse.ArgumentParser(
        prog=f"python -m bench {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="how to print the result")
    module.add_arguments(parser)
    options = parser.parse_args(arguments[1:])
    result: dict[str, Any] = module.measure(options)
    if options.output == "json":
        print(json.dumps({"benchmark": name, **result}, indent=2))
    else:
        width = max(len(label) for label, _ in _rows(result))
        for label, value in _rows(result):
            print(f"{label:{width}}  {_text(value)}")
    # A benchmark that is a test too says when it failed.
    return int("failed" in vars(module) and module.failed(result))


def _rows(result: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in result.items():
        label = f"{prefix}{name.replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from _rows(value, f"{label} · ")
        else:
            yield label, value


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
