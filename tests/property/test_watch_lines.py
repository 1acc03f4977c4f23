"""The line splitter, on any text and any cuts."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from growth.kube.wire import Lines


@given(st.lists(st.binary().map(lambda raw: raw.replace(b"\n", b"")), max_size=20), st.lists(st.integers(0, 400)))
def test_cuts_do_not_matter(lines: list[bytes], cuts: list[int]) -> None:
    """However the stream is cut, the lines that come out are the lines that went in, empty ones left out."""
    text = b"".join(line + b"\n" for line in lines)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    splitter = Lines()
    seen = [line for start, end in itertools.pairwise(edges) for line in splitter.feed(text[start:end])]
    assert seen == [line for line in lines if line]
    assert not splitter.unfinished


@given(st.binary(min_size=1).filter(lambda raw: b"\n" not in raw))
def test_what_has_no_end_is_not_told(rest: bytes) -> None:
    """Bytes after the last newline are held back, and known to be there."""
    splitter = Lines()
    assert list(splitter.feed(b"whole\n" + rest)) == [b"whole"]
    assert splitter.unfinished
    assert list(splitter.feed(b"\n")) == [rest]
