"""What tests of avatars look at: the folder they are kept in."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.avatars import render_process
from app.core.runtime import Runtime


@pytest.fixture
def folder(rt: Runtime) -> Path:
    """The folder of the avatars."""
    return rt.config.avatar_dir


@pytest.fixture
def staged(folder: Path) -> Callable[[], list[str]]:
    """What is left in staging."""

    def names() -> list[str]:
        staging = folder / "staging"
        return sorted(entry.name for entry in staging.rglob("*")) if staging.exists() else []

    return names


@pytest.fixture
def published(folder: Path) -> Callable[[], list[str]]:
    """The published files, without the part of their names that is random."""

    def names() -> list[str]:
        files = (folder / "user").rglob("*.webp")
        parts = (file.relative_to(folder).parts for file in files)
        return sorted(f"{user}/{version.split('-')[0]}/{file}" for _, user, version, file in parts)

    return names


@pytest.fixture
def short_renders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renders have one second, which ends those that would never end."""
    monkeypatch.setattr(render_process, "CPU_SECONDS", 1)
