"""People who sign in with codes; none may let anybody in twice."""

import queue
import re
import time

from app.audit.models import Action
from deploy.bed.actors.actor import AccountHolder
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger
from tests.support.api import Answer
from tests.support.authenticator import STEP_SECONDS
from tests.support.email_code import FINISH, START
from tests.support.factories import configure
from tests.support.mailbox import text_of
from tests.support.smtp import ReceivedMail, RecordingSmtpServer

CODE = re.compile(r"^(\d{8})$", re.MULTILINE)
# How long to wait for a mail, which is less than a storm allows for recovery, and how late it may
# still come: the mail that a killed worker was sending is left to another, which waits for longer
# than any attempt takes.
MAIL_SECONDS = 3.0
LATE_SECONDS = 180.0
# From how many steps on one must have let it in.
ENOUGH_STEPS = 10
# The pause between two mails, which is the shortest there is, and a little more.
PAUSE_SECONDS = 1
PAUSED_SECONDS = 1.2
# Codes that were accepted, to be tried again.
MOST_SPENT = 20
TRIES = 3


class MfaUser(AccountHolder):
    """Signs in with a second factor; also tries wrong codes, and replays right ones."""

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger)
        self.app = bed.give_totp(self.user)
        # The last time step whose code was tried, and the last whose code was accepted.
        self.tried_step = self.accepted_step = 0

    def step(self) -> None:
        """Sign in with the current code if it was not tried yet, else with a bad one."""
        tag, right_since = self.new_tag(), self.bed.clock_is_right_since
        answer = self.sign_in(tag)
        if answer.status != 200:
            return
        if answer.data["status"] != "mfa_required":
            self.check(holds=False, what=f"no second factor: {answer}")
            return
        flow_token, now = answer.data["flow_token"], self.app.clock.now()
        step, code = int(now.timestamp()) // STEP_SECONDS, self.app.at(now)
        if step <= self.tried_step:
            again = step == self.accepted_step and self.dice.random() < 0.5
            self.try_bad(flow_token, code if again else self.app.wrong_code(), tag)
            return
        self.tried_step = step
        answer = self.change(
            Action.USER_MFA_CHALLENGE_SUCCESS, *_verification(flow_token, code), tag=tag
        )
        if answer.status == 200:
            self.accepted_step = step
            self.try_bad(flow_token, code, tag)
        elif answer.status < 500:
            # The current code may only be refused while the service's clock is wrong.
            was_right = right_since is not None and right_since == self.bed.clock_is_right_since
            self.check(not was_right, f"a right code was refused: {answer}")

    def try_bad(self, flow_token: str, code: str, tag: str) -> None:
        """Try a code or a login that is not valid, or no longer."""
        answer = self.call(*_verification(flow_token, code), tag=tag)
        self.check(answer.status >= 400, f"a bad code or login was accepted: {answer}")
        self.stopped.wait(0.1)


def _verification(flow_token: str, code: str) -> tuple[str, str, dict[str, str]]:
    body = {"flow_token": flow_token, "method": "totp", "code": code}
    return "POST", "/auth/mfa/challenge/verify", body


class MailedCodeUser(AccountHolder):
    """Signs in with codes by e-mail, again and again with the same ones.

    All tries of one code have one tag: had two of them succeeded, the audit log would show it even
    if only one was answered.
    """

    def __init__(self, bed: Bed, ledger: Ledger) -> None:
        super().__init__(bed, ledger)
        self._codes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._server = RecordingSmtpServer(on_mail=self._receive)
        self._server.__enter__()
        configure(
            bed.rt,
            mail_smtp_host="127.0.0.1",
            mail_smtp_port=self._server.port,
            mail_security=False,
            mail_from_address="accounts@example.com",
        )
        configure(
            bed.rt,
            auth_email_code_sign_in_enabled=True,
            auth_email_code_login_resend_cooldown_secs=PAUSE_SECONDS,
        )
        # The instances follow the settings within a second.
        self._is_open = False
        # Until when a mail may come that an earlier sign-in has not waited for (monotonic seconds).
        self._late_until = 0.0
        self._seen: set[str] = set()
        self.accepted = 0
        # The last accepted: flow token, code, tag.
        self.spent: list[tuple[str, str, str]] = []

    def _receive(self, mail: ReceivedMail) -> None:
        self._server.received.clear()  # an hour has many
        if self.user.email not in mail.recipients:
            return
        # A mail may come twice.
        for code in set(CODE.findall(text_of(mail.message))) - self._seen:
            self._seen.add(code)
            self._codes.put(code)

    def step(self) -> None:
        """Sign in with a new code, or try one that was accepted before."""
        if self.spent and self.dice.random() < 0.5:
            self.try_again(*self.dice.choice(self.spent))
        else:
            self.sign_in_by_code()

    def sign_in_by_code(self) -> None:
        """Ask for a code, wait for the mail with it, and type it."""
        right_since = self.bed.clock_is_right_since
        answer = self.call("POST", START, {"email": self.user.email})
        self._is_open |= answer.status == 200
        if answer.status != 200:
            self.check(answer.status >= 500 or not self._is_open, f"gets no code: {answer}")
            self.expect_late()
            self.stopped.wait(0.1)
            return
        flow_token, code = answer.data["flow_token"], self._mailed()
        if code is None:
            self.expect_late()
            return
        answer = self.finish(flow_token, code)
        if 400 <= answer.status < 500:
            was_right = right_since is not None and right_since == self.bed.clock_is_right_since
            is_other = time.monotonic() < self._late_until
            self.check(not was_right or is_other, f"a right code was refused: {answer}")
        self.stopped.wait(PAUSED_SECONDS)

    def expect_late(self) -> None:
        """Remember that a mail may come that fits no later sign-in."""
        self._late_until = time.monotonic() + LATE_SECONDS

    def finish(self, flow_token: str, code: str) -> Answer:
        """Type a code until it is judged; return the first answer, or the one that let in."""
        body, tag = {"flow_token": flow_token, "code": code}, self.new_tag()
        answers: list[Answer] = []
        for _ in range(TRIES):
            answer = self.change(Action.USER_EMAIL_CODE_SIGN_IN, "POST", FINISH, body, tag=tag)
            answers.append(answer)
            if answer.status == 200:
                self.accepted += 1
                self.spent = [*self.spent[1 - MOST_SPENT :], (flow_token, code, tag)]
                self.try_again(flow_token, code, tag)
                return answer
            if answer.status < 500 or self.stopped.is_set():
                break
        # A try without an answer may have spent the code: then a refusal of the next says nothing.
        return answers[0]

    def try_again(self, flow_token: str, code: str, tag: str) -> None:
        """Try a code that has already let somebody in."""
        answer = self.call("POST", FINISH, {"flow_token": flow_token, "code": code}, tag=tag)
        self.check(answer.status >= 400, f"a code was accepted twice: {answer}")
        self.forget()
        self.stopped.wait(0.1)

    def _mailed(self) -> str | None:
        """Return the code of the next mail; None if it takes too long."""
        until = time.monotonic() + MAIL_SECONDS
        while time.monotonic() < until and not self.stopped.is_set():
            try:
                return self._codes.get(timeout=0.2)
            except queue.Empty:
                continue
        return None

    def close(self) -> None:
        super().close()
        self._server.__exit__()

    def compare(self) -> None:
        """Complain if no code was ever accepted, unless the run was short."""
        self.check(self.accepted > 0 or self.steps < ENOUGH_STEPS, "was never let in with a code")
