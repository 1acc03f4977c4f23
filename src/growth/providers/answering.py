"""What a caller of a vendor's provider hears: errors of `growth.api.clouds`, or one that ends the process."""

import contextlib
import copy
from collections.abc import AsyncIterator, Callable
from typing import Final

from growth.api.clouds import CloudError, CloudUnavailable
from growth.kube.errors import ConfigError, GateClosed, KubeError
from growth.ports import Clock
from growth.providers.http import CallError, NotSent, Refused

# After a refusal that concerns the whole account nobody asks again for so long.
HELD_SECONDS: Final = 60.0


@contextlib.asynccontextmanager
async def in_our_words(
    vendor: str,
    refused: Callable[[Refused], CloudError],
    *,
    unanswered: Callable[[str], CloudError] = CloudUnavailable,
) -> AsyncIterator[None]:
    """Around the calls of one question. `refused` says what a refusal means for whoever asks."""
    try:
        yield
    except Refused as error:
        raise refused(error) from error
    except NotSent as error:
        raise unanswered(f"{vendor} was not asked: {error}") from error
    except CallError as error:
        raise unanswered(f"{vendor} did not answer: {error}") from error
    except (GateClosed, ConfigError):
        raise
    except KubeError as error:
        raise CloudUnavailable(f"what the cluster says of it cannot be read: {error}") from error


class Hold:
    """Nobody buys for a while: the next would be refused as well, and calls are counted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: tuple[float, CloudError] | None = None

    def check(self) -> None:
        """Raises what was held for, as long as it holds."""
        if self._held is not None and self._held[0] > self._clock.monotonic():
            raise copy.copy(self._held[1])  # without the way that the first one came

    def begin(self, error: CloudError) -> CloudError:
        """From now on, for this error, which is given back to be raised."""
        self._held = (self._clock.monotonic() + HELD_SECONDS, error)
        return error
