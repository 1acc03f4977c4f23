"""Times in HTTP headers."""

import datetime as dt
import email.utils
from collections.abc import Mapping


def http_date(text: str) -> dt.datetime | None:
    """`Sun, 06 Nov 1994 08:49:37 GMT`; None for anything else."""
    try:
        read = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return read if read.tzinfo is not None else read.replace(tzinfo=dt.UTC)


def retry_after(headers: Mapping[str, str], now: dt.datetime) -> float | None:
    """The seconds that `Retry-After` asks for, in either of its forms; None where it is missing or says nothing.

    A date is compared with the answer's own `Date` where there is one: our clock may be wrong.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return float(text)
    moment = http_date(text)
    if moment is None:
        return None
    return max(0.0, (moment - (http_date(headers.get("date", "")) or now)).total_seconds())
