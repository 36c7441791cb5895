"""A disk that fills up, at each step of an upload."""

from tests.support.api import ApiClient
from tests.support.factories import make_user
from tests.support.full_disk import ROOM, fill
from tests.support.images import BLUE, RED, encoded, photo, plain, shown, upload


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_full_disk_is_told_and_changes_nothing(make_app, small_disk, real_renderer):
    app = make_app(avatar_dir=small_disk)
    rt = app.extensions["gatehouse"]
    user = make_user(rt)
    client = ApiClient(app)
    client.login(user).ok()
    upload(client, plain(BLUE)).ok()
    before = files_in(small_disk)

    # No room for the source; room for it but not for what is rendered; not even for a name.
    upload(client, plain(RED).ljust(2 * ROOM, b"\0")).fails(500, "storage.unknown")
    assert files_in(small_disk) == before
    source = encoded(photo(512), "JPEG", quality=85)
    assert len(source) < ROOM
    upload(client, source).fails(500, "storage.unknown")
    assert files_in(small_disk) == before
    filler = small_disk / "filler"
    fill(filler)
    upload(client, plain(RED)).fails(500, "storage.unknown")
    filler.unlink()

    assert files_in(small_disk) == before
    assert shown(client).getpixel((256, 256)) == BLUE
    assert client.me().ok()["profile"]["avatar"]["version"] == 1
    assert upload(client, plain(RED)).ok()["applied"]
