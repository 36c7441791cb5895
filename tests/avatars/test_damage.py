"""Thousands of damaged files, besides HTTP: each is drawn, or refused as documented."""

import random

import pytest

from app.avatars import render_process
from app.avatars.staging import StagedUpload
from app.core.errors import AppError, BadRequest
from app.core.sandbox import Sandbox
from tests.support.images import encoded, photo

KINDS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")

_small = Sandbox(
    "tests.avatars.small_rendering:render", render_process.LIMITS, render_process.REFUSALS
)


@pytest.fixture(autouse=True)
def small_avatars(monkeypatch):
    """Damage is met by who reads, so what is written may be small."""
    monkeypatch.setattr(render_process, "_sandbox", _small)


@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_makes_rendering_fail_otherwise_than_documented(kind, tmp_path):
    damage = random.Random(f"damage to {kind}")
    whole = encoded(photo(40), kind)
    for number in range(100):
        content = bytearray(whole)
        for _ in range(damage.randint(1, 8)):
            # Most of what matters stands at the start.
            reach = len(content) if damage.random() < 0.4 else min(len(content), 200)
            content[damage.randrange(reach)] = damage.randrange(256)
        (tmp_path / str(number)).write_bytes(content)
        refusal = None
        try:
            assert render_process.render(StagedUpload(tmp_path / str(number), -1)) > 0
        except AppError as error:
            refusal = error
        # By its kind: two of them share a code.
        assert refusal is None or isinstance(refusal, BadRequest), (refusal, number)
