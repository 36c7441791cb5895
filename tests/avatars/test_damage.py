"""Hundreds of damaged files, besides HTTP: each is drawn, or refused as documented."""

import random

import pytest

from app.avatars import files, render_process
from app.core.errors import AppError, BadRequest
from tests.support.images import encoded, photo

KINDS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")


@pytest.fixture(autouse=True)
def small_avatars(monkeypatch):
    """Damage is met by who reads, so what is written may be small."""
    monkeypatch.setattr(files, "SIZES", (64, 32))


@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_makes_rendering_fail_otherwise_than_documented(kind, tmp_path):
    damage = random.Random(f"damage to {kind}")
    whole = encoded(photo(40), kind)
    for number in range(40):
        content = bytearray(whole)
        for _ in range(damage.randint(1, 8)):
            # Most of what matters stands at the start.
            reach = len(content) if damage.random() < 0.4 else min(len(content), 200)
            content[damage.randrange(reach)] = damage.randrange(256)
        source = tmp_path / f"{number}.source"
        source.write_bytes(content)
        (tmp_path / str(number)).mkdir()
        refusal = None
        try:
            assert render_process.render(source, tmp_path / str(number)) > 0
        except AppError as error:
            refusal = error
        # By its kind: two of them share a code.
        assert refusal is None or isinstance(refusal, BadRequest), (refusal, number)
