"""Thousands of damaged files, besides HTTP: each is drawn, or refused as documented."""

import random
import struct

import pytest
from PIL import Image

from app.avatars import av1_sizes, rendering
from app.core.errors import AppError
from tests.support.images import encoded, photo, quarters

KINDS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")

# Pillow tells of damage by warnings, too; a server only writes them down.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def source(tmp_path):
    return tmp_path / "source"


@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_makes_rendering_fail_otherwise_than_documented(kind, source, tmp_path):
    damage = random.Random(f"damage to {kind}")
    whole = encoded(photo(40), kind)
    for number in range(150):
        content = bytearray(whole)
        for _ in range(damage.randint(1, 8)):
            # Most of what matters stands at the start.
            reach = len(content) if damage.random() < 0.4 else min(len(content), 200)
            content[damage.randrange(reach)] = damage.randrange(256)
        source.write_bytes(content)
        refusal = None
        try:
            assert rendering.render(source, tmp_path / str(number)) > 0
        except AppError as error:
            refusal = error
        assert refusal is None or refusal.code.default_status == 400, (refusal, number)


def test_no_damage_makes_the_look_into_an_avif_fail_otherwise_or_take_long():
    damage = random.Random("damage to AVIF")
    wholes = [
        encoded(Image.new("RGBA", (300, 200), (9, 9, 9, 99)), "AVIF"),
        encoded(quarters(), "AVIF", save_all=True, append_images=[quarters()], duration=9),
    ]
    for number in range(4000):
        content = bytearray(wholes[number % 2])
        for _ in range(damage.randint(1, 6)):
            content[damage.randrange(min(len(content), 800))] = damage.randrange(256)
        try:
            assert av1_sizes.largest_side(memoryview(bytes(content))) > 0
        except av1_sizes.Unreadable:
            continue


def test_the_look_into_an_avif_gives_up_on_endless_boxes():
    boxes = (struct.pack(">I", 8) + b"free") * 2_000_000
    content = encoded(quarters(), "AVIF") + boxes
    with pytest.raises(av1_sizes.Unreadable):
        av1_sizes.largest_side(memoryview(content))


def test_the_first_frames_of_avif_files_are_measured_right():
    for side in (1, 8, 100, 1024):
        image = Image.new("RGB", (side, 1 + side // 2))
        assert av1_sizes.largest_side(memoryview(encoded(image, "AVIF"))) == side
        frames = {"save_all": True, "append_images": [image], "duration": 9}
        assert av1_sizes.largest_side(memoryview(encoded(image, "AVIF", **frames))) >= side
