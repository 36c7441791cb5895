"""From an uploaded file to two WebP files (spec, Limits; decision A19).

Runs in a process of its own with limits for memory and time (`render_process.py`), for the file is
hostile until proven otherwise: a kilobyte can make a decoder ask for gigabytes. What goes out is
drawn anew, so nothing of the file itself survives.

Source: interface.md, Endpoint rules 11 and Limits; spec 04 §3.2.
"""

import errno
import io
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
    features,
)

from app.avatars import files
from app.avatars.errors import (
    EmptyImage,
    FileTypeNotAllowed,
    ImageTooLarge,
    ProcessorUnavailable,
    RenderFailed,
)
from app.core import folders
from app.core.errors import AppError

LONGEST_SIDE = 1024
QUALITY = 90
METHOD = 2  # how long to look for a smaller file, from 0 to 6
# What has no more colours than this is drawn, not photographed, and is kept exactly.
MAX_DRAWN_COLORS = 4096

# Named, so that they are loaded once and not for every image.
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

# Pillow's own guards, on top of ours: for a canvas that a plugin makes while it opens a file.
Image.MAX_IMAGE_PIXELS = LONGEST_SIDE * LONGEST_SIDE
warnings.simplefilter("error", Image.DecompressionBombWarning)
AvifImagePlugin.DEFAULT_MAX_THREADS = 1
Image.preinit()  # else every process would


def render(source: str, folder: str) -> int:
    """Make `folder` with the avatar in both sizes, written through to the disk; return its bytes.

    Raises: FileTypeNotAllowed, EmptyImage, ImageTooLarge, ProcessorUnavailable, RenderFailed;
    OSError when the disk fails; MemoryError.
    """
    image, rendered = _decoded(Path(source)), Path(folder)
    files.make_folder(rendered)
    written = 0
    for size in files.SIZES:
        content = _webp(image, size)
        files.write_through(rendered / f"{size}.webp", content)
        written += len(content)
    folders.sync(rendered)
    return written


def missing_formats() -> list[str]:
    """Return the formats this installation's Pillow cannot process."""
    return [name for name, feature in OPTIONAL.items() if not features.check(feature)]


def _decoded(source: Path) -> Image.Image:
    """Return the first frame, upright, as the largest square in its middle."""
    with source.open("rb") as file:
        _require_processor(file.read(16))
        file.seek(0)
        try:
            # Opening reads headers only; not given a path, Pillow maps no file into memory.
            with Image.open(file, formats=ACCEPTED) as opened:
                _require_size(opened)
                opened.load()
                return _square(_upright(_in_rgb(opened), _orientation(opened)))
        except (AppError, MemoryError):
            raise
        except (Image.DecompressionBombError, Image.DecompressionBombWarning):
            raise ImageTooLarge from None
        except OSError as error:
            # A place that no file can have is the image's fault, anything else the disk's.
            if error.errno not in {None, errno.EINVAL}:
                raise
            raise FileTypeNotAllowed from None
        # Decoders meet damage in as many ways as there are to be damaged.
        except Exception:
            raise FileTypeNotAllowed from None


def _require_processor(head: bytes) -> None:
    for name in missing_formats():
        if SIGNATURES[name](head):
            raise ProcessorUnavailable


def _require_size(opened: Image.Image) -> None:
    """Refuse, before pixels are decoded, what is larger than an avatar may be.

    Raises: EmptyImage, ImageTooLarge.
    """
    if 0 in opened.size:
        raise EmptyImage
    if max(opened.size) > LONGEST_SIDE:
        raise ImageTooLarge


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
        if image.getcolors(MAX_DRAWN_COLORS) is None:
            image.save(stream, "WEBP", quality=QUALITY, method=METHOD)
        else:
            image.save(stream, "WEBP", lossless=True, quality=20, method=3)
    except MemoryError:
        raise
    # Encoders fail in as many ways.
    except Exception as error:
        raise RenderFailed from error
    return stream.getvalue()
