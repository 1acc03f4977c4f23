"""A green run under `CI=true` has run every test."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SKIPS = {
    "in the test": "import pytest\ndef test_it():\n    pytest.skip('not here')\n",
    "by mark": "import pytest\n@pytest.mark.skip(reason='not here')\ndef test_it():\n    pass\n",
    "by fixture": "import pytest\n@pytest.fixture\ndef it():\n    pytest.skip('not here')\ndef test_it(it):\n    pass\n",
    "the module": "import pytest\npytest.skip('not here', allow_module_level=True)\n",
    "by import": "import pytest\npytest.importorskip('no_such_module', reason='not here')\n",
    "what is needed": "from tests.needs import need\ndef test_it():\n    need(False, 'not here')\n",
}


@pytest.mark.parametrize(("ci", "outcome"), [("true", "2 failed, 4 errors"), ("", "6 skipped")])
def test_a_skip_is_a_failure_where_nothing_may_be_skipped(ci: str, outcome: str, tmp_path: pathlib.Path) -> None:
    """Whatever way it is skipped, it fails with the reason under `CI=true`, and only there."""
    for way, text in SKIPS.items():
        (tmp_path / f"test_{way.replace(' ', '_')}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "tests.needs", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*command, "--continue-on-collection-errors", "-rA", "--rootdir", str(tmp_path), str(tmp_path)],
        env={**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout, done.stdout
    assert (done.returncode == 0) == (not ci)
