"""The page docs/settings.md, written from the table: `python -m growth.operator.settings_page > docs/settings.md`."""

import sys

from growth.operator.settings import SECTIONS

HEAD = """# Settings

Every setting of `growth run` is a flag and a variable; a flag beats a variable, a variable beats the default. Durations
are written as `30s`, `10m` or `1h30m`. A value that cannot be read ends the start with exit code 2 and one line, and so
does a flag that is given twice. Flags `--kubeconfig` and `--context` choose the cluster, see [access.md](access.md).

This page is made from the table in `src/growth/operator/settings.py`.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for section in SECTIONS:
        parts.append(
            f"\n## {section.title}\n\n| Flag | Variable | Value | Default | Meaning |\n|---|---|---|---|---|\n"
        )
        for setting in section.settings:
            shown = "" if setting.default is None else setting.value.show(setting.default)
            default = f"`{shown}`" if shown not in {"", "none"} else "none"
            parts.append(
                f"| `{setting.flag}` | `{setting.variable}` | {setting.value.word} | {default} | {setting.doc} |\n"
            )
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
