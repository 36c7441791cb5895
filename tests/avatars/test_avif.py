"""AVIF files whose container is a trap (ISO/IEC 14496-12, 23008-12)."""

import struct
import time
from pathlib import Path

import pytest
from PIL import Image

from app.avatars import av1_sizes, rendering
from app.avatars.errors import FileTypeNotAllowed, ImageTooLarge
from app.core.errors import AppError
from tests.support.images import (
    BLUE,
    GREEN,
    RED,
    YELLOW,
    encoded,
    is_near,
    needing_less_than,
    photo,
    quarters,
    shown,
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


def test_a_picture_of_several_tiles_is_drawn(signed_in):
    upload(signed_in, tiled(FOUR)).ok()
    image = shown(signed_in).convert("RGB")
    found = [image.getpixel(point) for point in ((64, 64), (448, 64), (64, 448), (448, 448))]
    assert all(map(is_near, found, [RED, GREEN, BLUE, YELLOW])), found


# --- what libavif would do before anybody learns how large the picture is -------------------------


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


@pytest.mark.parametrize("made", [of_places, of_properties, of_references])
def test_a_file_of_very_many_items_is_refused_before_libavif_sees_it(made, tmp_path):
    """It would compare each with all others, and no other Python code would run meanwhile."""
    content = made(60_000)
    began = time.process_time()
    refused(content, tmp_path)
    assert time.process_time() - began < 1.5  # else five seconds and more


@pytest.mark.parametrize("number", [1, 2])
def test_lists_of_items_are_counted_together_and_wherever_they_are(number):
    content = bytearray(av1_sizes.MOST_LIST_BYTES // 2)
    lists = [box(b"iref", bytes(content)) for _ in range(number)]
    inside = full_box(b"meta", 0, box(b"iprp", *lists))
    whole = encoded(quarters(), "AVIF")
    for added in (inside, box(b"moov", box(b"trak", inside))):
        if number == 1:
            assert av1_sizes.largest_side(memoryview(whole + added)) == 64
        else:
            with pytest.raises(av1_sizes.Unreadable):
                av1_sizes.largest_side(memoryview(whole + added))


@pytest.mark.parametrize("number", [1, 1000])
def test_ways_in_which_a_track_is_coded_are_counted(number):
    """libavif makes a kilobyte of each eight bytes: 46 MB of 400 KB."""
    frames = [quarters(), quarters()]
    content = encoded(frames[0], "AVIF", save_all=True, append_images=frames[1:])
    assert av1_sizes.largest_side(memoryview(content)) == 64
    ways = full_box(b"stsd", 0, numbers("I", 5 * number), box(b"free") * (5 * number))
    content += box(b"moov", box(b"trak", box(b"mdia", box(b"minf", ways))))
    if number == 1:
        assert av1_sizes.largest_side(memoryview(content)) == 64
    else:
        with pytest.raises(av1_sizes.Unreadable):
            av1_sizes.largest_side(memoryview(content))


def test_properties_are_boxes_that_are_counted():
    """libavif makes room for each."""
    free = box(b"free") * (av1_sizes.MOST_STEPS + 1)
    content = encoded(quarters(), "AVIF") + full_box(b"meta", 0, box(b"iprp", box(b"ipco", free)))
    with pytest.raises(av1_sizes.Unreadable):
        av1_sizes.largest_side(memoryview(content))


def test_as_many_frames_as_a_number_can_promise_cost_nothing(tmp_path):
    """libavif would make room for all of them: 260 MB."""
    frames = [quarters(), quarters()]
    content = bytearray(encoded(frames[0], "AVIF", save_all=True, append_images=frames[1:]))
    struct.pack_into(">I", content, content.index(b"stsz") + 8, 1)  # bytes of each
    struct.pack_into(">I", content, content.index(b"stsc") + 16, 2_500_000)
    content += bytes(3 * MEBIBYTE)
    with needing_less_than(32 * MEBIBYTE):
        refused(content, tmp_path)


# --- what is looked at is what libavif decodes ----------------------------------------------------


@pytest.fixture
def whole():
    return encoded(quarters(), "AVIF")


def with_track(whole, *boxes, frames=1):
    """Return the file with a track besides, whose one frame is the picture."""
    start, size = whole.index(b"mdat") + 4, len(stream_of(whole))
    table = {
        b"stsz": full_box(b"stsz", 0, numbers("II", size, 1)),
        b"stsc": full_box(b"stsc", 0, numbers("IIII", 1, 1, frames, 1)),
        b"stco": full_box(b"stco", 0, numbers("II", 1, start)),
        b"co64": full_box(b"co64", 0, numbers("IQ", 1, start)),
    }
    stbl = box(b"stbl", *(table[kind] for kind in boxes))
    return whole + box(b"moov", box(b"trak", box(b"mdia", box(b"minf", stbl))))


@pytest.mark.parametrize("offsets", [b"stco", b"co64"])
def test_an_honest_track_is_measured(whole, offsets):
    content = with_track(whole, b"stsz", b"stsc", offsets, frames=av1_sizes.MOST_FRAMES)
    assert av1_sizes.largest_side(memoryview(content)) == 64


@pytest.mark.parametrize("twice", [b"stsz", b"stsc", b"stco", b"co64"])
def test_a_track_that_says_twice_where_its_frames_are_is_refused(whole, twice):
    """One answer would be measured, and the other decoded: 8192 x 8192 pixels, in a test once."""
    content = with_track(whole, b"stsz", b"stsc", b"stco", twice)
    with pytest.raises(av1_sizes.Unreadable):
        av1_sizes.largest_side(memoryview(content))


def test_a_track_of_too_many_frames_is_refused(whole):
    content = with_track(whole, b"stsz", b"stsc", b"stco", frames=av1_sizes.MOST_FRAMES + 1)
    with pytest.raises(av1_sizes.Unreadable):
        av1_sizes.largest_side(memoryview(content))


def test_items_that_are_placed_twice_are_refused(whole):
    content = whole + full_box(b"meta", 0, HEAD, NO_ITEMS, NO_PLACES)
    assert av1_sizes.largest_side(memoryview(content)) == 64
    content = whole + full_box(b"meta", 0, HEAD, NO_ITEMS, NO_PLACES, NO_PLACES)
    with pytest.raises(av1_sizes.Unreadable):
        av1_sizes.largest_side(memoryview(content))


@pytest.mark.parametrize("number", [2, 3])
def test_items_are_together_not_much_longer_than_their_file(number, whole):
    """Metadata is copied for each item that claims it: hundreds could claim the whole file."""
    places = (numbers("HHHII", n + 1, 0, 1, 0, MEBIBYTE) for n in range(number))
    iloc = full_box(b"iloc", 0, b"\x44\0", numbers("H", number), *places)
    content = memoryview(whole + full_box(b"meta", 0, HEAD, NO_ITEMS, iloc) + bytes(MEBIBYTE))
    if number == 2:
        assert av1_sizes.largest_side(content) == 64
    else:
        with pytest.raises(av1_sizes.Unreadable):
            av1_sizes.largest_side(content)


def test_tiles_that_are_the_same_may_be_stored_once(tmp_path):
    """libavif's encoder does so."""
    tile = photo(64)
    content = tiled([tile] * 4)
    assert len(content) < 2 * len(encoded(tile, "AVIF"))
    source = tmp_path / "source"
    source.write_bytes(content)
    assert rendering.render(source, tmp_path / "rendered") > 0


def test_a_sequence_may_share_its_metadata_with_its_track():
    frames = [quarters(), quarters()]
    exif = b"Exif\0\0II*\0\x08\0\0\0" + bytes(MEBIBYTE)
    content = encoded(frames[0], "AVIF", save_all=True, append_images=frames[1:], exif=exif)
    assert av1_sizes.MOST_ITEM_BYTES < len(exif) < len(content) < 2 * len(exif)
    assert av1_sizes.largest_side(memoryview(content)) == 64


def test_the_items_of_tracks_count_with_those_of_the_file(whole):
    """libavif takes all metadata of a sequence's track, and copies what is in pieces: 93 MB."""

    def meta(item_id, padding):
        places = numbers("HHHIIII", item_id, 0, 2, 0, padding, padding, padding)
        return full_box(b"meta", 0, HEAD, NO_ITEMS, full_box(b"iloc", 0, b"\x44\0\0\1", places))

    def track(item_id):
        return box(b"moov", box(b"trak", meta(item_id, MEBIBYTE // 2)))

    one, room = whole + track(1), bytes(MEBIBYTE)
    assert av1_sizes.largest_side(memoryview(one + room)) == 64
    with pytest.raises(av1_sizes.Unreadable):
        av1_sizes.largest_side(memoryview(one + track(2) + track(3) + room))


def test_a_tracks_own_images_are_measured(whole):
    image = encoded(Image.new("RGB", (128, 64)), "AVIF")
    at = image.index(b"meta") - 4
    (length,) = struct.unpack_from(">I", image, at)
    meta = image[at : at + length].replace(b"ispe", b"free")  # its places are those of the file
    content = image[:at] + box(b"free", bytes(length - 8)) + image[at + length :]
    content += box(b"moov", box(b"trak", meta))
    assert av1_sizes.largest_side(memoryview(content)) == 128


def test_a_stream_may_have_frames_as_large_as_their_numbers_can_say():
    """Whatever side the sequence promises: dav1d takes the frame's own."""
    bits = "000" + "0" * 4 + "00000" + "0" * 12 + "00001"  # one operating point of a low level
    bits += f"{11:04b}{11:04b}{99:012b}{99:012b}"  # sides in twelve bits: here 100
    bits = bits.ljust(8 * 16, "0")
    header = int(bits, 2).to_bytes(16, "big")
    stream = bytes([av1_sizes.SEQUENCE_HEADER << 3 | 2, len(header)]) + header
    item = full_box(b"infe", 2, numbers("HH", 1, 0), b"av01", b"\0")
    place = numbers("HHHHII", 1, 1, 0, 1, 0, len(stream))
    content = START + full_box(
        b"meta",
        0,
        HEAD,
        full_box(b"iloc", 1, b"\x44\0\0\1", place),
        full_box(b"iinf", 0, b"\0\1", item),
        box(b"idat", stream),
    )
    assert av1_sizes.largest_side(memoryview(content)) == 4096


@pytest.mark.parametrize(
    "told",
    [{"whole": 4096}, {"tile": 4096}, {"output": 4096}, {"output": 4096, "form": "II"}],
    ids=str,
)
def test_what_is_told_of_tiles_is_measured(told):
    """libavif scales each to what is told of it, and makes room for all together: 192 MB."""
    content = tiled(FOUR, **told)
    assert av1_sizes.largest_side(memoryview(content)) == 4096


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("sides", [(4096, 64), (64, 4096)])
def test_what_is_told_of_a_track_is_measured(whole, version, sides):
    times = bytes(32 if version else 20)
    fixed = (side << 16 | 0x8000 for side in sides)
    tkhd = full_box(b"tkhd", version, times, bytes(52), numbers("II", *fixed))
    content = whole + box(b"moov", box(b"trak", tkhd))
    assert av1_sizes.largest_side(memoryview(content)) == 4096


@pytest.mark.parametrize("save_all", [False, True])
@pytest.mark.parametrize("side", [(2049, 64), (64, 2049)], ids=str)
def test_a_file_that_tells_of_too_large_a_side_is_refused(save_all, side, tmp_path):
    frames = [quarters(), quarters()]
    content = encoded(frames[0], "AVIF", save_all=save_all, append_images=frames[1:])
    at = content.index(b"tkhd") + 4 + 4 + 32 + 52 if save_all else content.index(b"ispe") + 8
    fixed = [each << 16 if save_all else each for each in side]
    content = content[:at] + numbers("II", *fixed) + content[at + 8 :]
    refused(content, tmp_path, ImageTooLarge)


def refused(
    content: bytes | bytearray, folder: Path, error: type[AppError] = FileTypeNotAllowed
) -> None:
    source = folder / "source"
    source.write_bytes(content)
    with pytest.raises(error):
        rendering.render(source, folder / "rendered")
