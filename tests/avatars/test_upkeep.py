"""What killed processes leave, and who clears it away."""

import errno
import os
import shutil

import pytest

from app.avatars import files, upkeep
from app.core.access import COMMAND_LINE
from app.installation import cleanup
from app.installation.doctor import examine
from app.installation.machine_checks import Level
from app.team_admin import service as teams
from app.teams.models import Team
from app.user_admin import service as accounts
from tests.support.factories import count, make_user
from tests.support.images import BLUE, RED, plain, shown, upload


def killed_upload(rt, user_id, *, hours=13):
    """Leave what a process leaves that was killed in the middle of an upload, hours ago."""
    staged_upload = files.stage(rt.config.avatar_dir, user_id)
    staged_upload.source.write_bytes(b"half a file")
    (staged_upload.rendered / "1024.webp").write_bytes(b"x")
    then = rt.clock.now().timestamp() - hours * 3600
    os.utime(staged_upload.folder, (then, then))
    return staged_upload


def orphan(root, user_id, name=None):
    """Leave a published folder that no row names."""
    folder = files.path(root, user_id, name or files.new_name(7), 512).parent
    folder.mkdir(parents=True)
    (folder / "512.webp").write_bytes(b"x")
    return folder


def test_what_a_killed_process_left_goes_and_what_a_live_one_uses_stays(rt, folder, staged, user):
    killed_upload(rt, user.id)
    killed_upload(rt, user.id)
    alive = killed_upload(rt, user.id, hours=11)
    assert upkeep.sweep(rt) == 2
    assert staged() == sorted([alive.folder.name, "source", "rendered", "1024.webp"])
    alive.clear()
    assert staged() == []


def test_a_sweep_looks_after_the_account_of_the_killed_upload(rt, signed_in, user, folder):
    """Killed after its files were put in place, before the row named them; or just afterwards."""
    upload(signed_in, plain(BLUE)).ok()
    left = orphan(folder, user.id)
    killed_upload(rt, user.id)
    upkeep.sweep(rt)
    assert not left.exists()
    assert shown(signed_in).getpixel((256, 256)) == BLUE


def test_a_place_that_cannot_be_cleared_keeps_the_sweep_from_no_other(
    rt, staged, user, monkeypatch
):
    stubborn = killed_upload(rt, user.id).folder
    killed_upload(rt, user.id)
    killed_upload(rt, user.id)
    remove = shutil.rmtree
    with monkeypatch.context() as patched:
        patched.setattr(
            files.shutil, "rmtree", lambda path, **how: path == stubborn or remove(path, **how)
        )
        assert upkeep.sweep(rt) == 2
    assert stubborn.name in staged()
    assert upkeep.sweep(rt) == 1
    assert staged() == []


@pytest.mark.both_databases
def test_cleanup_removes_what_no_row_names(rt, signed_in, user, admin, folder, published):
    upload(signed_in, plain(BLUE)).ok()
    orphan(folder, user.id)
    orphan(folder, user.id, "something else")
    orphan(folder, admin.id)
    orphan(folder, 999_999)
    killed_upload(rt, admin.id)
    # The killed upload counts as one, whatever it left with the account.
    assert cleanup.cleanup(rt)["avatar_leftovers"] == 4
    assert published() == [f"{user.id}/v1/1024.webp", f"{user.id}/v1/512.webp"]
    assert sorted(path.name for path in (folder / "user").iterdir()) == [str(user.id)]
    assert shown(signed_in).getpixel((256, 256)) == BLUE
    assert cleanup.cleanup(rt)["avatar_leftovers"] == 0


def test_what_else_lies_beside_the_avatars_keeps_no_cleanup_from_its_work(
    rt, signed_in, user, admin, folder, published
):
    """Files of a desktop or a network volume, and names too long to be an account's id."""
    upload(signed_in, plain(BLUE)).ok()
    for name in ("0", "007", "-5", "\u00b2", "text", "9" * 18, "9" * 19, "9" * 40):
        (folder / "user" / name).mkdir()
    (folder / "staging" / f"{'9' * 40}-x").write_text("")
    os.utime(folder / "staging" / f"{'9' * 40}-x", (0, 0))
    (folder / "user" / str(user.id) / ".DS_Store").write_text("")
    (folder / "user" / str(user.id) / "link").symlink_to(folder)
    (folder / "user" / str(admin.id)).write_text("a file where a folder should be")
    orphan(folder, 999_999)
    assert cleanup.cleanup(rt)["avatar_leftovers"] == 3
    assert cleanup.cleanup(rt)["avatar_leftovers"] == 0
    assert published() == [f"{user.id}/v1/1024.webp", f"{user.id}/v1/512.webp"]
    assert len(list((folder / "user" / str(user.id)).iterdir())) == 1


def test_an_account_whose_folder_cannot_be_cleared_keeps_cleanup_from_no_other(
    rt, user, admin, folder, monkeypatch
):
    stubborn, other = sorted(orphan(folder, account.id) for account in (user, admin))
    remove = shutil.rmtree

    def refuse(path, **options):
        if path == stubborn:
            raise OSError(errno.EBUSY, "in use")
        remove(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(files.shutil, "rmtree", refuse)
        assert cleanup.cleanup(rt)["avatar_leftovers"] == 1
    assert stubborn.exists()
    assert not other.exists()
    assert cleanup.cleanup(rt)["avatar_leftovers"] == 1


def test_cleanup_keeps_the_files_of_an_avatar_that_is_switched_off(rt, signed_in, published):
    upload(signed_in, plain()).ok()
    signed_in.put("/auth/profile/avatar/source", {"source": "none"}).ok()
    assert cleanup.cleanup(rt)["avatar_leftovers"] == 0
    assert len(published()) == 2


def test_cleanup_of_an_installation_without_avatars_does_nothing(rt, folder):
    assert cleanup.cleanup(rt)["avatar_leftovers"] == 0
    assert not folder.exists()


def test_a_folder_that_cannot_be_read_does_not_end_housekeeping(rt, folder, user, clock):
    """Nor does it keep the tables from being cleaned up."""
    teams.create(rt, COMMAND_LINE, "Crew", user.username)
    teams.archive(rt, COMMAND_LINE, "Crew")
    clock.advance(days=8)
    folder.mkdir(parents=True)
    (folder / "staging").write_text("no folder")
    assert cleanup.clean_up_if_due(rt) is False
    assert count(rt, Team) == 0


def test_a_deleted_account_takes_its_files_along(rt, signed_in, user, folder):
    upload(signed_in, plain()).ok()
    accounts.delete(rt, COMMAND_LINE, str(user.id))
    assert not (folder / "user" / str(user.id)).exists()
    other = make_user(rt)
    accounts.delete(rt, COMMAND_LINE, str(other.id))  # one that never had any


def test_an_upload_whose_files_cannot_be_removed_stays_published(rt, signed_in, user, folder):
    upload(signed_in, plain(RED)).ok()
    [old] = (folder / "user" / str(user.id)).iterdir()
    shutil.rmtree(old)
    assert upload(signed_in, plain(BLUE)).ok()["applied"]
    assert shown(signed_in).getpixel((256, 256)) == BLUE


@pytest.mark.own_application
def test_doctor_looks_at_the_folder(rt, folder, staged):
    finding = examine(rt)["avatars"]
    assert (finding.level, finding.message) == (
        Level.OK,
        f"In {folder}; pictures can be rendered.",
    )
    assert staged() == []
    shutil.rmtree(folder)
    folder.write_text("no folder")
    finding = examine(rt)["avatars"]
    assert finding.level is Level.FAIL
    assert str(folder) in finding.message


@pytest.mark.parametrize("name", ["", "x", "x-1", "1", "²-1", ".hidden", "1-file", "1-folder/"])
def test_what_else_lies_in_staging_hurts_nobody(rt, folder, name):
    (folder / "staging").mkdir(parents=True)
    if name.endswith("/"):
        (folder / "staging" / name).mkdir()
    elif name:
        (folder / "staging" / name).write_text("x")
    if name:
        os.utime(folder / "staging" / name, (0, 0))
    upkeep.sweep(rt)
    upkeep.sweep(rt)
    assert (folder / "staging").is_dir()
