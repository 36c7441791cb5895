"""Mailing a code for a pending login."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from redis.exceptions import RedisError

from app.audit.models import Action
from app.core.client import Client
from app.core.runtime import Runtime
from app.login.mfa_login import get_login, unchanged_account
from app.login.second_step import SecondStep, record
from app.mail import service as mail
from app.mail.errors import MailNotConfigured
from app.mail.templates import LANGUAGE, Template
from app.mfa import email_codes
from app.mfa import service as mfa
from app.mfa.errors import MfaFactorRequired, MfaFlowInvalid
from app.mfa.models import MfaMethod
from app.profile import preferences
from app.settings import keys


@dataclass(frozen=True)
class EmailCodeSent:
    """How long the code is valid, and when another one can be sent, in seconds."""

    expires_in: int
    resend_after: int


def send(rt: Runtime, *, flow_token: str, client: Client) -> EmailCodeSent:
    """Mail a code for a pending login, synchronously; earlier codes become void.

    A mail that cannot be sent leaves no cooldown.
    Raises: MfaFlowInvalid, MailNotConfigured, MfaFlowExpired, AccountDisabled, PendingActivation,
    MfaFactorRequired, RateLimited during the cooldown, MailDeliveryFailed.
    """
    if not flow_token.strip():
        raise MfaFlowInvalid
    if not rt.settings.get(keys.EMAIL_CODE_LOGIN_ENABLED) or not mail.is_smtp_configured(rt):
        raise MailNotConfigured
    login = get_login(rt, flow_token)
    account = unchanged_account(rt, login)
    if MfaMethod.EMAIL_CODE not in mfa.methods(rt, account):
        raise MfaFactorRequired
    life = timedelta(seconds=rt.settings.get(keys.EMAIL_CODE_TTL_SECONDS))
    cooldown = timedelta(seconds=rt.settings.get(keys.EMAIL_CODE_COOLDOWN_SECONDS))
    new = email_codes.issue(rt, account, login.flow, life=life, cooldown=cooldown)
    expires_in = max(1, int(new.life.total_seconds()))
    variables = {
        "username": account.username,
        "lang": preferences.language(account.preferences) or LANGUAGE,
        "expires_in": mail.exact_duration(expires_in),
        "good_for": mail.rounded_duration(expires_in),
    }
    try:
        mail.send_now(rt, Template.LOGIN_EMAIL_CODE, account.email, code=new.code, **variables)
    except BaseException:
        with suppress(RedisError):  # then the cooldown remains
            email_codes.delete(rt, new)
        raise
    sent = EmailCodeSent(expires_in, int(cooldown.total_seconds()))
    record(
        rt,
        SecondStep(login, account, MfaMethod.EMAIL_CODE, client),
        Action.USER_MFA_EMAIL_CODE_SEND,
        expires_in=sent.expires_in,
        resend_after=sent.resend_after,
    )
    return sent
