"""What went wrong, in one line for a person, and the exit code for a script.

2    bad input: arguments, files, settings, a kubeconfig that cannot be used
1    the work failed: the server refused or is away, a limit was hit, or Growth has a defect
130  interrupted (Ctrl-C)
141  nobody reads our output any more (`growth crds | head -1`)
"""

from typing import Final

FAILED: Final = 1
BAD_INPUT: Final = 2
INTERRUPTED: Final = 130  # as a shell reports a process that SIGINT ended
OUTPUT_CLOSED: Final = 141  # as a shell reports a process that SIGPIPE ended


class UsageError(Exception):
    """Bad input; the message says what, where and what to do."""


class RunFailed(Exception):
    """The work could not be done, through nobody's bad input; the message says why and what to do."""


def explained(error: BaseException) -> tuple[str, int]:
    """The line to print, without the leading `growth: ` and without secrets, and the exit code."""
    from growth.telemetry.redaction import redacted_text

    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    text, code = _meaning(error)
    return redacted_text(" ".join(text.split())), code


def _meaning(error: BaseException) -> tuple[str, int]:
    from growth.kube.errors import ConfigError, KubeError
    from growth.units.errors import UnitError

    if isinstance(error, UsageError | UnitError | ConfigError):
        return str(error), BAD_INPUT
    if isinstance(error, KubeError | RunFailed):
        return str(error) or type(error).__name__, FAILED
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror}", FAILED
    advice = "this is a defect of Growth: run it again with GROWTH_DEBUG=1 and report what it shows"
    return f"{type(error).__name__}: {error}; {advice}", FAILED
