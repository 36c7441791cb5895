"""Builds the image and uses it: read-only, as its user and as any, on PostgreSQL and Valkey.

    PYTHONPATH=. .venv/bin/python .ci/image.py

No container engine is needed: buildah builds in a chroot, and what it built runs in another. The
base image is a Debian with the Python of the Dockerfile, laid out under the name used there. Where
a machine cannot do that, it is said and is no failure; what happens to the image is.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.live import free_port
from tests.support.servers import PrivatePostgres, PrivateValkey, short_folder

ROOT = Path(__file__).resolve().parents[1]
RELEASE = "trixie"
PACKAGES = "ca-certificates,python3-venv,python-is-python3"
OWN_USER = "10001:10001"
# As OpenShift starts it: a number that is in no list of users, in root's group.
ANY_USER = "1000660000:0"
START_SECONDS = 30
BUILDER = {"BUILDAH_ISOLATION": "chroot"}


class Unable(Exception):
    """The machine cannot build or run an image; the message says why."""


def run(*command: str) -> str:
    """Run a command; return what it wrote.

    Raises: CalledProcessError; its output is shown.
    """
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | BUILDER, cwd=ROOT
    )
    if done.returncode:
        print(done.stdout[-4000:], done.stderr[-4000:], file=sys.stderr)
        done.check_returncode()
    return done.stdout.strip()


def attempt(*command: str) -> str:
    """Run a command that some machines cannot.

    Raises: Unable.
    """
    try:
        return run(*command)
    except subprocess.CalledProcessError as error:
        raise Unable(f"`{shlex.join(command[:2])}` cannot be done") from error


def require_tools() -> None:
    """Install what is missing.

    Raises: Unable.
    """
    if os.geteuid() != 0:
        raise Unable("only root can")
    missing = [tool for tool in ("buildah", "debootstrap") if shutil.which(tool) is None]
    if missing and shutil.which("apt-get"):
        command = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *missing]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    for tool in missing:
        if shutil.which(tool) is None:
            raise Unable(f"there is no {tool}")


def lay_out_base(folder: Path, name: str) -> None:
    """Make the image that the Dockerfile begins with.

    Raises: Unable.
    """
    root = folder / "base"
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, str(root)]
    if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
        raise Unable("no packages of Debian can be had")
    wanted = re.findall(r"python:([\d.]+)", name)[0]
    if subprocess.run(["chroot", str(root), f"python{wanted}", "-c", ""], check=False).returncode:
        raise Unable(f"{RELEASE} has another Python than {wanted}")
    # Packages may come from a server that only this machine's certificates know.
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs/")
    container = attempt("buildah", "from", "scratch")
    attempt("buildah", "mount", container)
    run("buildah", "add", "-q", container, str(root), "/")
    run("buildah", "commit", "-q", container, f"docker.io/library/{name}")
    run("buildah", "rm", container)
    shutil.rmtree(root)


def build(folder: Path) -> str:
    """Build the image from the Dockerfile; return its name."""
    text = (ROOT / "Dockerfile").read_text()
    [base] = set(re.findall(r"^FROM (\S+)", text, re.MULTILINE))
    lay_out_base(folder, base)
    # Builders of before 2024 do not know it; it only makes a start be noticed sooner.
    file = folder / "Dockerfile"
    file.write_text(text.replace(" --start-interval=1s", ""))
    options = ["--pull-never", "--network=host", "--format=docker", f"--file={file}"]
    run("buildah", "build", *options, "--tag=gatehouse-check", ".")
    return "gatehouse-check"


@contextmanager
def mounted(folder: Path, image: str, *shared: Path) -> Iterator["Container"]:
    """Give the image a read-only tree, its two volumes, and folders of this machine."""
    container = run("buildah", "from", "--pull-never", image)
    tree = folder / "tree"
    tree.mkdir()
    with ExitStack() as stack:
        stack.callback(run, "buildah", "rm", container)
        source = run("buildah", "mount", container)

        def mount(*arguments: str) -> None:
            attempt("mount", *arguments)
            stack.callback(run, "umount", "--lazy", arguments[-1])

        mount("--bind", source, str(tree))
        run("mount", "-o", "remount,bind,ro", str(tree))
        for name in ("proc", "sys", "dev"):
            mount("--rbind", "--make-rslave", f"/{name}", str(tree / name))
        mount("-t", "tmpfs", "tmpfs", str(tree / "tmp"))
        for path in shared:  # below /tmp, which can be written
            target = tree / str(path).lstrip("/")
            target.mkdir(parents=True)
            mount("--bind", str(path), str(target))
        for name in ("instance", "avatars"):
            volume = folder / name
            volume.mkdir(mode=0o700)
            mount("--bind", str(volume), str(tree / "srv" / name))
        yield Container(tree, json.loads(run("buildah", "inspect", container)))


class Container:
    """The image in a tree of its own."""

    def __init__(self, tree: Path, inspected: dict[str, dict[str, dict[str, object]]]) -> None:
        self._tree = tree
        config = inspected["Docker"]["config"]
        self._environment = list(config["Env"])  # type: ignore[call-overload]
        self._workdir = str(config["WorkingDir"])
        self.command: list[str] = list(config["Cmd"])  # type: ignore[call-overload]
        self.check: list[str] = config["Healthcheck"]["Test"][1:]  # type: ignore[index]
        self._user = OWN_USER
        if config["User"] != OWN_USER.partition(":")[0]:
            raise AssertionError(f"runs as {config['User']}")

    def become(self, user: str) -> None:
        """Run commands as this `uid:gid` from now on; the volumes become its own."""
        self._user = user
        for name in ("instance", "avatars"):
            run("chown", "-R", user, str(self._tree / "srv" / name))

    def start(self, command: list[str], **variables: str) -> subprocess.Popen[bytes]:
        """Start a command with the image's environment and no other, without any capability."""
        pairs = [*self._environment, *(f"{name}={value}" for name, value in variables.items())]
        inner = f"cd {self._workdir} && exec {shlex.join(['env', '-i', *pairs, *command])}"
        user, _, group = self._user.partition(":")
        locked = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
        locked += ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "sh", "-c", inner]
        return subprocess.Popen(["chroot", str(self._tree), *locked])

    def run(self, command: list[str], **variables: str) -> int:
        """Run a command to its end; return its exit code."""
        return self.start(command, **variables).wait(120)


def post(url: str, body: dict[str, str]) -> object:
    """Send JSON; return `data` of the answer."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)["data"]


def use(container: Container, database: str, redis: str) -> None:
    """Bring the database up to date, start the service, set it up, sign in, stop it."""
    port = free_port()
    stores = {"GATEHOUSE_DATABASE_URL": database, "GATEHOUSE_REDIS_URL": redis}
    variables = {**stores, "GATEHOUSE_BIND": f"127.0.0.1:{port}"}
    assert container.run(["touch", "/srv/gatehouse/written"]) != 0, "the tree can be written"
    assert container.run(["flask", "--app", "wsgi", "prepare"], **variables) == 0
    service = container.start(container.command, **variables)
    try:
        ends = time.monotonic() + START_SECONDS
        while container.run(container.check, **variables):
            assert service.poll() is None, "the service ended"
            assert time.monotonic() < ends, "the health check fails"
            time.sleep(0.3)
        api = f"http://127.0.0.1:{port}/api/v1/auth"
        account = {"username": "ada", "email": "ada@example.com", "password": "a long password"}
        post(f"{api}/setup", account)
        post(f"{api}/login", {"identifier": "ada", "password": account["password"]})
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/login", timeout=20) as page:
            assert b"<form" in page.read()
        assert container.run(["gatehouse", "doctor"], **variables) == 0
    finally:
        service.terminate()
        code = service.wait(30)
    assert code == 0, f"it ended with {code}"


def main() -> None:
    """Do it all, or say why it cannot be done here."""
    try:
        require_tools()
        with TemporaryDirectory() as name, short_folder() as first, short_folder() as second:
            folder = Path(name)
            image = build(folder)
            with (
                PrivatePostgres(first) as postgres,
                PrivateValkey(second) as valkey,
                mounted(folder, image, first, second) as container,
            ):
                for path in (first, second, *second.iterdir()):
                    path.chmod(0o777)
                for database, user in (("own", OWN_USER), ("any", ANY_USER)):
                    container.become(user)
                    use(container, postgres.cluster.create(database), valkey.url)
            run("buildah", "rmi", image)
    except Unable as reason:
        print(f".ci/image.py: {reason}, so no image was built", file=sys.stderr)
        return
    print(".ci/image.py: the image was built, started, used and stopped, also as any user")


if __name__ == "__main__":
    main()
