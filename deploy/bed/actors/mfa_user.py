"""A user with a second factor."""

from app.audit.models import Action
from deploy.bed.actors.actor import AccountHolder
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger
from tests.support.api import Answer
from tests.support.authenticator import STEP_SECONDS, EnabledTotp
from tests.support.factories import KnownUser


class MfaUser(AccountHolder):
    """Signs in with a second factor; also tries wrong codes, and replays right ones."""

    def __init__(self, bed: Bed, ledger: Ledger, user: KnownUser, enabled: EnabledTotp) -> None:
        super().__init__(bed, ledger, user)
        self.app = enabled.app
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
        answer = self.verify(flow_token, code, tag)
        if answer.status < 400 or answer.status >= 500:
            self.record_change(
                tag, Action.USER_MFA_CHALLENGE_SUCCESS, is_certain=answer.status < 400
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
        answer = self.verify(flow_token, code, tag)
        self.check(answer.status >= 400, f"a bad code or login was accepted: {answer}")
        self.stopped.wait(0.1)

    def verify(self, flow_token: str, code: str, tag: str) -> Answer:
        """Do the second step."""
        body = {"flow_token": flow_token, "method": "totp", "code": code}
        return self.call("POST", "/auth/mfa/challenge/verify", body, tag=tag)
