"""Renders an uploaded file as WebP: `python rendering.py SOURCE FOLDER BYTES SECONDS SIZE...`.

A program of its own with memory and CPU limits (`render_process.py` runs it), since the file is
untrusted: a kilobyte can make a decoder allocate gigabytes. It imports nothing of the service, so
that it starts fast. The output is encoded anew from pixels, so nothing else of the file survives.
"""

import errno
import io
import json
import os
import resource
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from PIL import (
    AvifImagePlugin,
    Image,
    features,
)

# Readable by the owner's group: a reverse proxy that serves the files often runs as another user.
FILE_MODE = 0o640
# Below the priority of short requests and of password hashing.
NICENESS = 15
MAX_SIDE_PIXELS = 1024
QUALITY = 90
METHOD = 2  # the encoder's effort, from 0 (fastest) to 6 (smallest file)
# An image with at most this many colours is taken for a drawing and encoded losslessly.
MAX_DRAWN_COLORS = 4096

ACCEPTED = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
# Formats that a build of Pillow may lack, and the feature to check for.
OPTIONAL = {"AVIF": "avif", "WEBP": "webp"}
AVIF_BRANDS = (b"avif", b"avis", b"mif1", b"msf1")
SIGNATURES: dict[str, Callable[[bytes], bool]] = {
    "AVIF": lambda head: head[4:8] == b"ftyp" and head[8:12] in AVIF_BRANDS,
    "WEBP": lambda head: head[:4] == b"RIFF" and head[8:12] == b"WEBP",
}
ORIENTATION = 0x0112
# A PNG with about this gamma looks as if it named none.
USUAL_GAMMA = 1 / 2.2
GAMMA_TOLERANCE = 0.01
TRANSPOSED = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

# Pillow's own guards, in addition to ours, for plugins that allocate a canvas while opening a file.
Image.MAX_IMAGE_PIXELS = MAX_SIDE_PIXELS * MAX_SIDE_PIXELS
warnings.simplefilter("error", Image.DecompressionBombWarning)
AvifImagePlugin.DEFAULT_MAX_THREADS = 1


class PictureRefused(Exception):
    """The file is refused; the first argument is the name of the error to tell the client."""


def render(source: Path, folder: Path, sizes: Sequence[int]) -> int:
    """Write the avatar in these sizes into `folder`, fsynced; return the bytes written.

    Raises: PictureRefused; OSError if the disk fails; MemoryError.
    """
    image = _decoded(source)
    written = 0
    for size in sizes:
        content = _webp(image, size)
        _write_durably(folder / f"{size}.webp", content)
        written += len(content)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)
    return written


def missing_formats() -> list[str]:
    """Return the formats this installation's Pillow cannot process."""
    return [name for name, feature in OPTIONAL.items() if not features.check(feature)]


def _decoded(source: Path) -> Image.Image:
    """Return the first frame, upright and cropped to its largest centred square."""
    with source.open("rb") as file:
        _require_processor(file.read(16))
        file.seek(0)
        try:
            # Opening reads only headers. Given a file object, not a path, Pillow does not mmap it.
            with Image.open(file, formats=ACCEPTED) as opened:
                _require_size(opened)
                tile = opened.tile[0] if opened.tile else None
                _scale_transparent_color(opened, tile and tile.args)
                opened.load()
                image = _in_rgb(opened)
                if opened.format == "GIF" and tile and tile.extents:
                    image = _clear_around(image, tile.extents)
                if opened.format == "PNG":
                    image = _in_srgb(image, opened.info)
                return _square(_upright(image, _orientation(opened)))
        except (PictureRefused, MemoryError):
            raise
        except (Image.DecompressionBombError, Image.DecompressionBombWarning):
            raise PictureRefused("ImageTooLarge") from None
        except OSError as error:
            # EINVAL is a seek to an impossible offset from the image; any other errno is the disk.
            if error.errno not in {None, errno.EINVAL}:
                raise
            raise PictureRefused("FileTypeNotAllowed") from None
        # On damaged images, decoders may raise anything.
        except Exception:
            raise PictureRefused("FileTypeNotAllowed") from None


def _require_processor(head: bytes) -> None:
    for name in missing_formats():
        if SIGNATURES[name](head):
            raise PictureRefused("ProcessorUnavailable")


def _require_size(opened: Image.Image) -> None:
    """Refuse an empty or oversized image before its pixels are decoded."""
    if 0 in opened.size:
        raise PictureRefused("EmptyImage")
    if max(opened.size) > MAX_SIDE_PIXELS:
        raise PictureRefused("ImageTooLarge")


def _orientation(opened: Image.Image) -> int:
    """Return the EXIF orientation; 1 (upright) if it is missing or unreadable.

    Pillow would also take one from XMP, which no browser does.
    """
    for name in ("xmp", "XML:com.adobe.xmp"):
        opened.info.pop(name, None)
    with suppress(Exception):
        orientation: int = opened.getexif().get(ORIENTATION, 1)
        return orientation
    return 1


def _in_rgb(image: Image.Image) -> Image.Image:
    """Return a new image with 8 bits per channel, with alpha only if any pixel is not opaque."""
    if image.mode in {"I;16", "I;16B", "I;16L", "I;16N"}:
        # Pillow would clip 16-bit values to 255 instead of scaling them.
        wide, transparent = image.convert("I"), image.info.get("transparency")
        image = wide.point(lambda value: value / 256).convert("L")
        if transparent is not None:
            alpha = wide.point([255 * (value != transparent) for value in range(1 << 16)], "L")
            image = Image.merge("LA", (image, alpha))
    elif image.mode in {"I", "F"}:
        image = _scaled(image)
    if not image.has_transparency_data:
        return image.convert("RGB")
    image = image.convert("RGBA")
    darkest, _ = image.getchannel("A").getextrema()
    return image.convert("RGB") if darkest == 255 else image


def _scale_transparent_color(opened: Image.Image, layout: Any) -> None:
    """Bring a PNG's transparent colour from the depth of the file to the 8 bits of Pillow's pixels.

    Of 16 bits the lower half is lost: colours that differ only there become transparent as well.
    """
    color = opened.info.get("transparency")
    if isinstance(color, int) and layout in ("L;2", "L;4"):
        opened.info["transparency"] = color * {"L;2": 85, "L;4": 17}[layout]
    elif isinstance(color, tuple) and layout == "RGB;16B":
        opened.info["transparency"] = tuple(value >> 8 for value in color)


def _clear_around(image: Image.Image, frame: tuple[int, int, int, int]) -> Image.Image:
    """Make transparent what the first frame of a GIF leaves uncovered; Pillow fills it."""
    if frame == (0, 0, *image.size):
        return image
    framed = Image.new("RGBA", image.size)
    framed.paste(image.crop(frame), frame)
    return framed


def _in_srgb(image: Image.Image, info: dict[Any, Any]) -> Image.Image:
    """Apply the gamma that a PNG names, unless a colour space overrides it (PNG, 11.3.2.2)."""
    gamma = info.get("gamma") or USUAL_GAMMA
    if "srgb" in info or "icc_profile" in info or abs(gamma - USUAL_GAMMA) < GAMMA_TOLERANCE:
        return image
    shown = []
    for value in range(256):
        light = (value / 255) ** (1 / gamma)
        is_dark = light <= 0.0031308  # IEC 61966-2-1
        encoded = 12.92 * light if is_dark else 1.055 * light ** (1 / 2.4) - 0.055
        shown.append(round(255 * encoded))
    others = [*range(256)] * (len(image.getbands()) - 3)  # alpha stays
    return image.point(shown * 3 + others)


def _scaled(image: Image.Image) -> Image.Image:
    """Return 8-bit greys; a range beyond 0 to 255 is stretched from its minimum to its maximum."""
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
        # Keep nothing but the pixels: Pillow would copy colour profiles and EXIF from `info`.
        image.info.clear()
        stream = io.BytesIO()
        if image.getcolors(MAX_DRAWN_COLORS) is None:
            image.save(stream, "WEBP", quality=QUALITY, method=METHOD)
        else:
            image.save(stream, "WEBP", lossless=True, quality=20, method=3)
    except MemoryError:
        raise
    # Encoders may raise anything too.
    except Exception as error:
        raise PictureRefused("RenderFailed", repr(error)) from error
    return stream.getvalue()


def _write_durably(file: Path, content: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    with open(descriptor, "wb") as stream:
        os.fchmod(descriptor, FILE_MODE)  # whatever the umask
        stream.write(content)
        stream.flush()
        os.fsync(descriptor)


def _limit(memory_bytes: int, cpu_seconds: int) -> None:
    with suppress(OSError):  # e.g. forbidden in a container
        os.nice(NICENESS)
    with open("/proc/self/statm", encoding="ascii") as file:
        has = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (has + memory_bytes, has + memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _outcome(source: str, folder: str, sizes: Sequence[str]) -> dict[str, Any]:
    try:
        return {"written": render(Path(source), Path(folder), [int(size) for size in sizes])}
    except PictureRefused as refusal:
        return {"refused": refusal.args[0], "reason": refusal.args[-1]}
    except MemoryError:
        os._exit(1)
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        return {"errno": number, "refused": "RenderFailed", "reason": repr(error)}


def main(arguments: Sequence[str]) -> None:
    """Render as the arguments say, and print what came of it.

    The first line says that it has begun; nothing follows if a limit or a crash ended it.

    """
    source, folder, memory_bytes, cpu_seconds, *sizes = arguments
    Image.preinit()
    _limit(int(memory_bytes), int(cpu_seconds))
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    sys.stdout.write(json.dumps(_outcome(source, folder, sizes)))
    sys.stdout.flush()
    os._exit(0)  # nobody waits while the memory is freed


if __name__ == "__main__":
    main(sys.argv[1:])
