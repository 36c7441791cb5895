"""Generates images to upload, and multipart bodies to carry them."""

import ctypes
import io
import random
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

BOUNDARY = "----x7MA4YWxkTrZu0gW"
RED, GREEN, BLUE, YELLOW = (220, 20, 30), (10, 200, 40), (20, 30, 230), (240, 220, 10)


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """Return an image encoded in a file format."""
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def plain(color: Any = RED, size: tuple[int, int] = (64, 64), kind: str = "PNG") -> bytes:
    """Return an image file of a single colour."""
    return encoded(Image.new("RGB" if len(color) == 3 else "RGBA", size, color), kind)


def quarters(size: tuple[int, int] = (64, 64)) -> Image.Image:
    """Return red, green / blue, yellow: an image whose every orientation looks different."""
    image = Image.new("RGB", size, RED)
    x, y = size[0] // 2, size[1] // 2
    image.paste(GREEN, (x, 0, size[0], y))
    image.paste(BLUE, (0, y, x, size[1]))
    image.paste(YELLOW, (x, y, size[0], size[1]))
    return image


def photo(side: int = 1024, seed: int = 7) -> Image.Image:
    """Return a square with the many colours of a photograph, the same for the same seed."""
    bands = []
    for number in range(3):
        coarse = Image.frombytes("L", (64, 64), _noise(64 * 64, seed + number))
        fine = Image.frombytes("L", (side, side), _noise(side * side, seed + number + 100))
        smooth = coarse.resize((side, side), Image.Resampling.BICUBIC)
        bands.append(Image.blend(smooth, fine, 0.06))
    return Image.merge("RGB", bands)


def _noise(count: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(count)


def multipart(
    content: bytes, *, filename: str | None = "me.png", name: str = "file", boundary: str = BOUNDARY
) -> bytes:
    """Return a body with one part."""
    return joined(part(content, filename=filename, name=name), boundary=boundary)


def part(content: bytes, *, filename: str | None = "me.png", name: str = "file") -> bytes:
    """Return a part; with a `filename` of None it is an ordinary field."""
    disposition = f'form-data; name="{name}"'
    if filename is not None:
        disposition += f'; filename="{filename}"'
    head = f"Content-Disposition: {disposition}\r\nContent-Type: application/octet-stream\r\n\r\n"
    return head.encode() + content


def joined(*parts: bytes, boundary: str = BOUNDARY) -> bytes:
    """Return a multipart body with these parts."""
    between = f"--{boundary}\r\n".encode()
    end = f"--{boundary}--\r\n".encode()
    return b"".join(between + each + b"\r\n" for each in parts) + end


def headers(boundary: str = BOUNDARY) -> dict[str, str]:
    return {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def upload(client: Any, content: bytes, **options: Any) -> Any:
    """Upload a file as a page would."""
    body = multipart(content)
    return client.post("/auth/profile/avatar/upload", body, headers=headers(), **options)


def send(client: Any, body: bytes, content_type: str | None = None) -> Any:
    """Send an arbitrary body to the upload route."""
    sent = headers() if content_type is None else {"Content-Type": content_type}
    return client.post("/auth/profile/avatar/upload", body, headers=sent)


def shown(client: Any, size: int = 512) -> Image.Image:
    """Return the avatar as its owner receives it."""
    answer = client.get(f"/auth/profile/avatar/{size}")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/webp"), answer
    image = Image.open(io.BytesIO(answer.body), formats=["WEBP"])
    image.load()
    return image


@contextmanager
def peak_memory_below(max_bytes: int) -> Iterator[None]:
    """Assert that the block raises this process's peak memory by less than `max_bytes`."""
    ctypes.CDLL(None).malloc_trim(0)  # reuse of memory already freed would not be counted
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak (VmHWM)
    before = _peak_bytes()
    yield
    needed = _peak_bytes() - before
    assert needed < max_bytes, needed


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def is_near(one: tuple[int, ...], other: tuple[int, ...], most: int = 12) -> bool:
    """Return whether two colours look the same."""
    return len(one) == len(other) and all(
        abs(a - b) <= most for a, b in zip(one, other, strict=True)
    )


# --- malformed and malicious files --------------------------------------------------------------


def png_of(width: int, height: int, rows: bytes, *, depth: int = 8, kind: int = 2) -> bytes:
    """Return a PNG with this header, and these bytes as its compressed rows."""
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + png_chunk(b"IDAT", rows)
        + png_chunk(b"IEND", b"")
    )


def png_chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def png_bomb(side: int = 20_000) -> bytes:
    """Return a valid PNG of a few hundred kilobytes that would unpack to gigabytes."""
    height = side // 10
    return png_of(side, height, deflated_zeros(height * (1 + 3 * side)))


def deflated_zeros(count: int) -> bytes:
    """Return `count` zeros in zlib format, built by repeating one compressed block."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    blocks, rest = divmod(count, 2**20)
    last = packer.compress(bytes(rest)) + packer.flush()
    return b"\x78\xda" + block * blocks + last + struct.pack(">HH", count % 65_521, 1)


def gif_bomb(side: int) -> bytes:
    """Return a valid black GIF that unpacks to a thousand times its size."""
    clear, end = 256, 257
    # Every LZW code stands for one pixel more than the one before, until the table is full.
    codes = [0, *range(258, 4096)]
    written = [low_first(code, max(9, code.bit_length())) for code in codes]
    rounds, left = divmod(side * side - 1, sum(range(len(codes) + 1)))
    left += 1
    bits = [low_first(clear, 9), *([*written, low_first(clear, 12)] * rounds)]
    for length, code in enumerate(written, 1):
        if left <= length:
            bits += [low_first(codes[left - 1], len(code)), low_first(end, len(code))]
            break
        bits.append(code)
        left -= length
    stream = packed(bits)
    blocks = (stream[at : at + 255] for at in range(0, len(stream), 255))
    head = b"GIF89a" + struct.pack("<HHBBB", side, side, 0x80, 0, 0) + bytes(6)
    image = b"," + struct.pack("<HHHHB", 0, 0, side, side, 0) + b"\x08"
    return head + image + b"".join(bytes([len(b)]) + b for b in blocks) + b"\0;"


def low_first(value: int, count: int) -> str:
    """Return the `count` low bits of `value` as text, lowest first."""
    return format(int(value), f"0{count}b")[::-1]


def packed(bits: Iterable[str]) -> bytes:
    """Pack bits, lowest first within each byte, into an even number of bytes."""
    text = "".join(bits)
    text += "0" * (-len(text) % 16)
    return int(text[::-1], 2).to_bytes(len(text) // 8, "little")


def forged_avif(told: int, real: int) -> bytes:
    """Return an AVIF whose container declares one size while its stream has another."""
    content = encoded(Image.new("RGB", (real, real), RED), "AVIF", speed=10)
    at = content.index(b"ispe") + 8
    return content[:at] + struct.pack(">II", told, told) + content[at + 8 :]
