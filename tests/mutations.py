r"""A check of the suite itself: forty slips, each made in a copy of the tree, are to be noticed.

    python -m tests.mutations [--tree PATH] [--only WORD] [--workers N]
    python -m tests.mutations --list
    python -m tests.mutations --check    whether each slip can be made; runs no test

The tests of the area run first, and the whole suite only if they pass. A test has noticed a slip
if, alone, it fails again with it and passes without it; else it is left out, and the others run
again.
A run that has to be killed counts as noticed. One of the forty may go unnoticed.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# The file in app, what becomes wrong, and the change as diff shows it: whole lines.
SLIPS = r"""
# login/pending_login.py: A login that waits for its second step outlives a new password
-    if account.session_version != pending.session_version:
-        raise MfaFlowInvalid
# sessions/rotation.py: After a replay of a refresh token, the end of all sessions is rolled back
         audit.record(rt, session, event)
+        raise RefreshTokenReused
# mfa/queries.py: Two sign-ins at once can use the same recovery code
-        MfaRecoveryCode.id == code.id, MfaRecoveryCode.used_at.is_(None)
+        MfaRecoveryCode.id == code.id
# passkeys/queries.py: Removing one passkey makes the account's other passkeys unusable
-    without = PasskeyHandle.user_id == user_id, ~exists().where(Passkey.user_id == user_id)
+    without = (PasskeyHandle.user_id == user_id,)
# passwords/service.py: A reset removes the passkeys of proven owners, and leaves those of hijackers
-        if account.proven_at is None or account.email_verified_at is None:
+        if account.proven_at is not None and account.email_verified_at is not None:
# passwords/service.py: A reset leaves the authenticator app that a stranger planted
-            removed += sum(remove(session, account.id) for remove in rt.hooks.on_unproven_reset)
+            removed += 0
# contact_verification/service.py: Whoever opens a mailed link counts as the browser that asked
-    return browser is not None and asked is not None and hmac.compare_digest(browser, asked)
+    return asked is not None
# external_auth/sign_in/linking.py: An address that a scanner has confirmed joins an identity
-    if account.proven_at is None:
-        raise AddressUnproven
# registration/queries.py: An account that waits for activation is taken as abandoned at once
-    return *is_waiting, is_over, ~is_member
+    return *is_waiting, ~is_member
# crypto/passwords.py: A refusal by an imported hash takes as long as that hash alone
-        while began.since().cpu < cpu or began.since().wall < wall:
+        while False:
# users/service.py: A number that is one user's id and another's name means the first
-    if len(accounts) > 1:
+    if len(accounts) > 2:
# passkeys/login.py: A passkey that is known but refused is hidden by the browser
-    if not hmac.compare_digest(handle, presented):
-        raise PasskeyRefused
+    if not hmac.compare_digest(handle, presented):
+        raise PasskeyUnknown
# web/guards.py: What is typed for one account is saved for the other that signed in beside it
-    if believed != str(principal.user_id):
-        raise SessionUserMismatch
# store/postgres.py: A connection to a standby is used again after it refused a write
-        context.is_disconnect = True
+        context.is_disconnect = False
# mail/smtp_replies.py: A mail is given up when its server refuses for now
-    if code not in PERMANENT:
-        return ReplyVerdict.WAITS
# registration/service.py: The activation mail is sent again to an address blocked meanwhile
-    if account is None or not _is_pending_activation(account) or _is_blocked(rt, account.email):
+    if account is None or not _is_pending_activation(account):
# invitations/service.py: An invitation that was withdrawn claims to have expired
-    InvitationStatus.REVOKED: InvitationRevoked,
+    InvitationStatus.REVOKED: InvitationExpired,
# contact_verification/tokens.py: A mailed link works twice when it is followed twice at once
-    if not queries.consume(session, digest(token)):
-        raise ContactVerificationInvalid
+    queries.consume(session, digest(token))
# external_auth/drivers/oauth2.py: An address that GitHub has not verified counts as verified
-        if entry.get("primary") is True and entry.get("verified") is True:
+        if entry.get("primary") is True:
# external_auth/sign_in/service.py: A link goes to another session than the one that began it
-    if principal is None or principal.session_id != sign_in.session_id:
+    if principal is None:
# profile/service.py: A display name may have line breaks and other control characters
-    if len(name) > MAX_DISPLAY_NAME_LENGTH or has_controls(name):
+    if len(name) > MAX_DISPLAY_NAME_LENGTH:
# avatars/service.py: A slow upload replaces the avatar that was chosen after it had begun
-            is_first = (before.avatar_version or 0) == version - 1
+            is_first = (before.avatar_version or 0) >= version - 1
# events/streams.py: After its first 256 KiB an event stream only ever tells a page to reload
-        self._queued_bytes -= len(frames)
# own_data/activity.py: An account's owner sees from which address an administrator changed it
-            "ip_address": entry.ip_address if is_mine else None,
+            "ip_address": entry.ip_address,
# settings/changes.py: The audit log shows the password of the mail server
-    details = {"value": _shown(key, text), "previous_value": _shown(key, previous)}
+    details = {"value": text, "previous_value": _shown(key, previous)}
# mail/queries.py: A sender whose lease is over overwrites what the present one does to the mail
-    mine = OutboxMail.id == leased.id, OutboxMail.lease == leased.lease
+    mine = (OutboxMail.id == leased.id,)
# mail/rendering.py: Whoever chooses a value that a mail shows can put markup into it
-        html=filled(template.html, {name: html.escape(value) for name, value in values.items()}),
+        html=filled(template.html, values),
# user_admin/service.py: Ending all sessions of an account leaves no trace in the audit log
-        users.record_by(rt, session, by, Action.ADMIN_REVOKE_USER_SESSIONS, account, details)
# installation/machine_checks.py: The doctor is content with keys that the group can read
-    return f"{mode:04o}" if mode & 0o077 else None
+    return f"{mode:04o}" if mode & 0o007 else None
# storage_policies/service.py: Accounts can be assigned to a policy group without a policy
-    if not group.is_enabled or not group.items:
+    if not group.is_enabled:
# teams/queries.py: The last owner of a team can leave it if another team has another owner
     owners = select(TeamMember.user_id).where(
-        TeamMember.team_id == team_id, TeamMember.role == TeamRole.OWNER
+        TeamMember.role == TeamRole.OWNER
# web/origin.py: Pages of a neighbouring subdomain pass for the site's own if they send no origin
-    elif fetch_site == "same-site":
-        raise RequestSourceUntrusted
# store/paging.py: Beyond the end of a list, as many entries are counted as were skipped
-    if paging.offset and not found:
+    if False:
# store/limits.py: While Redis is away, one more wrong password is judged than is allowed
-                if len(counts[each]) >= most:
+                if len(counts[each]) > most:
# crypto/keyring.py: A rotation of the keys makes every access token invalid at once
-        return retired_at is not None and retired_at + MAX_TOKEN_LIFETIME < self._clock.now()
+        return retired_at is not None and retired_at < self._clock.now()
# core/http_client.py: With an internal network, its metadata service is open to providers, too
-        if addresses.is_always_forbidden(address):
-            return False
# serving/health.py: The health check of a container passes while nothing listens
-        return 0 if Address.of(Config.from_env(os.environ).bind).is_healthy() else 1
+        return 1 if Address.of(Config.from_env(os.environ).bind).is_healthy() is False else 0
# pages/shells.py: Markup in the site's title or message becomes part of the pages
-        autoescape=True,
+        autoescape=False,
# pages/static/base/form.js: A refusal empties the form that was sent
+      form.reset();
       fail(form, handling, error);
# pages/static/base/return_path.js: After signing in again, a list has lost its filters
-  const here = window.location.pathname + window.location.search;
+  const here = window.location.pathname;
"""
MAY_GO_UNNOTICED = 1
# The folders of tests to try first, where they are not the area's own alone.
FIRST = {
    "mfa/queries.py": ("mfa", "login", "races"),
    "contact_verification/tokens.py": ("contact_verification", "passwords", "races"),
    "storage_policies/service.py": ("storage_policies", "administration"),
    "web/origin.py": ("security", "doors"),
    "store/paging.py": ("database", "administration"),
    "store/limits.py": ("degraded", "login"),
    "crypto/keyring.py": ("administration", "sessions", "security"),
    "core/http_client.py": ("http_client",),
    "contact_verification/service.py": ("external_auth", "contact_verification"),
    "registration/queries.py": ("external_auth",),
    "users/service.py": ("registration",),
    "crypto/passwords.py": ("administration", "login"),
    "store/postgres.py": ("degraded", "database"),
    "mail/smtp_replies.py": ("mail",),
    "web/guards.py": ("contract", "security"),
}
TEST_SECONDS, RUN_SECONDS = 120, 3600
TRIES = 3  # for a race that is not lost each time
FOUND_NO_TESTS = (4, 5)
INSTALLED = ("node_modules", ".install.lock")

say = partial(print, flush=True)


@dataclass(frozen=True)
class Mutation:
    """A slip: `old`, which stands in the file once, becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    first: tuple[str, ...]

    @classmethod
    def parse(cls, paragraph: str) -> "Mutation":
        """Read a paragraph of SLIPS."""
        head, *lines = paragraph.splitlines()
        file, _, name = head.partition(": ")
        old, new = ("\n".join(one[1:] for one in lines if one[0] in kept) for kept in (" -", " +"))
        return cls(name, f"app/{file}", old, new, FIRST.get(file, (file.partition("/")[0],)))

    def made_in(self, sound: str) -> str:
        """Return the text of the file with the slip.

        Raises: ValueError.
        """
        if (places := sound.count(self.old)) != 1 or self.old == self.new:
            raise ValueError(f"it changes nothing, or one of {places} places")
        return sound.replace(self.old, self.new)


MUTATIONS = [Mutation.parse(paragraph) for paragraph in re.split("^# ", SLIPS, flags=re.M)[1:]]


def complaint(tree: Path, mutation: Mutation) -> str | None:
    """Return why a slip cannot be made in a tree; None if it can, and leaves what can be read."""
    try:
        text = mutation.made_in((tree / mutation.file).read_text(encoding="utf-8"))
        if mutation.file.endswith(".py"):
            compile(text, mutation.file, "exec")
    except (OSError, ValueError, SyntaxError) as error:
        return str(error)
    node = shutil.which("node") if mutation.file.endswith(".js") else None
    command = [node or "", "--input-type=module", "--check"]
    read = node and subprocess.run(command, input=text, capture_output=True, text=True)
    return read.stderr if read and read.returncode else None


@contextmanager
def copied(tree: Path) -> Iterator[Path]:
    """Yield a copy of what git knows of a tree, uncommitted changes included, and remove it."""
    with tempfile.TemporaryDirectory(prefix="slips-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # PostgreSQL does not run as root, and has to get through
        copy = Path(folder) / "tree"
        git(tree, "worktree", "add", "--quiet", "--detach", str(copy), "HEAD")
        try:
            for name in git(tree, "diff", "--name-only", "--no-renames", "-z", "HEAD"):
                (copy / name).unlink(missing_ok=True)
                if (tree / name).exists():
                    (copy / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(tree / name, copy / name)
            # What is installed already is not downloaded again.
            ignored = git(tree, "ls-files", "-oi", "--exclude-standard", "--directory", "-z")
            for one in (".venv", *(one for one in ignored if Path(one).name in INSTALLED)):
                if (tree / one).exists():
                    (copy / one.rstrip("/")).symlink_to((tree / one).resolve())
            yield copy
        finally:
            git(tree, "worktree", "remove", "--force", str(copy))


def git(tree: Path, *arguments: str) -> list[str]:
    """Return what a command of git lists; it takes no lock that it could do without."""
    command = ["git", "--no-optional-locks", "-C", str(tree), *arguments]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [part for part in told.split("\0") if part]


def put(path: Path, text: str) -> None:
    """Write a source file; its bytecode goes, as its time does not tell changes within a second."""
    path.write_text(text, encoding="utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()


def run_tests(copy: Path, workers: int, *arguments: str) -> tuple[int | None, list[str], str]:
    """Run tests until one fails; return pytest's exit code, those that failed, and a remark.

    The code is None if it had to be killed.
    """
    command = [str(copy / ".venv/bin/python"), "-m", "pytest", "-x", "-q", "-rfE", "--no-header"]
    command += ["-p", "no:cacheprovider", "--timeout", str(TEST_SECONDS), "-n", str(workers)]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as told:
        process = subprocess.Popen(
            [*command, *arguments], cwd=copy, stdout=told, stderr=told, start_new_session=True
        )
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(RUN_SECONDS)
        finally:
            if (code := process.poll()) is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        told.seek(0)
        text = told.read()
    failed = re.findall(r"^(?:FAILED|ERROR) (tests/[^\[\n]*?(?:\[.*?\])?)(?: - .*)?$", text, re.M)
    return code, failed, " (timed out)" if f"Timeout (>{TEST_SECONDS}" in text else ""


def judged(copy: Path, mutation: Mutation, workers: int) -> str | None:
    """Make a slip, and return what notices it, None if nothing does; then take it back."""
    path, left_out = copy / mutation.file, list[str]()
    sound = path.read_text(encoding="utf-8")
    first = [f"tests/{one}" for one in mutation.first if (copy / "tests" / one).exists()]
    for where in (first, ["tests"]):
        code: int | None = 1
        while code != 0:
            put(path, mutation.made_in(sound))
            code, failed, remark = run_tests(
                copy, workers, *where, *map("--deselect={}".format, left_out)
            )
            put(path, sound)
            if code in FOUND_NO_TESTS or (failed and set(failed) <= set(left_out)):
                sys.exit(f"pytest cannot run this: {' '.join([*where, *failed])}")
            if code != 0 and not failed:
                return f"killed after {RUN_SECONDS} s" if code is None else f"exit code {code}"
            for test in failed:
                put(path, mutation.made_in(sound))
                fails_again = any(run_tests(copy, 0, test)[0] == 1 for _ in range(TRIES))
                put(path, sound)
                if fails_again and run_tests(copy, 0, test)[0] == 0:
                    return test + remark
            left_out += failed
    return None


def main() -> int:
    """Do what is asked for; 1 if too many slips go unnoticed, or one cannot be made."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the copy goes
    root, cores = Path(__file__).resolve().parents[1], len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("--tree", type=Path, default=root, help="the tree to copy")
    parser.add_argument("--only", metavar="WORD", default="", help="in the sentence or the path")
    parser.add_argument("--workers", type=int, default=min(cores, 6) + 2, help="pytest's -n")
    parser.add_argument("--list", action="store_true", help="print the slips")
    parser.add_argument("--check", action="store_true", help="only check that they can be made")
    asked = parser.parse_args()
    tree, word = asked.tree.resolve(), asked.only.lower()
    chosen = [one for one in MUTATIONS if word in f"{one.name} {one.file}".lower()]
    problems = {} if asked.list else {one: complaint(tree, one) for one in chosen}
    for one in chosen if asked.list else (one for one in chosen if problems[one]):
        say(f"{one.name} ({one.file})", problems.get(one) or "")
    if asked.list or asked.check or any(problems.values()):
        can = sum(problem is None for problem in problems.values())
        say(f"{len(chosen)} slips" if asked.list else f"{can} of {len(chosen)} can be made")
        return int(any(problems.values()))
    noticed = 0
    with copied(tree) as copy:
        for one in chosen:
            began, by = time.monotonic(), judged(copy, one, asked.workers)
            noticed += by is not None
            verdict = "noticed" if by else "NOT noticed"
            say(f"{verdict:11} {time.monotonic() - began:5.0f} s  {one.name}: {by or 'by no test'}")
        say(f"{noticed} of {len(chosen)} were noticed")
    missed = len(chosen) - noticed
    return int(missed > (MAY_GO_UNNOTICED if chosen == MUTATIONS else 0))


if __name__ == "__main__":
    sys.exit(main())
