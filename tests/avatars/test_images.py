"""What becomes of the pixels: formats, orientation, transparency, frames, metadata."""

import io
import struct
import zlib

import pytest
from PIL import Image, PngImagePlugin

from tests.support.images import (
    BLUE,
    GREEN,
    RED,
    YELLOW,
    encoded,
    is_near,
    peak_memory_below,
    photo,
    plain,
    png_chunk,
    png_of,
    quarters,
    shown,
    upload,
)

CORNERS = {
    "top left": (64, 64),
    "top right": (448, 64),
    "bottom left": (64, 448),
    "bottom right": (448, 448),
}
UPRIGHT = [RED, GREEN, BLUE, YELLOW]
SECRET = b"a secret in the metadata"
# How a camera stores the upright picture for each EXIF orientation (EXIF 2.3, tag 0x0112).
STORED_AS = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def corners(image):
    return [image.convert("RGB").getpixel(point) for point in CORNERS.values()]


def insist_on(image, colors):
    found = corners(image)
    assert all(map(is_near, found, colors)), found


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("JPEG", {"quality": 95}),
        ("JPEG", {"quality": 95, "progressive": True}),
        ("WEBP", {"quality": 95}),
        ("WEBP", {"lossless": True}),
        ("GIF", {}),
        ("BMP", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_deflate"}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("TIFF", {"compression": "jpeg", "quality": 95}),
        ("AVIF", {"quality": 95}),
    ],
    ids=str,
)
def test_every_format_is_drawn(drawn, kind, options):
    content = encoded(quarters(), kind, **options)
    for size in (512, 1024):
        image = drawn(content, size)
        assert image.size == (size, size)
        insist_on(image.resize((512, 512)), UPRIGHT)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_pictures_are_turned_upright(drawn, kind):
    upright = quarters((96, 96))
    for orientation, transposition in STORED_AS.items():
        stored = upright if transposition is None else upright.transpose(transposition)
        exif = Image.Exif()
        exif[0x0112] = orientation
        insist_on(drawn(encoded(stored, kind, exif=exif)), UPRIGHT)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data:UserWarning")
@pytest.mark.parametrize(
    "exif", [b"Exif\0\0nonsense", b"Exif\0\0MM\0*\xff\xff\xff\xff", b"Exif\0\0"]
)
def test_metadata_that_cannot_be_read_turns_nothing(drawn, exif):
    insist_on(drawn(encoded(quarters(), "JPEG", quality=95, exif=exif)), UPRIGHT)


@pytest.mark.usefixtures("real_renderer")
def test_metadata_of_a_million_numbers_turns_nothing_and_is_not_read(signed_in):
    """Pillow would make an object of each, together 200 MB: the renderer has no room for them."""
    exif = b"Exif\0\0II*\0" + struct.pack("<IHHHII", 8, 1, 0x0112, 5, 1_200_000, 26) + bytes(4)
    exif += b"\6\0\0\0\1\0\0\0" * 1_200_000
    for kind in ("PNG", "WEBP"):
        content = encoded(quarters(), kind, lossless=True, exif=exif)
        with peak_memory_below(100 * 2**20):
            upload(signed_in, content).ok()
        insist_on(shown(signed_in), UPRIGHT)


@pytest.mark.parametrize(("width", "height"), [(192, 64), (64, 192), (65, 64), (64, 67)])
def test_the_middle_square_is_kept(drawn, width, height):
    image = Image.new("RGB", (width, height), (0, 0, 0))
    left, top = (width - 64) // 2, (height - 64) // 2
    image.paste(quarters(), (left, top))
    inside = drawn(encoded(image)).convert("RGB")
    insist_on(inside, UPRIGHT)
    edges = [inside.getpixel(point) for point in ((4, 4), (507, 4), (4, 507), (507, 507))]
    assert all(map(is_near, edges, UPRIGHT)), edges


@pytest.mark.parametrize("size", [(1, 1), (1, 1024), (1024, 1), (1024, 1024), (1023, 1024)])
def test_any_size_up_to_1024_is_taken(drawn, size):
    assert drawn(encoded(Image.new("RGB", size, GREEN)), 1024).getpixel((512, 512)) == GREEN


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "AVIF"])
def test_transparency_is_kept_in_degrees(drawn, kind):
    image = Image.new("RGBA", (64, 64), (*RED, 0))
    image.paste((*GREEN, 128), (32, 0, 64, 32))
    image.paste((*BLUE, 255), (0, 32, 32, 64))
    options = {} if kind == "PNG" else {"quality": 100}
    got = drawn(encoded(image, kind, **options))
    assert got.mode == "RGBA"
    assert got.getpixel((64, 64))[3] == 0
    assert is_near(got.getpixel((448, 64)), (*GREEN, 128))
    assert is_near(got.getpixel((64, 448)), (*BLUE, 255))


def test_a_transparent_colour_does_not_bleed_into_its_neighbours(drawn):
    """Averaging without regard to alpha would mix the invisible red into the edge."""
    image = Image.new("RGBA", (64, 64), (255, 0, 0, 0))
    image.paste((0, 0, 255, 255), (32, 0, 64, 64))
    got = drawn(encoded(image))
    row = [got.getpixel((x, 256)) for x in range(240, 272)]
    assert all(red <= 8 for red, _, _, alpha in row if alpha > 16), row


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "I", "I;16"])
def test_every_kind_of_png_and_tiff_is_drawn(drawn, mode):
    scale = 257 if mode in {"I", "I;16"} else 1
    if scale == 1:
        image = quarters().convert("RGBA").convert(mode)
    else:
        image = Image.new(mode, (64, 64), 0)
        image.paste(255 * scale, (32, 0, 64, 64))
    kind = "TIFF" if mode in {"I", "PA"} else "PNG"
    if mode == "PA":
        image, kind = quarters().quantize(8), "PNG"
    got = drawn(encoded(image, kind)).convert("RGB")
    if scale > 1:
        assert got.getpixel((64, 256)) == (0, 0, 0)
        assert got.getpixel((448, 256)) == (255, 255, 255)
    elif mode in {"RGB", "RGBA", "P", "PA"}:
        insist_on(got, UPRIGHT)
    else:
        assert len(set(corners(got))) > 1


def test_sixteen_bits_are_scaled_not_cut_off(drawn):
    image = Image.new("I;16", (64, 64), 0x8000)
    assert is_near(
        drawn(encoded(image, "PNG")).convert("RGB").getpixel((256, 256)), (128, 128, 128), 2
    )


def test_inks_become_light(drawn):
    insist_on(drawn(encoded(quarters().convert("CMYK"), "JPEG", quality=95)), UPRIGHT)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "AVIF", "TIFF"])
def test_of_an_animation_the_first_frame_is_shown(drawn, kind):
    frames = [quarters(), *(Image.new("RGB", (64, 64), color) for color in (RED, GREEN, BLUE))]
    more = {"save_all": True, "append_images": frames[1:]}
    if kind != "TIFF":
        more["duration"] = 100
    insist_on(drawn(encoded(frames[0], kind, **more)), UPRIGHT)


def test_a_transparent_gif_stays_transparent(drawn):
    image = quarters().convert("RGBA")
    image.putalpha(0)
    image.paste((*BLUE, 255), (0, 32, 32, 64))
    got = drawn(encoded(image, "GIF"))
    assert got.getpixel((448, 64))[3] == 0
    assert is_near(got.getpixel((64, 448)), (*BLUE, 255))


def test_no_metadata_survives(drawn, tmp_path):
    exif = Image.Exif()
    exif[0x010E] = SECRET.decode()
    xmp = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>" + SECRET + b"</x:xmpmeta>"
    profile = SECRET * 10
    comments = PngImagePlugin.PngInfo()
    comments.add_text("Comment", SECRET.decode())
    sources = [
        encoded(quarters(), "JPEG", exif=exif, icc_profile=profile, comment=SECRET, xmp=xmp),
        encoded(quarters(), "PNG", exif=exif, pnginfo=comments),
        encoded(quarters(), "WEBP", exif=exif, xmp=xmp),
        encoded(photo(256), "WEBP", exif=exif, icc_profile=profile, xmp=xmp),
        encoded(quarters(), "TIFF", description=SECRET.decode(), icc_profile=profile),
        encoded(quarters(), "AVIF", exif=exif, xmp=xmp),
        encoded(quarters(), "GIF", comment=SECRET),
    ]
    for source in sources:
        assert SECRET in source
        drawn(source)
        content = (tmp_path / "512.webp").read_bytes()
        assert SECRET not in content
        assert not {b"EXIF", b"XMP ", b"ICCP"} & {content[i : i + 4] for i in (12, 30, 46)}
        assert set(Image.open(io.BytesIO(content)).info) <= {"loop", "background"}


def test_what_else_a_file_is_does_not_survive(drawn, tmp_path):
    """A picture that is a page, a script and an archive, too: only the picture goes out."""
    payload = b"<script>alert(document.cookie)</script>PK\x03\x04"
    gif = encoded(quarters(), "GIF")
    for content in (
        plain() + payload,
        encoded(quarters(), "JPEG", comment=payload) + payload,
        gif[:-1] + b"\x21\xfe" + bytes([len(payload)]) + payload + b"\0;" + payload,
    ):
        drawn(content)
        assert payload not in (tmp_path / "512.webp").read_bytes()


def test_drawings_are_kept_exactly_and_photographs_are_packed(drawn, tmp_path):
    drawing = quarters((1024, 1024))
    assert drawn(encoded(drawing), 1024).convert("RGB").tobytes() == drawing.tobytes()
    wanted = photo()
    source = encoded(wanted)
    got = drawn(source, 1024).convert("RGB")
    assert (tmp_path / "1024.webp").stat().st_size < len(source) / 4
    for point in ((100, 100), (512, 512), (900, 200)):
        assert is_near(got.getpixel(point), wanted.getpixel(point), 40)


def test_a_png_without_its_last_chunk_is_still_a_picture(drawn):
    rows = zlib.compress(b"".join(b"\0" + bytes(RED) * 8 for _ in range(8)))
    assert drawn(png_of(8, 8, rows)[:-12]).getpixel((256, 256)) == RED


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_tiff_whose_strips_are_a_jpeg_each_is_drawn(drawn, mode):
    """Strips of 8 KiB are what libtiff makes unless told otherwise: here 128 of them."""
    image = quarters((1024, 1024)).convert(mode)
    content = encoded(image, "TIFF", compression="jpeg", strip_size=8192)
    assert content.count(b"\xff\xda") > 100
    drawn(content)


def test_a_tiff_of_a_strip_for_each_row_is_drawn(drawn):
    """It has as many numbers as an honest one can have."""
    content = encoded(quarters((1024, 1024)), "TIFF", compression="tiff_lzw", strip_size=3072)
    with Image.open(io.BytesIO(content)) as image:
        assert len(image.tag_v2[273]) == 1024
    insist_on(drawn(content), UPRIGHT)


# --- as browsers show it ------------------------------------------------------------------------


def grey_png(depth, key, levels, *chunks, kind=0):
    """Return a PNG of four equal rows: a pixel for each level, one of which is transparent."""
    bits = "".join(f"{level:0{depth}b}" for level in levels)
    row = b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big")
    made = png_of(4, 4, zlib.compress(row * 4), depth=depth, kind=kind)
    ahead = png_chunk(b"tRNS", key) if key else b""
    return made[:33] + ahead + b"".join(chunks) + made[33:]


def middle_row(image):
    return [image.convert("RGBA").getpixel((64 + 128 * column, 256)) for column in range(4)]


@pytest.mark.parametrize(
    ("depth", "transparent", "levels"),
    [
        (2, 1, [0, 1, 2, 3]),
        (4, 5, [0, 5, 10, 15]),
        (8, 85, [0, 85, 170, 255]),
        (16, 0x5500, [0, 0x5500, 0xAA00, 0xFF00]),
    ],
)
def test_the_transparent_grey_of_a_png_is_so_at_every_depth(drawn, depth, transparent, levels):
    opaque = [
        pixel[3] > 127
        for pixel in middle_row(drawn(grey_png(depth, struct.pack(">H", transparent), levels)))
    ]
    assert opaque == [True, False, True, True]


def test_the_transparent_colour_of_a_png_of_16_bits_is_so(drawn):
    levels = [level for level in (0, 0x1234, 0x8000, 0xFFFF) for _ in range(3)]
    opaque = [
        pixel[3] > 127
        for pixel in middle_row(
            drawn(grey_png(16, struct.pack(">3H", *[0x1234] * 3), levels, kind=2))
        )
    ]
    assert opaque == [True, False, True, True]


def test_an_orientation_in_xmp_turns_nothing(drawn):
    xmp = '<rdf:Description tiff:Orientation="3"/>'
    text = PngImagePlugin.PngInfo()
    text.add_itxt("XML:com.adobe.xmp", xmp)
    for content in (
        encoded(quarters(), pnginfo=text),
        encoded(quarters(), "WEBP", lossless=True, xmp=xmp.encode()),
        encoded(quarters(), "JPEG", quality=95, xmp=xmp.encode()),
    ):
        insist_on(drawn(content), UPRIGHT)


@pytest.mark.parametrize(
    ("gamma", "also", "seen"),
    [
        (1.0, [], 188),
        (1 / 2.2, [], 128),
        (1.0, [png_chunk(b"sRGB", b"\0")], 128),
        (0.0, [], 128),
    ],
)
def test_the_gamma_of_a_png_is_applied(drawn, gamma, also, seen):
    named = png_chunk(b"gAMA", struct.pack(">I", round(gamma * 100_000)))
    row = middle_row(drawn(grey_png(8, None, [0, 128, 128, 255], named, *also)))
    for pixel, grey in zip(row, (0, seen, seen, 255), strict=True):
        assert is_near(pixel, (grey, grey, grey, 255), 3)


def test_what_the_first_frame_of_a_gif_leaves_uncovered_is_transparent(drawn):
    whole = bytearray(plain(RED, (64, 64), "GIF"))
    frame = whole.index(b",", 13)
    assert struct.unpack("<4H", whole[frame + 1 : frame + 9]) == (0, 0, 64, 64)
    whole[6:10] = struct.pack("<2H", 128, 128)
    whole[frame + 1 : frame + 5] = struct.pack("<2H", 64, 64)
    image = drawn(bytes(whole)).convert("RGBA")
    assert [image.getpixel(point)[3] for point in CORNERS.values()] == [0, 0, 0, 255]
    assert is_near(image.getpixel(CORNERS["bottom right"])[:3], RED)
