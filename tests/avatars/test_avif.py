"""AVIF files whose container is a trap for libavif (ISO/IEC 14496-12, 23008-12)."""

import struct

import pytest
from PIL import Image

from app.avatars import rendering
from tests.support.images import (
    BLUE,
    GREEN,
    RED,
    YELLOW,
    encoded,
    is_near,
    peak_memory_below,
    photo,
    quarters,
    upload,
)

MEBIBYTE = 2**20


def box(kind, *content):
    body = b"".join(content)
    return struct.pack(">I", 8 + len(body)) + kind + body


def full_box(kind, version, *content):
    return box(kind, struct.pack(">I", version << 24), *content)


def numbers(form, *values):
    return struct.pack(f">{form}", *values)


START = box(b"ftyp", b"avif\0\0\0\0avifmif1miaf")
HEAD = full_box(b"hdlr", 0, bytes(4), b"pict", bytes(12), b"\0") + full_box(b"pitm", 0, b"\0\1")
NO_ITEMS = full_box(b"iinf", 0, b"\0\0")
NO_PLACES = full_box(b"iloc", 0, bytes(4))


def stream_of(content):
    """Return the AV1 stream of an AVIF that Pillow has written, which is the last of it."""
    return content[content.index(b"mdat") + 4 :]


FOUR = [Image.new("RGB", (64, 64), color) for color in (RED, GREEN, BLUE, YELLOW)]


def tiled(tiles, *, whole=128, tile=64, output=128, form="HH"):
    """Return an AVIF of two by two tiles, as cameras write them, which tells these sides.

    Tiles that are the same are stored once.
    """
    files = [encoded(each, "AVIF") for each in tiles]
    streams = [stream_of(each) for each in files]
    stored = b"".join(dict.fromkeys(streams))
    at = files[0].index(b"av1C") - 4
    decoder = files[0][at : at + 12]
    ids = range(2, 2 + len(streams))
    grid = numbers(f"BBBB{form}", 0, form == "II", 1, 1, output, output)

    def entry(item_id, kind):
        return full_box(b"infe", 2, numbers("HH", item_id, 0), kind, b"\0")

    def meta(start):
        places = [numbers("HHHHII", 1, 1, 0, 1, 0, len(grid))]
        for item_id, stream in zip(ids, streams, strict=True):
            place = start + stored.index(stream)
            places.append(numbers("HHHHII", item_id, 0, 0, 1, place, len(stream)))
        properties = box(
            b"ipco",
            full_box(b"ispe", 0, numbers("II", whole, whole)),
            full_box(b"ispe", 0, numbers("II", tile, tile)),
            decoder,
            full_box(b"pixi", 0, b"\3\x08\x08\x08"),
        )
        have = [numbers("HBBB", 1, 2, 1, 4), *(numbers("HBBBB", n, 3, 2, 0x83, 4) for n in ids)]
        return full_box(
            b"meta",
            0,
            HEAD,
            full_box(b"iloc", 1, b"\x44\0", numbers("H", len(places)), *places),
            full_box(b"iinf", 0, b"\0\5", entry(1, b"grid"), *(entry(n, b"av01") for n in ids)),
            full_box(b"iref", 0, box(b"dimg", numbers("HHHHHH", 1, 4, *ids))),
            box(b"iprp", properties, full_box(b"ipma", 0, numbers("I", len(have)), *have)),
            box(b"idat", grid),
        )

    start = len(START) + len(meta(0)) + 8
    return START + meta(start) + box(b"mdat", stored)


def test_a_picture_of_several_tiles_is_drawn(drawn):
    image = drawn(tiled(FOUR)).convert("RGB")
    found = [image.getpixel(point) for point in ((64, 64), (448, 64), (64, 448), (448, 448))]
    assert all(map(is_near, found, [RED, GREEN, BLUE, YELLOW])), found


def test_tiles_that_are_the_same_may_be_stored_once(drawn):
    """libavif's encoder does so."""
    tile = photo(64)
    content = tiled([tile] * 4)
    assert len(content) < 2 * len(encoded(tile, "AVIF"))
    drawn(content)


# --- what would keep libavif busy, or make it ask for hundreds of megabytes -----------------------


def of_places(count):
    places = (numbers("IHHH", n + 1, 0, 0, 0) for n in range(count))
    iloc = full_box(b"iloc", 2, b"\0\0", numbers("I", count), *places)
    return START + full_box(b"meta", 0, HEAD, NO_ITEMS, iloc)


def of_properties(count):
    """The items of the list are nowhere else."""
    items = (numbers("IB", n + 1, 0) for n in range(count))
    ipma = full_box(b"ipma", 1, numbers("I", count), *items)
    iprp = box(b"iprp", box(b"ipco"), ipma)
    return START + full_box(b"meta", 0, HEAD, NO_ITEMS, NO_PLACES, iprp)


def of_references(count):
    references = (box(b"cdsc", numbers("IHI", n + 1, 1, n + 2)) for n in range(count))
    iref = full_box(b"iref", 1, *references)
    return START + full_box(b"meta", 0, HEAD, NO_ITEMS, NO_PLACES, iref)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(of_places, marks=pytest.mark.soak),
        pytest.param(of_properties, marks=pytest.mark.soak),
        of_references,
    ],
)
def test_very_many_items_are_given_up(signed_in, made, short_renders):
    """libavif compares each with all others: seven seconds, and ten minutes for ten times more."""
    upload(signed_in, made(200_000)).fails(400, "file.type_not_allowed")


@pytest.mark.parametrize("number", [2, pytest.param(4000, marks=pytest.mark.soak)])
def test_very_many_frames_are_given_up(signed_in, number, short_renders):
    """libavif decodes all of a stream, though only the first is drawn."""
    content = encoded(Image.new("RGB", (1024, 1024), RED), "AVIF", speed=10)
    stream = stream_of(content)
    # Temporal delimiter, sequence header, frame; all but the first is repeated.
    repeated = stream[:2] + stream[2:] * number
    at = content.index(b"iloc")
    place = content.index(numbers("I", len(stream)), at)
    content = content[:place] + numbers("I", len(repeated)) + content[place + 4 :]
    content = content[: -len(stream)] + repeated
    mdat = content.index(b"mdat") - 4
    content = content[:mdat] + numbers("I", 8 + len(repeated)) + content[mdat + 4 :]
    if number == 2:
        upload(signed_in, content).ok()
    else:
        upload(signed_in, content).fails(400, "file.type_not_allowed")


def many_frames_promised():
    frames = [quarters(), quarters()]
    content = bytearray(encoded(frames[0], "AVIF", save_all=True, append_images=frames[1:]))
    struct.pack_into(">I", content, content.index(b"stsz") + 8, 1)  # bytes of each
    struct.pack_into(">I", content, content.index(b"stsc") + 16, 2_500_000)
    return bytes(content) + bytes(3 * MEBIBYTE)


def many_ways_to_code():
    """libavif makes a kilobyte of each eight bytes."""
    frames = [quarters(), quarters()]
    content = encoded(frames[0], "AVIF", save_all=True, append_images=frames[1:])
    at, number = content.index(b"stsd") - 4, 200_000
    (length,) = struct.unpack_from(">I", content, at)
    ways = full_box(b"stsd", 0, numbers("I", number), box(b"free") * number)
    return content[:at] + ways + content[at + length :]


@pytest.mark.parametrize(
    "made",
    [
        many_ways_to_code,
        lambda: tiled(FOUR, whole=4096),
        lambda: tiled(FOUR, output=4096),
        lambda: tiled(FOUR, output=4096, form="II"),
    ],
    ids=["codings", "whole", "output", "long output"],
)
def test_what_is_promised_is_not_made_room_for(drawn, made):
    content = made()
    with peak_memory_below(16 * MEBIBYTE), pytest.raises(rendering.PictureRefused):
        drawn(content)


@pytest.mark.parametrize(
    "made", [many_frames_promised, lambda: tiled(FOUR, tile=4096)], ids=["frames", "tile"]
)
def test_what_is_promised_gets_no_room_that_there_is_not(signed_in, made, real_renderer):
    upload(signed_in, made()).fails(400, "file.type_not_allowed")
