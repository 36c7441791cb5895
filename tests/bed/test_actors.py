"""Each client of a run detects the forged answers of a misbehaving service."""

import http.client
import io
import itertools
import json
from types import SimpleNamespace

import pytest
from PIL import Image
from werkzeug.datastructures import Headers

from app.core.clock import SystemClock
from app.mfa import totp
from deploy.bed.actors import actor as actors
from deploy.bed.actors.actor import Actor
from deploy.bed.actors.avatar_user import AvatarUser
from deploy.bed.actors.listener import Listener
from deploy.bed.actors.mfa_user import MfaUser
from deploy.bed.actors.registrar import Registrar
from deploy.bed.actors.regular_user import RegularUser
from deploy.bed.ledger import Ledger
from tests.support import images
from tests.support.api import Answer
from tests.support.authenticator import STEP_SECONDS, Authenticator, EnabledTotp
from tests.support.factories import KnownUser

USER = KnownUser(1, "alice", "alice@example.com", "a password")
GONE = (401, "auth.token_invalid")
EXPIRED = (401, "auth.token_expired")
REUSED = (401, "auth.refresh_token_reuse_detected")
WRONG = (401, "auth.credentials_failed")
AWAY = (503, "database.error")
LIMITED = (429, "rate_limited.requests")
MFA = {"status": "mfa_required", "flow_token": "token"}


class Service:
    """Gives the answers of `script` in order, then successes without content."""

    def __init__(self):
        self.cookies = {}
        self.script = []
        self.asked = []
        self.sent = []

    def call(self, method, path, body=None, *, headers):
        self.asked.append((method, path, headers["User-Agent"], dict(self.cookies)))
        self.sent.append(body)
        told = self.script.pop(0) if self.script else {}
        if isinstance(told, Exception):
            raise told
        return answer(told, method, path)

    def close(self):
        pass


def answer(told, method="GET", path="/"):
    """Return an answer made of (status, code) or a picture's bytes, or a success with this data."""
    if isinstance(told, bytes):
        return Answer(method, path, 200, Headers(), told)
    status, code, data = (*told, None) if isinstance(told, tuple) else (200, "success", told)
    return Answer(
        method, path, status, Headers(), json.dumps({"code": code, "data": data}).encode()
    )


@pytest.fixture
def service():
    return Service()


@pytest.fixture
def bed(service):
    rt = SimpleNamespace(clock=SystemClock())
    return SimpleNamespace(client=lambda: service, rt=rt, clock_is_right_since=1.0)


def violations(actor):
    return actor.ledger.violations


def changes(actor):
    return [(action, change.is_certain) for (_, action), change in actor.ledger._changes.items()]


# --- everybody -----------------------------------------------------------------------------------


def test_every_request_has_a_user_agent_of_its_own_and_every_actor_other_dice(bed, service):
    one, two = Actor(bed, Ledger(), "one"), Actor(bed, Ledger(), "two")
    for actor in (one, two, one):
        actor.call("GET", "/")
    assert len({tag for _, _, tag, _ in service.asked}) == 3
    assert one.dice.random() != two.dice.random()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConnectionResetError(), "hung up"),
        (http.client.RemoteDisconnected(), "hung up"),
        (http.client.IncompleteRead(b""), "cut off"),
    ],
)
def test_a_connection_that_breaks_is_a_failure(bed, service, error, code):
    service.script = [error]
    actor = Actor(bed, Ledger(), "one")
    told = actor.call("POST", "/")
    assert (told.status, told.code) == (599, code)
    [failure], _ = actor.ledger.take_failures()
    assert (failure.status, failure.code, failure.actor) == (599, code, "Actor")
    assert len(service.asked) == 1


def test_but_not_one_that_was_idle(bed, service, monkeypatch):
    monkeypatch.setattr(actors, "IDLE_SECONDS", 0.0)
    service.script = [http.client.RemoteDisconnected()]
    actor = Actor(bed, Ledger(), "one")
    assert actor.call("GET", "/").status == 200


# --- signing in ----------------------------------------------------------------------------------


@pytest.fixture
def regular_user(bed):
    return RegularUser(bed, Ledger(), USER)


def test_an_unclear_password_is_tried_until_one_is_right(regular_user, service):
    regular_user.passwords = {"new", "old"}
    service.script = [WRONG, {}]
    regular_user.sign_in()
    assert regular_user.is_signed_in
    assert regular_user.passwords == {"old"}
    assert violations(regular_user) == []
    assert changes(regular_user) == [("user_login", True)]


@pytest.mark.parametrize("refusal", [WRONG, LIMITED, (403, "auth.account_disabled")])
def test_a_login_that_is_refused_is_found(regular_user, service, refusal):
    service.script = [refusal] * 2
    regular_user.sign_in()
    assert len(violations(regular_user)) == 1
    assert not regular_user.is_signed_in


def test_a_login_without_an_answer_is_no_fault(regular_user, service):
    service.script = [AWAY]
    regular_user.sign_in()
    assert violations(regular_user) == []
    assert changes(regular_user) == [("user_login", False)]


# --- RegularUser ---------------------------------------------------------------------------------


def profile(name):
    return {"profile": {"display_name": name}}


@pytest.mark.parametrize(("told", "number"), [(AWAY, 0), ((200, "success"), 1)])
def test_a_name_that_was_answered_and_is_lost(regular_user, service, told, number):
    service.script = [told, profile(None)]
    regular_user.rename()
    regular_user.look()
    assert len(violations(regular_user)) == number


@pytest.mark.parametrize(
    ("may_be_signed_out", "refusal", "number"),
    [
        (False, GONE, 1),
        (False, REUSED, 1),
        (True, GONE, 0),
        (True, REUSED, 0),
        (True, (403, "auth.account_disabled"), 1),
        (True, LIMITED, 1),
    ],
)
def test_who_is_out_needs_a_reason(regular_user, service, may_be_signed_out, refusal, number):
    regular_user.is_signed_in, regular_user.may_be_signed_out = True, may_be_signed_out
    service.script = [refusal]
    regular_user.look()
    assert len(violations(regular_user)) == number
    assert not regular_user.is_signed_in


def test_a_refresh_that_went_well_leaves_no_reason_to_be_out(regular_user, service):
    service.script = [AWAY, {}, REUSED]
    regular_user.refresh()
    assert regular_user.may_be_signed_out
    regular_user.refresh()
    assert not regular_user.may_be_signed_out
    regular_user.refresh()
    assert len(violations(regular_user)) == 1


def test_an_alarm_is_expected_where_it_was_told(regular_user, service):
    service.script = [AWAY, REUSED]
    regular_user.refresh()
    regular_user.refresh()
    assert violations(regular_user) == []
    alarm = "user_refresh_token_reuse_detected"
    assert changes(regular_user) == [(alarm, False), (alarm, True)]


def test_an_expired_access_token_is_refreshed(regular_user, service):
    service.script = [EXPIRED, {}]
    regular_user.look()
    assert [path for _, path, _, _ in service.asked] == ["/auth/me", "/auth/refresh"]
    assert violations(regular_user) == []


@pytest.mark.parametrize(("told", "number"), [([GONE, GONE], 0), ([{}, GONE], 1), ([GONE, {}], 1)])
def test_a_session_that_was_signed_out_and_lives(regular_user, service, told, number):
    service.cookies = {"service_access": "old"}
    service.script = [{}, *told]
    regular_user.sign_out()
    assert [cookies for *_, cookies in service.asked] == [{"service_access": "old"}] * 3
    assert len(violations(regular_user)) == number


@pytest.mark.parametrize(
    ("told", "number"),
    [
        ([GONE, GONE, WRONG], 0),
        ([AWAY, AWAY, AWAY], 0),
        ([{}, GONE, WRONG], 1),
        ([GONE, {}, WRONG], 1),
        ([GONE, GONE, {}], 1),
    ],
)
def test_a_password_that_was_changed_and_what_it_had_opened(regular_user, service, told, number):
    service.cookies = {"service_access": "now"}
    service.script = [{}, *told]
    regular_user.change_password()
    assert len(violations(regular_user)) == number
    assert service.cookies == {"service_access": "now"}


@pytest.mark.parametrize(("number_current", "number"), [(1, 0), (0, 1), (2, 1)])
def test_one_session_is_the_current_one(regular_user, service, number_current, number):
    service.script = [[{"is_current": n < number_current} for n in range(3)]]
    regular_user.list_sessions()
    assert len(violations(regular_user)) == number


# --- MfaUser -------------------------------------------------------------------------------------


@pytest.fixture
def mfa_user(bed, monkeypatch):
    app = Authenticator(totp.new_secret(), SystemClock())
    mfa_user = MfaUser(bed, Ledger(), USER, EnabledTotp(1, app, []))
    monkeypatch.setattr(mfa_user.stopped, "wait", lambda _: None)
    return mfa_user


BAD = (401, "auth.mfa_code_invalid")


@pytest.mark.parametrize(
    ("told", "number"),
    [
        ([MFA, {}, BAD], 0),
        ([MFA, AWAY], 0),
        ([AWAY], 0),
        ([{"status": "authenticated"}], 1),
        ([MFA, BAD], 1),
        ([MFA, {}, {}], 1),
    ],
)
def test_a_fresh_code_is_good_once(mfa_user, service, told, number):
    service.script = told
    mfa_user.step()
    assert len(violations(mfa_user)) == number
    assert service.script == []


def test_both_steps_are_of_one_attempt(mfa_user, service):
    service.script = [MFA, {}, BAD]
    mfa_user.step()
    assert len({tag for _, _, tag, _ in service.asked}) == 1
    assert changes(mfa_user) == [("user_login", True), ("user_mfa_challenge_success", True)]


@pytest.mark.parametrize("right_since", [None, 2.0])
def test_a_clock_that_is_or_was_wrong_explains_a_refusal(mfa_user, service, bed, right_since):
    service.script = [MFA, BAD]
    verify = mfa_user.verify

    def meanwhile(*arguments):
        bed.clock_is_right_since = right_since
        return verify(*arguments)

    mfa_user.verify = meanwhile
    mfa_user.step()
    assert violations(mfa_user) == []


@pytest.mark.parametrize(("roll", "is_right"), [(0.0, True), (0.9, False)])
def test_a_bad_code_that_is_accepted_is_found(mfa_user, service, clock, roll, is_right):
    """A right code the second time, and a wrong one."""
    mfa_user.app = Authenticator(mfa_user.app.secret, clock)
    mfa_user.tried_step = mfa_user.accepted_step = int(clock.now().timestamp()) // STEP_SECONDS
    mfa_user.dice = SimpleNamespace(random=lambda: roll)
    service.script = [MFA, {}]
    mfa_user.step()
    assert (service.sent[-1]["code"] == mfa_user.app.code()) == is_right
    assert len(violations(mfa_user)) == 1


# --- Registrar -----------------------------------------------------------------------------------

TAKEN = (400, "auth.username_exists")


@pytest.mark.parametrize(
    ("told", "is_true"),
    [
        ([(201, "success"), TAKEN], True),
        ([AWAY, TAKEN], True),
        ([AWAY, (201, "success")], True),
        ([(201, "success"), (201, "success")], False),
        ([TAKEN], False),
        ([AWAY, LIMITED], False),
    ],
)
def test_who_registers_is_told_the_truth(bed, service, told, is_true):
    registrar = Registrar(bed, Ledger(), 1)
    registrar.dice = SimpleNamespace(random=lambda: 0.9)  # also repeats answered registrations
    service.script = [*told, TAKEN]
    registrar.step()
    assert (not violations(registrar)) == is_true


# --- AvatarUser ----------------------------------------------------------------------------------


@pytest.fixture
def avatar_user(bed):
    avatar_user = AvatarUser(bed, Ledger(), USER)
    avatar_user.is_signed_in = True
    return avatar_user


def webp(colour):
    stream = io.BytesIO()
    Image.new("RGB", (512, 512), colour).save(stream, "WEBP")
    return stream.getvalue()


APPLIED = {"applied": True}
NONE = (404, "not_found")
NO_DISK = (500, "storage.unknown")


@pytest.mark.parametrize(
    ("uploads", "seen", "number"),
    [
        ([], NONE, 0),
        ([APPLIED], webp(images.RED), 0),
        ([APPLIED], NONE, 1),
        ([APPLIED], webp(images.BLUE), 1),
        ([AWAY], NONE, 0),
        ([AWAY], webp(images.RED), 0),
        ([NO_DISK], NONE, 0),
        ([NO_DISK], webp(images.RED), 1),
        ([APPLIED, AWAY], NONE, 1),
    ],
)
def test_a_picture_is_the_last_one_or_may_be(avatar_user, service, uploads, seen, number):
    service.script = [*uploads, seen]
    for _ in uploads:
        avatar_user.upload(images.RED)
    avatar_user.look()
    assert len(violations(avatar_user)) == number


@pytest.mark.parametrize(
    ("refusal", "number"),
    [(EXPIRED, 0), (GONE, 1), ((400, "file.type_not_allowed"), 1), (LIMITED, 1)],
)
@pytest.mark.parametrize("action", ["upload", "look"])
def test_a_picture_that_is_refused(avatar_user, service, action, refusal, number):
    service.script = [refusal]
    avatar_user.upload(images.RED) if action == "upload" else avatar_user.look()
    assert len(violations(avatar_user)) == number
    assert not avatar_user.is_signed_in


def test_an_upload_that_was_not_applied(avatar_user, service):
    service.script = [{"applied": False}]
    avatar_user.upload(images.RED)
    assert len(violations(avatar_user)) == 1


# --- Listener ------------------------------------------------------------------------------------


class Stream:
    """A stream that yields these events, one batch at a time."""

    has_ended = False

    def __init__(self, *batches):
        self.batches = iter(batches)

    def events_for(self, _seconds):
        return next(self.batches, [])


@pytest.fixture
def publisher():
    return SimpleNamespace(acknowledged=0, unclear=set())


@pytest.fixture
def listener(bed, publisher, monkeypatch):
    """A listener whose clock advances a second with every look."""
    listener = Listener(bed, Ledger(), USER, publisher, patience=5.0)
    seconds = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(seconds))
    monkeypatch.setattr("deploy.bed.actors.listener.time", clock)
    return listener


def event(number):
    return {"kind": "file.created", "file_ids": [number]}


SYNC = {"kind": "sync.required"}


def hear(listener, *batches):
    listener._stream = Stream(*batches)
    for _ in range(12):
        listener._publisher.acknowledged += 1
        listener.step()
    return violations(listener)


def test_a_stream_that_tells_everything(listener):
    assert hear(listener, *([event(n)] for n in range(1, 13))) == []
    assert listener.progress == 12


@pytest.mark.parametrize("event", [[], [SYNC]])
def test_a_stream_that_is_open_and_tells_nothing(listener, event):
    violation = hear(listener, *[event] * 12)[0]
    assert "has not heard 1" in violation


@pytest.mark.parametrize("has_sync", [False, True])
def test_a_gap_is_told(listener, publisher, has_sync):
    batches = [[event(n)] for n in range(1, 13) if n != 3]
    if has_sync:
        batches[4].append(SYNC)
    found = hear(listener, *batches)
    assert [what for what in found if "gap" in what] == found
    assert bool(found) != has_sync


def test_what_perhaps_was_not_published_is_no_gap(listener, publisher):
    publisher.unclear = {3}
    assert hear(listener, *([event(n)] for n in range(1, 13) if n != 3)) == []


def test_an_event_that_comes_twice(listener):
    [violation] = hear(listener, *([event(n)] for n in (1, 2, 2, *range(3, 13))))
    assert "heard 2 after 2" in violation
