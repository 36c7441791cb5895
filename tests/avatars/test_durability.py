"""What an account's row names has reached the disk before the row names it."""

import os
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.avatars import files, rendering
from tests.support.images import encoded, photo, plain, upload


@pytest.fixture
def happened(monkeypatch):
    """What is written through to the disk, and renamed, in its order; all of it really happens."""
    steps, sync, rename = [], os.fsync, Path.rename

    def noted_sync(descriptor):
        sync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        steps.append(("synced", path, os.fstat(descriptor).st_size))

    def noted_rename(path, target):
        steps.append(("renamed", Path(target), None))
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    return steps


def test_what_is_rendered_is_on_the_disk_whole_and_so_are_its_names(tmp_path, happened):
    source, folder = tmp_path / "source", tmp_path / "rendered"
    source.write_bytes(encoded(photo()))
    folder.mkdir()
    rendering.render(source, folder, files.SIZES)
    written = [(path, size) for what, path, size in happened if what == "synced"]
    names = [folder / f"{size}.webp" for size in files.SIZES]
    assert [path for path, _ in written] == [*names, folder]
    assert [size for _, size in written[:2]] == [name.stat().st_size for name in names]


@pytest.mark.parametrize("upload_number", [1, 2])
def test_the_row_is_committed_after_its_files_are_in_place_for_good(
    rt, signed_in, user, folder, happened, upload_number
):
    for _ in range(upload_number - 1):
        upload(signed_in, plain()).ok()
    happened.clear()

    def note_commit(_connection):
        happened.append(("committed", None, None))

    sa.event.listen(rt.database.engine, "commit", note_commit)
    try:
        upload(signed_in, plain()).ok()
    finally:
        sa.event.remove(rt.database.engine, "commit", note_commit)
    own = folder / "user" / str(user.id)
    [moved] = [n for n, (what, _, _) in enumerate(happened) if what == "renamed"]
    assert happened[moved][1].parent == own
    assert [(what, path) for what, path, _ in happened[moved + 1 : moved + 3]] == [
        ("synced", own),
        ("committed", None),
    ]
    made = [
        path
        for what, path, _ in happened[:moved]
        if what == "synced" and "staging" not in path.parts
    ]
    assert made == ([folder.parent, folder, folder / "user"] if upload_number == 1 else [])
