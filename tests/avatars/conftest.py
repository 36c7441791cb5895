"""What tests of avatars look at: the folder they are kept in, and what is drawn."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from app.avatars import files, render_process, rendering
from app.core.runtime import Runtime

_in_its_process = render_process._output


def _here(source: Path, folder: Path) -> bytes:
    told = rendering._outcome(str(source), str(folder), [str(size) for size in files.SIZES])
    return b"begun\n" + json.dumps(told).encode()


@pytest.fixture(autouse=True)
def _quick_renders() -> Iterator[None]:
    """Render in this process, in a tenth of the time that one of its own needs to start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render_process, "_output", _here)
        yield


@pytest.fixture
def real_renderer() -> Iterator[None]:
    """Render as the service does: in a process with limits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render_process, "_output", _in_its_process)
        yield


@pytest.fixture
def drawn(tmp_path: Path) -> Callable[..., Image.Image]:
    """Render a file by the rule alone; return the picture. Raises: rendering.PictureRefused."""

    def draw(content: bytes, size: int = 512) -> Image.Image:
        source, shown = tmp_path / "source", tmp_path / f"{size}.webp"
        source.write_bytes(content)
        shown.unlink(missing_ok=True)
        rendering.render(source, tmp_path, (size,))
        with Image.open(shown, formats=["WEBP"]) as image:
            image.load()
        return image

    return draw


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
def short_renders(real_renderer: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renders have one second, which ends those that would never end."""
    monkeypatch.setattr(render_process, "CPU_SECONDS", 1)
