"""Files that are no pictures, or pictures nobody should draw."""

import io
import random
import signal
import struct
import subprocess
import zlib

import pytest
from PIL import Image

from app.avatars import render_process, rendering
from tests.support.images import (
    BLUE,
    RED,
    deflated_zeros,
    encoded,
    forged_avif,
    gif_bomb,
    low_first,
    packed,
    peak_memory_below,
    photo,
    plain,
    png_bomb,
    png_chunk,
    png_of,
    quarters,
    shown,
    upload,
)

KINDS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
MEBIBYTE = 2**20

# Pillow tells of damage by warnings, too; a server only writes them down.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def refused(drawn):
    """Insist that a file is refused, for one of these reasons."""

    def refuse(content, *reasons):
        with pytest.raises(rendering.PictureRefused) as refusal:
            drawn(content)
        assert refusal.value.args[0] in reasons

    return refuse


# --- what the program itself refuses --------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"\0",
        b"GIF89a",
        b"\xff\xd8\xff",
        b"RIFF\0\0\0\0WEBP",
        b"BM",
        b"II*\0",
        b"\0\0\0\x18ftypavif",
        b"\x89PNG\r\n\x1a\n",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>",
        b"%PDF-1.7",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
        b"P6 2 2 255 " + bytes(12),
        b"\0\0\1\0\1\0\x10\x10\0\0\1\0\x20\0",
        b"<html><script>alert(1)</script></html>",
        random.Random("no picture").randbytes(10_000),
    ],
    ids=lambda content: repr(content[:12]),
)
def test_what_is_no_accepted_picture_is_refused(refused, content):
    refused(content, "FileTypeNotAllowed")


@pytest.mark.parametrize("place", [2**44, 2**63 - 1, 2**64 - 1])
def test_a_place_that_no_file_can_have_is_the_files_fault(refused, place):
    for content in (
        b"II+\0\x08\0\0\0" + struct.pack("<Q", place) + bytes(100),
        big_tiff_of((273, 16, 1, place)),
        big_tiff_of((34665, 16, 1, place)),
    ):
        refused(content, "FileTypeNotAllowed")


def big_tiff_of(*more):
    """Return a BigTIFF of one grey pixel and further tags."""
    tags = ((256, 4, 1, 1), (257, 4, 1, 1), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), *more)
    rows = b"".join(struct.pack("<HHQQ", *tag) for tag in tags)
    return b"II+\0\x08\0\0\0" + struct.pack("<QQ", 16, len(tags)) + rows + bytes(8)


@pytest.mark.parametrize("kind", ["PPM", "ICO", "TGA", "PCX", "DDS", "ICNS", "PDF", "JPEG2000"])
def test_formats_that_pillow_knows_but_we_do_not_take_are_refused(refused, kind):
    refused(encoded(quarters(), kind), "FileTypeNotAllowed")


@pytest.mark.parametrize("kind", KINDS)
def test_a_truncated_file_is_refused(refused, kind):
    content = encoded(photo(200), kind)
    for kept in (0.02, 0.3, 0.6, 0.9):
        refused(content[: int(len(content) * kept)], "FileTypeNotAllowed")


@pytest.mark.parametrize("kind", KINDS)
def test_a_side_over_the_limit_is_refused(refused, kind):
    for size in ((1025, 1), (1, 1025), (1025, 1025), (1024, 1025)):
        refused(encoded(Image.new("RGB", size, RED), kind), "ImageTooLarge")


def with_size(content: bytes, kind: str, width: int, height: int) -> bytes:
    """Return the file with another size in its header."""
    if kind == "PNG":
        header = content[16:29]
        changed = struct.pack(">II", width, height) + header[8:]
        return content[:8] + png_chunk(b"IHDR", changed) + content[33:]
    places = {
        "GIF": (6, "<HH", None),
        "BMP": (18, "<ii", None),
        "WEBP": (24, None, None),
        "JPEG": (content.find(b"\xff\xc0") + 5, ">HH", "swapped"),
        "AVIF": (content.find(b"ispe") + 8, ">II", None),
    }
    at, form, order = places[kind]
    if kind == "WEBP":
        assert content[12:16] == b"VP8X"
        packed = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    else:
        sides = (height, width) if order else (width, height)
        packed = struct.pack(form, *sides)
    return content[:at] + packed + content[at + len(packed) :]


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "WEBP", "JPEG", "AVIF"])
def test_a_header_that_promises_too_much_is_not_believed(refused, kind):
    image = quarters().convert("RGBA" if kind == "WEBP" else "RGB")
    image.putalpha(100) if kind == "WEBP" else None
    content = encoded(image, kind)
    with peak_memory_below(16 * MEBIBYTE):
        for sides in ((16_000, 16_000), (16_383, 1), (1, 16_383), (1025, 1024)):
            refused(with_size(content, kind, *sides), "ImageTooLarge", "FileTypeNotAllowed")


@pytest.mark.parametrize("kind", ["PNG", "BMP", "JPEG"])
def test_a_picture_without_pixels_is_refused(refused, kind):
    content = encoded(quarters(), kind)
    for sides in ((0, 0), (0, 64), (64, 0)):
        refused(with_size(content, kind, *sides), "EmptyImage", "FileTypeNotAllowed")


def test_a_picture_as_large_as_an_integer_can_say_is_refused(refused):
    for sides in ((2**31 - 1, 2**31 - 1), (2**32 - 1, 1)):
        refused(png_of(*sides, b""), "ImageTooLarge", "FileTypeNotAllowed")


@pytest.mark.parametrize(
    "bomb",
    [
        png_bomb,
        lambda: tiff_bomb(30_000),
        lambda: gif_bomb(16_000),
        lambda: webp_bomb(8192),
    ],
    ids=["png", "tiff", "gif", "webp"],
)
def test_a_small_file_that_would_unpack_to_gigabytes_costs_nothing(refused, bomb):
    content = bomb()
    assert len(content) < 2 * MEBIBYTE
    with peak_memory_below(16 * MEBIBYTE):
        refused(content, "ImageTooLarge")


def tiff_bomb(side):
    """Return a TIFF each of whose rows is one bit, "as the row above" (ITU-T T.6)."""
    rows = b"\xff" * (side // 8)
    tags = (
        *((256, 4, 1, side), (257, 4, 1, side), (258, 3, 1, 1), (259, 3, 1, 4), (262, 3, 1, 0)),
        *((273, 4, 1, 8 + 2 + 12 * 8 + 4), (278, 4, 1, side), (279, 4, 1, len(rows))),
    )
    return tiff_of(*tags, more=rows)


def webp_bomb(side):
    """Return a WebP of one colour, whose pixels need no bits, so that any size may be told."""
    content = encoded(Image.new("RGB", (64, 64)), "WEBP", lossless=True, method=0)
    [told] = struct.unpack_from("<I", content, 21)
    sides = (side - 1) | (side - 1) << 14
    return content[:21] + struct.pack("<I", told >> 28 << 28 | sides) + content[25:]


def test_a_comment_that_unpacks_to_hundreds_of_megabytes_is_refused(refused):
    comment = b"Comment\0\0" + deflated_zeros(200 * MEBIBYTE)
    content = plain()
    for place in (33, len(content) - 12):  # before and after the pixels
        bomb = content[:place] + png_chunk(b"zTXt", comment) + content[place:]
        with peak_memory_below(32 * MEBIBYTE):
            refused(bomb, "FileTypeNotAllowed")


# --- what the limits of its process end ----------------------------------------------------------


@pytest.fixture
def client(request, signed_in, user, staged, published):
    """A client whose account has an avatar, which must survive, with nothing beside it."""
    upload(signed_in, plain(BLUE)).ok()
    request.getfixturevalue("real_renderer")
    yield signed_in
    assert shown(signed_in).getpixel((256, 256)) == BLUE
    assert published() == [f"{user.id}/v1/1024.webp", f"{user.id}/v1/512.webp"]
    assert staged() == []


def test_what_its_process_refuses_is_told_to_the_sender_alone(client, caplog):
    upload(client, b"no picture").fails(400, "file.type_not_allowed")
    upload(client, plain(RED, (1025, 1))).fails(400, "avatar.render_failed")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("told", "refusal"),
    [
        ("", (400, "file.type_not_allowed")),  # as when it was killed
        ('{"refused": "EmptyImage"}', (400, "avatar.empty_image")),
        ('{"refused": "ProcessorUnavailable"}', (412, "avatar.processor_unavailable")),
        ('{"refused": "RenderFailed", "reason": "?"}', (500, "avatar.render_failed")),
        ('{"refused": "RenderFailed", "errno": 28}', (500, "storage.unknown")),
    ],
)
def test_each_end_of_its_process_has_an_answer(client, monkeypatch, told, refusal):
    monkeypatch.setattr(render_process, "_output", lambda *_: b"begun\n" + told.encode())
    upload(client, plain()).fails(*refusal)


def test_a_process_that_does_not_start_is_the_services_own_failure(client, monkeypatch):
    monkeypatch.setattr(render_process, "PROGRAM", "/nowhere")
    upload(client, plain()).fails(500, "avatar.render_failed")


def test_a_process_that_does_not_end_is_given_up(client, monkeypatch):
    def run(command, *, timeout, **_):
        raise subprocess.TimeoutExpired(command, timeout, b"begun\n")

    monkeypatch.setattr(render_process.subprocess, "run", run)
    upload(client, plain()).fails(400, "file.type_not_allowed")


def huge_tile():
    """libtiff makes room for the whole tile of an image that needs a corner of it."""
    rows = deflated_zeros(16_384 * 16_384)
    tags = [
        (256, 4, 64),  # ImageWidth
        (257, 4, 64),
        (258, 3, 8),
        (259, 3, 8),  # deflate
        (262, 3, 1),
        (277, 3, 1),
        (322, 4, 16_384),  # TileWidth
        (323, 4, 16_384),
        (324, 4, 8 + 2 + 12 * 10 + 4),
        (325, 4, len(rows)),
    ]
    return tiff_of(*((tag, kind, 1, value) for tag, kind, value in tags), more=rows)


def many_codes():
    """A WebP with codes of its own for every 16 pixels: 900 MB of tables from 300 KB (VP8L)."""
    groups, side = 65_536, 1024
    one_symbol = "1000"
    # Code lengths 0 and 8 have a code of one bit each; by it 256 symbols get eight bits.
    order = (17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8)
    header = "0" + low_first(8, 4) + "".join(low_first(each in {0, 8}, 3) for each in order)
    eight_bits = header + "0" + "1" * 256
    bits = [low_first(0x2F, 8), low_first(side - 1, 14), low_first(side - 1, 14), "0" * 4]
    bits += ["0", "0", "1", "000"]  # no transform, no cache, codes by place: four pixels a side
    bits += ["0", eight_bits + "0" * 24, eight_bits, one_symbol * 3]
    bits += [low_first(group, 16) for group in range(groups)]
    bits += [one_symbol * (5 * groups)]
    stream = packed(bits)
    chunk = b"VP8L" + struct.pack("<I", len(stream)) + stream
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


@pytest.mark.parametrize(
    "made",
    [huge_tile, many_codes, pytest.param(lambda: forged_avif(64, 8192), marks=pytest.mark.soak)],
    ids=["tile", "codes", "avif"],
)
def test_what_a_decoder_would_make_room_for_without_a_word_is_refused(client, made):
    content = made()
    assert len(content) < 2 * MEBIBYTE
    with peak_memory_below(16 * MEBIBYTE):
        upload(client, content).fails(400, "file.type_not_allowed")


def tiff_of(*tags, more=b""):
    """Return a TIFF, or EXIF, of one directory, with `more` behind it."""
    rows = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + rows + bytes(4) + more


SMALL_GREY = ((256, 4, 1, 64), (257, 4, 1, 64), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1))


def many_strips():
    """Pillow makes two gigabytes of tuples of nine megabytes of offsets."""
    number = 4 * MEBIBYTE
    tags = (*SMALL_GREY, (273, 1, number, 200), (277, 3, 1, 1), (278, 4, 1, 1), (279, 4, 1, 64))
    return tiff_of(*tags, more=bytes(200) + b"\x08" * number)


def many_colors():
    number = 9 * MEBIBYTE
    tags = (*SMALL_GREY[:4], (262, 3, 1, 3), (273, 4, 1, 200), (277, 3, 1, 1), (279, 4, 1, 4096))
    return tiff_of(*tags, (320, 1, number, 5000), more=bytes(5000 + number))


def many_numbers():
    """A directory beside the picture's, all of which is read when the picture has been."""
    number = MEBIBYTE
    tags = (*SMALL_GREY, (273, 4, 1, 200), (277, 3, 1, 1), (279, 4, 1, 4096), (34665, 4, 1, 5000))
    more = bytes(5000 - len(tiff_of(*tags))) + struct.pack("<H", 1)
    more += struct.pack("<HHII", 37000, 5, number, 6000) + bytes(2000)
    return tiff_of(*tags, more=more + b"\1\0\0\0\3\0\0\0" * number)


def many_numbers_in_avif():
    text, number = (37000, 2, 8 * MEBIBYTE, 26), (0x0112, 5, MEBIBYTE, 26)
    exif = tiff_of(text, more=b"\1\0\0\0\3\0\0\0" * MEBIBYTE)
    content = encoded(quarters(), "AVIF", exif=b"Exif\0\0" + exif)
    return content.replace(struct.pack("<HHII", *text), struct.pack("<HHII", *number))


def many_chunks():
    content = plain()
    return content[:33] + png_chunk(b"abCd", b"") * (9 * MEBIBYTE // 12) + content[33:]


def many_profiles():
    content = plain()
    profile = png_chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(MEBIBYTE - 10), 9))
    return content[:33] + profile * 4000 + content[33:]


def many_segments():
    content = plain(kind="JPEG")
    return content[:2] + b"\xff\xe5\0\2" * (9 * MEBIBYTE // 4) + content[2:]


def growing_exif():
    content = plain(kind="JPEG")
    segment = b"\xff\xe1\0\x12Exif\0\0" + bytes(10)
    return content[:2] + segment * (9 * MEBIBYTE // len(segment)) + content[2:]


def growing_comment():
    content = plain(kind="GIF")
    start = 13 + 3 * (2 << (content[10] & 7))
    return content[:start] + b"!\xfe" + b"\1x" * (4 * MEBIBYTE) + b"\0" + content[start:]


def empty_runs():
    """Every run after the first five stands behind the end of its row."""
    header = struct.pack("<IiiHHIIiiII", 40, 1024, 1024, 1, 8, 1, 0, 0, 0, 256, 0) + bytes(1024)
    start = struct.pack("<IHHI", 0, 0, 0, 14 + len(header))
    return b"BM" + start + header + b"\xff\1" * 5 + b"\1\1" * (4 * MEBIBYTE)


def many_scans():
    """Each, however empty, has the decoder go over all pixels."""
    content = encoded(Image.new("L", (1024, 1024)), "JPEG", progressive=True)
    at = content.rindex(b"\xff\xda")
    return content[:-2] + content[at:-2] * 5000 + content[-2:]


LIKEWISE = (
    many_profiles,
    many_segments,
    many_colors,
    many_numbers,
    many_numbers_in_avif,
    growing_comment,
    empty_runs,
)


@pytest.fixture
def ended(monkeypatch):
    """The exit codes of the renderers."""
    codes, run = [], subprocess.run

    def noted(*arguments, **options):
        done = run(*arguments, **options)
        codes.append(done.returncode)
        return done

    monkeypatch.setattr(subprocess, "run", noted)
    return codes


OUT_OF_TIME = {-signal.SIGXCPU, -signal.SIGKILL}


@pytest.mark.parametrize(
    ("made", "codes"),
    [
        (many_strips, {1, *OUT_OF_TIME}),  # it would take gigabytes
        (many_scans, OUT_OF_TIME),  # it would take minutes
    ],
)
def test_a_file_of_millions_of_pieces_meets_a_limit(client, short_renders, ended, made, codes):
    content = made()
    with peak_memory_below(100 * MEBIBYTE):  # the largest files are copied some eight times
        upload(client, content).fails(400, "file.type_not_allowed")
    assert set(ended) <= codes


@pytest.mark.parametrize(
    "made",
    [
        many_chunks,
        growing_exif,
        *(pytest.param(made, marks=pytest.mark.soak) for made in LIKEWISE),
    ],
)
def test_other_files_of_millions_of_pieces_are_given_up(client, made, short_renders):
    """Each of them would keep Pillow busy from ten seconds to hours, or take gigabytes."""
    content = made()
    with peak_memory_below(100 * MEBIBYTE):
        upload(client, content).fails(400, "file.type_not_allowed")


def test_the_pictures_of_this_module_are_what_they_say():
    """Else a refusal would prove nothing."""
    assert Image.open(io.BytesIO(forged_avif(64, 2048))).size == (64, 64)
    assert Image.open(io.BytesIO(png_of(9, 9, b""))).size == (9, 9)
    for bomb in (tiff_bomb, gif_bomb, webp_bomb):
        with Image.open(io.BytesIO(bomb(1024))) as image:
            assert image.size == (1024, 1024)
            # All of it is there, and of one colour.
            assert len(image.convert("L").getcolors()) == 1
    assert zlib.decompress(deflated_zeros(3 * MEBIBYTE + 5)) == bytes(3 * MEBIBYTE + 5)
