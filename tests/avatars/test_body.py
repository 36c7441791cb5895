"""Taking a file out of a body, however it arrives (RFC 7578)."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.multipart import BodyTooLarge, BodyUnreadable, MultipartBody
from tests.support.images import BOUNDARY, joined, part

DELIMITER = f"\r\n--{BOUNDARY}".encode()
MANY = settings(max_examples=300)
# What is almost a boundary, and what surrounds one.
TRAPS = st.sampled_from(
    [b"\r\n", b"\r", b"\n", b"--", DELIMITER[:-1], DELIMITER[2:], DELIMITER[1:], b"\r\n--x", b""]
)
CONTENTS = st.lists(st.one_of(st.binary(max_size=40), TRAPS), max_size=8).map(b"".join)
PARTS = st.tuples(CONTENTS, st.sampled_from([None, "", "a.png", "b"]))
SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=20)


def take(content, sizes, max_bytes=10_000, boundary=BOUNDARY):
    """Read a body in pieces of these sizes, again and again; return the size and the file."""
    stream, taken, turn = io.BytesIO(content), bytearray(), 0

    def read():
        nonlocal turn
        turn += 1
        return stream.read(sizes[turn % len(sizes)])

    size = MultipartBody(boundary, read).save_file(max_bytes, taken.extend)
    return size, bytes(taken)


@MANY
@given(st.lists(PARTS, max_size=5), SIZES)
def test_the_first_file_comes_out_as_it_went_in_whatever_the_pieces(parts, sizes):
    parts = [(content, name) for content, name in parts if DELIMITER not in b"\r\n" + content]
    body = joined(*(part(content, filename=name) for content, name in parts))
    files = [content for content, name in parts if name]
    expected = (len(files[0]), files[0]) if files else (None, b"")
    assert take(body, sizes) == expected


@MANY
@given(CONTENTS, SIZES)
def test_no_body_fails_otherwise_than_documented(content, sizes):
    try:
        size, taken = take(content, sizes, max_bytes=50)
    except (BodyUnreadable, BodyTooLarge):
        return
    assert (size or 0) == len(taken) <= 50


@MANY
@given(st.integers(0, 400), SIZES)
def test_a_body_that_ends_too_early_is_never_taken_for_a_whole_one(cut, sizes):
    body = joined(part(b"a field", filename=None), part(b"content"), part(b"more"))
    end = body.rindex(b"--\r\n") + 2  # what follows the last two hyphens is no part of it
    if 0 < cut < end:
        with pytest.raises(BodyUnreadable):
            take(body[:cut], sizes)


@pytest.mark.parametrize("boundary", [None, "", "a\nb", "x" * 5000, "\udcff"])
def test_a_boundary_that_cannot_be_one_makes_the_body_unreadable(boundary):
    with pytest.raises(BodyUnreadable):
        take(joined(part(b"content")), [1000], boundary=boundary)
