"""Uploads to real workers: bodies in pieces, clients that leave, processes that are killed."""

import http.client
import io
import os
import random
import re
import shutil
import signal
import socket
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from PIL import Image

from app.avatars import files, upkeep
from app.users import queries
from app.web.request import BODY_SECONDS, PIECE_BYTES
from tests.support import images
from tests.support.factories import configure, make_user
from tests.support.images import BLUE, GREEN, RED, encoded, multipart, photo, plain, upload
from tests.support.live import eventually

UPLOAD = "/auth/profile/avatar/upload"
MEBIBYTE = 2**20
KILLS = 4
# Requests are logged, and what housekeeping did, whatever is uploaded meanwhile.
EXPECTED = re.compile(r" INFO (gatehouse\.access|app\.installation\.cleanup) ")


@pytest.fixture
def root(live):
    return make_user(live.rt, username="root", role="admin")


@pytest.fixture
def user(live, root):
    return make_user(live.rt)


@pytest.fixture
def folder(live):
    """Its avatars; what accounts of an earlier test left is gone."""
    path = live.folder / "instance" / "avatars"
    shutil.rmtree(path, ignore_errors=True)
    return path


@pytest.fixture
def client(live, user, folder):
    with live.client() as client:
        client.login(user).ok()
        upload(client, plain(BLUE)).ok()
        yield client


def staged(folder):
    return sorted(entry.name for entry in (folder / "staging").iterdir())


def color(client, size=512):
    answer = client.get(f"/auth/profile/avatar/{size}")
    assert answer.status == 200, answer
    with Image.open(io.BytesIO(answer.body)) as image:
        assert image.size == (size, size)
        return image.convert("RGB").getpixel((size // 2, size // 2))


def pieces(content, size):
    return iter([content[at : at + size] for at in range(0, len(content), size)])


def memory_of(live):
    return {pid: psutil.Process(pid).memory_full_info().uss for pid in live.workers()}


def peak_growth(pids):
    """Start to watch how far the memory of processes grows; return how to ask for the most."""
    now = {}
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew (proc(5))
        now[pid] = status_bytes(pid, "VmRSS")
    return lambda: max(status_bytes(pid, "VmHWM") - now[pid] for pid in pids)


def status_bytes(pid, name):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise AssertionError(name)


def test_a_body_may_come_in_pieces_of_any_size(client, folder):
    """Even of one byte, so that the boundary is cut wherever it can be."""
    body = multipart(plain(GREEN))
    for size in (1, 7, 1000):
        client.post(UPLOAD, pieces(body, size), headers=images.headers()).ok()
        assert color(client) == GREEN
    assert staged(folder) == []


def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(live, client, folder):
    body = multipart(plain(RED).ljust(3 * MEBIBYTE, b"\0"))
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    for sent in (100, PIECE_BYTES, MEBIBYTE, len(body) - 1):
        with socket.create_connection(("127.0.0.1", live.port)) as leaver:
            head = (
                f"POST /api/v1{UPLOAD} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n"
                f"Content-Type: {images.headers()['Content-Type']}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            leaver.sendall(head.encode() + body[:sent])
            eventually(lambda: staged(folder), "the upload to be staged")
    # And not because the rest of a body is waited for no longer.
    eventually(lambda: staged(folder) == [], "the staging to be cleared", BODY_SECONDS - 5)
    assert color(client) == BLUE


def test_broken_chunks_are_answered_and_leave_nothing(live, client, folder):
    body = multipart(plain(RED))[:-20]
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    head = (
        f"POST /api/v1{UPLOAD} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n"
        f"Content-Type: {images.headers()['Content-Type']}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    chunk = head.encode() + f"{len(body):x}\r\n".encode() + body + b"\r\n"
    for ending in (b"", b"zz\r\n", b"5\r\nab", b"0\r\nbad trailer\r\n\r\n", b"2\r\nabc\r\n"):
        with socket.create_connection(("127.0.0.1", live.port), timeout=30) as sender:
            sender.sendall(chunk + ending)
            sender.shutdown(socket.SHUT_WR)
            answer = sender.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 400 "), (ending, answer)
        assert b"avatar.upload_read_failed" in answer
    assert staged(folder) == []
    assert color(client) == BLUE


@pytest.mark.parametrize("megabytes", [17, pytest.param(100, marks=pytest.mark.soak)])
def test_far_too_large_a_body_is_answered_and_not_reset(client, folder, megabytes):
    body = multipart(plain(RED).ljust(megabytes * 10**6, b"\0"))
    for connection in ("keep-alive", "close"):
        headers = {**images.headers(), "Connection": connection}
        client.post(UPLOAD, body, headers=headers).fails(400, "file.too_large")
    assert staged(folder) == []
    assert color(client) == BLUE


def test_what_is_refused_is_told_to_its_sender_and_not_to_the_log(live, client):
    """Else anybody could fill it, and with lines that are not of its format."""
    before = live.log.stat().st_size
    upload(client, b"no image").fails(400, "file.type_not_allowed")
    upload(client, plain(RED, (1025, 1))).fails(400, "avatar.render_failed")
    with live.log.open() as log:
        log.seek(before)
        assert [line for line in log if not EXPECTED.search(line)] == []


def test_memory_does_not_follow_the_size_of_an_upload(live, client, folder):
    configure(live.rt, avatar_max_upload_size_bytes=16 * MEBIBYTE)
    body = multipart(random.Random(1).randbytes(16 * MEBIBYTE - 1000))
    small = multipart(b"no image")
    for _ in range(3):
        client.post(UPLOAD, small, headers=images.headers()).fails(400, "file.type_not_allowed")
    growth = peak_growth(live.workers())
    for _ in range(3):
        client.post(UPLOAD, body, headers=images.headers()).fails(400, "file.type_not_allowed")
    assert growth() < 8 * MEBIBYTE


@pytest.mark.soak
def test_memory_comes_back_after_uploads(live, client):
    contents = [
        encoded(photo()),
        encoded(photo(), "JPEG", quality=95),
        encoded(Image.new("RGBA", (1024, 1024), (1, 2, 3, 99))),
        plain().ljust(9 * MEBIBYTE, b"\0"),
        images.gif_bomb(5000),
        images.png_bomb(),
    ]

    def upload_all():
        for content in contents:
            assert upload(client, content).status in {200, 400}

    upload_all()
    before = memory_of(live)
    for _ in range(4):
        upload_all()
    after = memory_of(live)
    assert all(after[pid] - before[pid] < 10 * MEBIBYTE for pid in before), (before, after)


def test_workers_killed_at_any_moment_leave_row_and_files_in_agreement(live, client, user, folder):
    moments = random.Random(f"{live.port}")
    known = {BLUE}
    stop = threading.Event()

    def keep_uploading(number):
        mine = 0
        while not stop.is_set():
            mine += 1
            shade = (number * 60, mine % 256, (mine * 7) % 256)
            known.add(shade)
            try:
                with live.client() as uploader:
                    uploader.cookies = dict(client.cookies)
                    upload(uploader, plain(shade, (400, 400))).ok()
            except (OSError, http.client.HTTPException):
                continue  # its worker died

    threads = [threading.Thread(target=keep_uploading, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(KILLS):
            stop.wait(moments.uniform(0.05, 0.7))
            workers = live.workers()  # fewer than two while one is being replaced
            for pid in moments.sample(workers, k=min(len(workers), moments.choice([1, 2]))):
                os.kill(pid, signal.SIGKILL)
            eventually(lambda: len(live.workers()) == 2, "new workers")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    live.kill()
    live.restart()
    for left in (folder / "staging").iterdir():
        os.utime(left, (0, 0))  # what is so young may be an upload that is under way
    upkeep.cleanup(replace(live.rt, config=replace(live.rt.config, avatar_dir=folder)))
    assert staged(folder) == []
    with live.rt.reading() as connection:
        account = queries.find_account(connection, user.id)
    assert [p.name for p in (folder / "user" / str(user.id)).iterdir()] == [files.name_of(account)]
    with live.client() as again:
        again.login(user).ok()
        assert color(again) in known
        assert color(again, 1024) in known
        assert upload(again, plain(GREEN)).ok()["applied"]
        assert color(again) == GREEN
