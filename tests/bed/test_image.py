"""The steps of the Dockerfile on this machine: what it copies runs from a read-only tree."""

import os
import pwd
import re
import shlex
import shutil
import stat
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from app.core.config import Config
from tests.support import servers
from tests.support.live import eventually, free_port

ROOT = servers.ROOT
NOBODY = pwd.getpwnam("nobody")


def instructions():
    """Yield the instructions of the Dockerfile with their stage and argument."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text())
    stage = 0
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        word, _, argument = line.partition(" ")
        stage += word == "FROM"
        yield stage, word, argument.strip()


def arguments(word, stage=2):
    return [
        argument for number, found, argument in instructions() if (number, found) == (stage, word)
    ]


def command(argument):
    """Return the JSON list at the end of a CMD or HEALTHCHECK."""
    return re.findall(r'"([^"]*)"', argument[argument.index("[") :])


def environment():
    pairs = shlex.split(" ".join(arguments("ENV")))
    return dict(pair.split("=", 1) for pair in pairs)


def run(argv, **options):
    """Run a command of the image with this Python instead of the image's."""
    known = {"python": [sys.executable], "gunicorn": [sys.executable, "-m", "gunicorn"]}
    return subprocess.Popen([*known[argv[0]], *argv[1:]], **options)


@cache
def somebody_else():
    """Return Popen options to run as a user who does not own the tree; none if not possible."""
    other = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []}
    if os.geteuid() != 0:
        return {}
    try:
        subprocess.run([sys.executable, "-c", "import flask"], check=True, cwd="/", **other)
    except (OSError, subprocess.CalledProcessError):
        return {}  # only root can read this Python
    return other


@pytest.fixture
def image():
    """The tree of the last stage, made read-only, and a writable instance folder."""
    with servers.short_folder() as folder:
        folder.chmod(0o755)
        tree, written = folder / "srv", folder / "instance"
        tree.mkdir()
        for argument in arguments("COPY"):
            *sources, target = argument.split()
            if sources[0].startswith("--from="):
                continue
            for source in sources:
                path, place = ROOT / source, tree / ("" if target == "./" else target)
                if path.is_dir():
                    shutil.copytree(path, place, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(path, place)
        written.mkdir(mode=0o700)
        if somebody_else():
            os.chown(written, NOBODY.pw_uid, NOBODY.pw_gid)
        yield tree, written
        make_writable(tree)


def make_read_only(tree):
    for path in [tree, *tree.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def state(tree):
    return {path: path.stat().st_mtime_ns for path in tree.rglob("*")}


def make_writable(tree):
    for path in [tree, *tree.rglob("*")]:
        if path.is_dir():
            path.chmod(stat.S_IRWXU)


def test_it_is_built_in_two_stages_and_runs_as_nobody_in_particular():
    assert [argument.split()[0] for _, word, argument in instructions() if word == "FROM"] == (
        ["python:3.13-slim"] * 2
    )
    assert "--no-deps --require-hashes" in arguments("RUN", stage=1)[0]
    # Kubernetes refuses a name where it must not start root.
    [user] = arguments("USER")
    assert f"useradd --uid {user} " in " ".join(arguments("RUN"))
    assert arguments("COPY")[0].startswith("--from=packages ")


def test_what_it_copies_reaches_the_builder():
    """.dockerignore excludes everything that it does not name."""
    let_in = {
        line.removeprefix("!").strip("/")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = {
        source
        for stage in (1, 2)
        for argument in arguments("COPY", stage)
        for source in argument.split()[:-1]
        if not source.startswith("--from=") and source != "/venv"
    }
    assert copied == let_in
    assert all((ROOT / source).exists() for source in copied)


@pytest.mark.soak
def test_it_starts_on_a_tree_it_cannot_write_and_tells_whether_it_is_well(image):
    tree, written = image
    [compile_all] = [argument for argument in arguments("RUN") if "compileall" in argument]
    compiled = run(shlex.split(compile_all), cwd=tree, stdout=subprocess.DEVNULL)
    assert compiled.wait(120) == 0
    make_read_only(tree)
    before = state(tree)
    assert "__pycache__" in {path.name for path in before}
    port = free_port()
    own = environment() | {
        "GATEHOUSE_INSTANCE": str(written),
        "GATEHOUSE_BIND": f"0.0.0.0:{port}",
        "GATEHOUSE_REDIS_URL": "unix:///nonexistent.sock",
        "HOME": "/nonexistent",
        "PATH": os.environ["PATH"],
    }
    Config.from_env(own)
    options = {"cwd": tree, "env": own, **somebody_else()}
    migrated = subprocess.run(
        [sys.executable, "-m", "flask", "--app", "wsgi", "prepare"],
        check=False,
        capture_output=True,
        text=True,
        **options,
    )
    assert migrated.returncode == 0, migrated.stderr
    [check], [start] = arguments("HEALTHCHECK"), arguments("CMD")

    def health():
        return run(command(check), **options).wait(30)

    with (written / "log").open("wb") as log:
        server = run(command(start), stdout=log, stderr=log, start_new_session=True, **options)
    try:
        eventually(lambda: server.poll() is not None or health() == 0, "a healthy container")
        assert server.poll() is None, (written / "log").read_text()[-3000:]
    finally:
        server.terminate()
        assert server.wait(30) == 0
    assert health() == 1
    assert state(tree) == before


def test_the_folders_it_writes_are_declared():
    [volumes] = arguments("VOLUME")
    made = " ".join(arguments("RUN"))
    for folder in command(volumes):
        assert f" {folder}" in made
    assert environment()["GATEHOUSE_INSTANCE"] in command(volumes)
    assert Path(environment()["GATEHOUSE_INSTANCE"]).is_absolute()
