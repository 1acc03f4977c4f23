"""What tests need that is built apart. Without it they are skipped on a developer's machine; where `CI=true` nothing may
be skipped, by this module or by any other way, so that a green run never hides a test that did not run.
"""

import os
from collections.abc import Generator

import pytest


def strict() -> bool:
    return os.environ.get("CI") == "true"


def need(there: bool, message: str) -> None:  # noqa: FBT001 - an assertion's shape
    """Returns when it is there."""
    if there:
        return
    if strict():
        pytest.fail(message)
    pytest.skip(message)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip is a failure; an expected failure is reported as skipped too, and is none of this."""
    report = yield
    if strict() and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = _told(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A whole module that is skipped while it is read."""
    report = yield
    if strict() and report.skipped:
        report.outcome = "failed"
        report.longrepr = _told(report)
    return report


def _told(report: pytest.TestReport | pytest.CollectReport) -> str:
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    return f"skipped where nothing may be: {why}"
