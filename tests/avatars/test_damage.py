"""Hundreds of damaged files, besides HTTP: each is drawn, or refused as documented."""

import random

import pytest

from app.avatars import rendering
from app.avatars.render_process import REFUSALS
from tests.support.images import encoded, photo

KINDS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")

# Pillow tells of damage by warnings, too; a server only writes them down.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_makes_rendering_fail_otherwise_than_documented(kind, drawn):
    damage = random.Random(f"damage to {kind}")
    whole = encoded(photo(40), kind)
    for number in range(40):
        content = bytearray(whole)
        for _ in range(damage.randint(1, 8)):
            # Most of what matters stands at the start.
            reach = len(content) if damage.random() < 0.4 else min(len(content), 200)
            content[damage.randrange(reach)] = damage.randrange(256)
        try:
            assert drawn(content, 32).size == (32, 32)
        except rendering.PictureRefused as refusal:
            told = refusal.args[0]
            assert told in REFUSALS.keys() - {"RenderFailed"}, (refusal, number)  # noqa: PT017
