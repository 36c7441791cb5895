"""An avatar from upload to published, beside what any service must do with the picture."""

import http.client
import io
import statistics
from collections.abc import Iterator
from time import perf_counter

from PIL import Image, ImageFilter

from app.avatars import files, rendering
from bench.accounts import username
from bench.api import Unexpected, cookie_header
from bench.lab import Lab
from bench.report import Figure, Row, ratio
from bench.servers import Service

UPLOAD = "/api/v1/auth/profile/avatar/upload"
UPLOADS = 15
PIXELS = 1024
BOUNDARY = "of-the-bench"


def _photo() -> bytes:
    """Return a PNG that compresses about as badly as a photograph."""
    gradient = Image.radial_gradient("L").resize((PIXELS, PIXELS))
    noise = Image.effect_noise((PIXELS, PIXELS), 40).filter(ImageFilter.GaussianBlur(1))
    turned = gradient.transpose(Image.Transpose.ROTATE_90)
    file = io.BytesIO()
    Image.merge("RGB", (noise, Image.blend(gradient, noise, 0.5), turned)).save(file, "PNG")
    return file.getvalue()


def _multipart(photo: bytes) -> bytes:
    disposition = 'Content-Disposition: form-data; name="file"; filename="photo.png"'
    head = f"--{BOUNDARY}\r\n{disposition}\r\nContent-Type: image/png\r\n\r\n"
    return head.encode() + photo + f"\r\n--{BOUNDARY}--\r\n".encode()


class Uploader:
    """One account that uploads over a connection kept open."""

    def __init__(self, service: Service, user: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)
        cookies = service.api.login(user)
        self._headers = {
            "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
            "Cookie": cookie_header(cookies),
        }

    def upload(self, body: bytes) -> None:
        """Upload and insist that it was published."""
        self._connection.request("POST", UPLOAD, body, self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200 or b'"applied":true' not in content:
            raise Unexpected(f"status {answer.status}: {content[:300]!r}")


def _bare(photo: bytes) -> None:
    """Decode, resize twice, encode twice, with our parameters."""
    with Image.open(io.BytesIO(photo)) as opened:
        image = opened.convert("RGB")
    for size in files.SIZES:
        resized = image.resize((size, size), Image.Resampling.BILINEAR)
        resized.save(io.BytesIO(), "WEBP", quality=rendering.QUALITY, method=rendering.METHOD)


def upload(lab: Lab) -> Iterator[Row]:
    """Upload right after each run of the bare pipeline."""
    photo = _photo()
    body = _multipart(photo)
    uploader = Uploader(lab.service, username(1))
    bare, ours = [], []
    for _ in range(1 + lab.options.count(UPLOADS)):
        began = perf_counter()
        _bare(photo)
        between = perf_counter()
        uploader.upload(body)
        bare.append(between - began)
        ours.append(perf_counter() - between)
    del bare[0], ours[0]  # the first upload loads what every later one has at hand
    figures = [
        Figure("upload", 1000 * statistics.median(ours), " ms"),
        Figure("bare Pillow", 1000 * statistics.median(bare), " ms"),
        Figure("times bare Pillow", ratio(ours, bare), at_most=2.2),
    ]
    yield Row("avatar", lab.database, figures)
