"""From an uploaded file to two WebP files (spec, Limits; decision A19).

Runs in native threads, at most two at once (`rt.renders`). The file is hostile until proven
otherwise: what its headers promise is checked before anything is made room for, by Pillow or here,
and what goes out is drawn anew, so nothing of the file itself survives.

Source: interface.md, Endpoint rules 11 and Limits; spec 04 §3.2.
"""

import ctypes
import io
import math
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    TiffTags,
    WebPImagePlugin,
    features,
)

from app.avatars import av1_sizes, files
from app.avatars.errors import (
    EmptyImage,
    FileTypeNotAllowed,
    ImageTooLarge,
    ProcessorUnavailable,
    RenderFailed,
)
from app.core.errors import AppError

RENDERS_AT_ONCE = 2  # in one process
LONGEST_SIDE = 1024
SIZES = (1024, 512)  # in the order they are made
QUALITY = 90
METHOD = 2  # how long to look for a smaller file, from 0 to 6
# What has no more colours than this is drawn, not photographed, and is kept exactly.
MOST_DRAWN_COLORS = 4096
MOST_JPEG_SCANS = 100
SCANS_OF_A_PIECE = 4  # of a TIFF: one for each colour
# Of one thread's processor time, to find the header and the pixels; an honest file needs 0.1 s.
MOST_READING_SECONDS = 2.0

# Named, so that they are loaded once, before the workers are forked, and not in a thread.
PLUGINS = (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)
ACCEPTED = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
# Formats a build of Pillow may lack.
OPTIONAL = {"AVIF": "avif", "WEBP": "webp"}
AVIF_BRANDS = (b"avif", b"avis", b"mif1", b"msf1")
SIGNATURES: dict[str, Callable[[bytes], bool]] = {
    "AVIF": lambda head: head[4:8] == b"ftyp" and head[8:12] in AVIF_BRANDS,
    "WEBP": lambda head: head[:4] == b"RIFF" and head[8:12] == b"WEBP",
}
ORIENTATION = 0x0112
TRANSPOSED = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
TILE_SIDES = (322, 323)  # TIFF TileWidth and TileLength
ROWS_PER_STRIP = 278
# Places of a TIFF's strips and tiles, and its colours: numbers to Pillow whatever their type.
NUMBERS = frozenset({273, 324, 320})
TEXTS = frozenset({TiffTags.BYTE, TiffTags.ASCII, TiffTags.UNDEFINED})
# Of a directory of TIFF or EXIF tags. One with the places of 4096 tiles has 32 KiB.
MOST_NUMBER_BYTES = 64 * 1024

# Pillow's own guards, on top of ours: for a canvas that a plugin makes while it opens a file.
Image.MAX_IMAGE_PIXELS = LONGEST_SIDE * LONGEST_SIDE
warnings.simplefilter("error", Image.DecompressionBombWarning)
# Compressed comments; nobody reads them.
PngImagePlugin.MAX_TEXT_CHUNK = 1024 * 1024
PngImagePlugin.MAX_TEXT_MEMORY = 1024 * 1024
AvifImagePlugin.DEFAULT_MAX_THREADS = 1
_load_directory = TiffImagePlugin.ImageFileDirectory_v2.load


def _load_short_directory(directory: TiffImagePlugin.ImageFileDirectory_v2, fp: IO[bytes]) -> None:
    """Read a directory of TIFF or EXIF tags, in whatever format, as long as it is no flood.

    Pillow makes an object, or several, of every number: two gigabytes from nine megabytes.
    Raises: FileTypeNotAllowed.
    """
    _load_directory(directory, fp)
    number_bytes = sum(
        len(content)
        for tag, content in directory._tagdata.items()
        if tag in NUMBERS or directory.tagtype[tag] not in TEXTS
    )
    if number_bytes > MOST_NUMBER_BYTES:
        raise FileTypeNotAllowed


TiffImagePlugin.ImageFileDirectory_v2.load = _load_short_directory  # type: ignore[assignment, method-assign]


class Source(io.BufferedReader):
    """A file that is refused once its reader has worked on it for too long.

    Pillow's parsers are loops in Python around `read`. Of empty chunks, segments, comments or runs
    a file of 10 MiB can have millions, and what they say is copied again with each: minutes in
    which other Python code of the process hardly runs, and hundreds of megabytes.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))
        self._until = time.thread_time() + MOST_READING_SECONDS

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes. Raises: FileTypeNotAllowed when the time is up."""
        if time.thread_time() > self._until:
            raise FileTypeNotAllowed
        return super().read(size)


def render(source: Path, folder: Path) -> int:
    """Make `folder` with the avatar in both sizes, written through to the disk; return its bytes.

    Raises: FileTypeNotAllowed, EmptyImage, ImageTooLarge, ProcessorUnavailable, RenderFailed;
    OSError when the disk fails.
    """
    try:
        return _render(source, folder)
    finally:
        _give_memory_back()


def missing_formats() -> list[str]:
    """Return the formats this installation's Pillow cannot process."""
    return [name for name, feature in OPTIONAL.items() if not features.check(feature)]


def _render(source: Path, folder: Path) -> int:
    image = _decoded(source)
    files.make_folder(folder)
    written = 0
    for size in SIZES:
        content = _webp(image, size)
        files.write_through(folder / f"{size}.webp", content)
        written += len(content)
    files.sync_folder(folder)
    return written


def _decoded(source: Path) -> Image.Image:
    """Return the first frame, upright, as the largest square in its middle."""
    with Source(source) as file:
        head = file.read(16)
        file.seek(0)
        _require_processor(head)
        try:
            if head[4:8] == b"ftyp":  # whatever brands Pillow takes for AVIF
                _check_av1(source)
            # Opening reads headers only; not given a path, Pillow maps no file into memory.
            with Image.open(file, formats=ACCEPTED) as opened:
                _check(opened, source)
                opened.load()
                return _square(_upright(_in_rgb(opened), _orientation(opened)))
        except AppError:
            raise
        except (Image.DecompressionBombError, Image.DecompressionBombWarning):
            raise ImageTooLarge from None
        except OSError as error:
            if error.errno is not None:
                raise  # the disk's, not the image's
            raise FileTypeNotAllowed from None
        # Decoders meet damage in as many ways as there are to be damaged.
        except Exception:
            raise FileTypeNotAllowed from None


def _require_processor(head: bytes) -> None:
    for name in missing_formats():
        if SIGNATURES[name](head):
            raise ProcessorUnavailable


def _check(opened: Image.Image, source: Path) -> None:
    """Refuse, before pixels are decoded, what would need too much room or time.

    Raises: EmptyImage, ImageTooLarge, FileTypeNotAllowed.
    """
    if 0 in opened.size:
        raise EmptyImage
    if max(opened.size) > LONGEST_SIDE:
        raise ImageTooLarge
    if isinstance(opened, TiffImagePlugin.TiffImageFile):
        _check_tiles(opened)
    if isinstance(opened, JpegImagePlugin.JpegImageFile) or "jpeg" in _compression(opened):
        _check_scans(source, max(MOST_JPEG_SCANS, SCANS_OF_A_PIECE * _pieces(opened)))


def _check_tiles(opened: TiffImagePlugin.TiffImageFile) -> None:
    """Refuse large tiles: libtiff makes room for a whole one, however small the image."""
    sides = [opened.tag_v2.get(tag, 0) for tag in TILE_SIDES]
    if any(not isinstance(side, int) or side > LONGEST_SIDE for side in sides):
        raise ImageTooLarge


def _check_av1(source: Path) -> None:
    """Refuse, before Pillow opens it, an AVIF that is larger or has more in it than it should.

    Raises: ImageTooLarge, FileTypeNotAllowed.
    """
    try:
        side = av1_sizes.largest_side(memoryview(source.read_bytes()))
    except av1_sizes.Unreadable:
        raise FileTypeNotAllowed from None
    if side > LONGEST_SIDE:
        raise ImageTooLarge


def _check_scans(source: Path, most: int) -> None:
    """Refuse a JPEG of thousands of scans: each goes over all pixels, together for minutes."""
    # The marker of a scan; within a scan's own data these two bytes never follow one another.
    if source.read_bytes().count(b"\xff\xda") > most:
        raise FileTypeNotAllowed


def _pieces(opened: Image.Image) -> int:
    """Return of how many strips or tiles an image is made; in a TIFF each is a JPEG of its own."""
    if not isinstance(opened, TiffImagePlugin.TiffImageFile):
        return 1
    tags = opened.tag_v2
    width: int = tags.get(TILE_SIDES[0], opened.width)
    height: int = tags.get(TILE_SIDES[1]) or tags.get(ROWS_PER_STRIP, opened.height)
    return math.ceil(opened.width / width) * math.ceil(opened.height / height)


def _compression(opened: Image.Image) -> str:
    return str(opened.info.get("compression", ""))


def _orientation(opened: Image.Image) -> int:
    """Return the EXIF orientation; metadata that cannot be read has none."""
    with suppress(Exception):
        orientation: int = opened.getexif().get(ORIENTATION, 1)
        return orientation
    return 1


def _in_rgb(image: Image.Image) -> Image.Image:
    """Return a new image of eight bits per colour, with alpha only where it is used."""
    if image.mode in {"I;16", "I;16B", "I;16L", "I;16N"}:
        # Pillow would cut off, not scale, what does not fit into eight bits.
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    elif image.mode in {"I", "F"}:
        image = _scaled(image)
    if not image.has_transparency_data:
        return image.convert("RGB")
    image = image.convert("RGBA")
    darkest, _ = image.getchannel("A").getextrema()
    return image.convert("RGB") if darkest == 255 else image


def _scaled(image: Image.Image) -> Image.Image:
    """Return greys that go from the darkest to the lightest value of a scale that is not known."""
    extrema: Any = image.getextrema()
    low, high = (float(value) for value in extrema)
    if high <= 255 and low >= 0:
        return image.convert("L")
    factor = 255 / (high - low) if high > low else 0.0
    return image.point(lambda value: value * factor - low * factor).convert("L")


def _upright(image: Image.Image, orientation: int) -> Image.Image:
    transposition = TRANSPOSED.get(orientation)
    return image if transposition is None else image.transpose(transposition)


def _square(image: Image.Image) -> Image.Image:
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    square = (left, top, left + side, top + side)
    return image if image.width == image.height else image.crop(square)


def _webp(image: Image.Image, size: int) -> bytes:
    try:
        if image.size != (size, size):
            image = image.resize((size, size), Image.Resampling.BILINEAR)
        # A copy of pixels, colours and size alone: Pillow would write profiles and EXIF again.
        image.info.clear()
        stream = io.BytesIO()
        if image.getcolors(MOST_DRAWN_COLORS) is None:
            image.save(stream, "WEBP", quality=QUALITY, method=METHOD)
        else:
            image.save(stream, "WEBP", lossless=True, quality=20, method=3)
    # Encoders fail in as many ways.
    except Exception as error:
        raise RenderFailed from error
    return stream.getvalue()


def _give_memory_back() -> None:
    """Return what a render used to the system; the C library would keep it for later."""
    with suppress(AttributeError):  # another C library than GNU's
        _LIBC.malloc_trim(0)


_LIBC = ctypes.CDLL(None)
