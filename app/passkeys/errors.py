"""Errors of passkeys."""

from collections.abc import Mapping
from typing import ClassVar

from app.core.access import (
    AccountDisabled,
    PendingActivation,
)
from app.core.errors import BadRequest, ErrorCode, Forbidden, NotFound, Unauthenticated


class PublicSiteUrlRequired(BadRequest):
    """The site's address is not set, and a passkey belongs to a site."""

    code = ErrorCode.CONFIG_PUBLIC_SITE_URL_REQUIRED
    message = "Passkeys need public_site_url to be set."


class PublicSiteUrlInvalid(BadRequest):
    """No browser offers passkeys at the site's address."""

    code = ErrorCode.CONFIG_PUBLIC_SITE_URL_INVALID
    message = "For passkeys, public_site_url must begin with an https address that has a host name."


class PasskeyLoginDisabled(Forbidden):
    """Signing in with passkeys is switched off for this installation."""

    code = ErrorCode.AUTH_PASSKEY_LOGIN_DISABLED
    message = "Passkey login is disabled."


class FlowInvalid(Unauthenticated):
    """There is no such flow, or no longer; the session is not affected."""

    code = ErrorCode.AUTH_TOKEN_INVALID
    message = "The passkey request is no longer valid. Start again."


class FlowOfAnotherAccount(Forbidden):
    """The registration was started by somebody else."""

    message = "This registration belongs to another account."


class CredentialMalformed(BadRequest):
    """What was sent cannot be read as a WebAuthn credential."""

    message = "The credential is not valid."


class CredentialTaken(BadRequest):
    """The credential is already registered, to whichever account."""

    message = "This passkey is already registered."


class PasskeyRefused(Unauthenticated):
    """The ceremony proves nothing; the answer never says why."""

    code = ErrorCode.AUTH_CREDENTIALS_FAILED
    message = "The passkey was not accepted."


class PasskeyUnknown(PasskeyRefused):
    """No account has this credential: pages tell the browser, which stops offering it."""

    data: ClassVar[Mapping[str, bool]] = {"credential_unknown": True}


class PasskeyNotDiscoverable(BadRequest):
    """The authenticator could not store the credential as a discoverable one."""

    code = ErrorCode.PASSKEY_NOT_DISCOVERABLE
    message = "The authenticator did not create a discoverable passkey."


class PasskeyNameTooLong(BadRequest):
    """The name is too long."""

    code = ErrorCode.PASSKEY_NAME_TOO_LONG
    message = "The name must have at most 128 characters."


class PasskeyNameInvalid(BadRequest):
    """The name has characters that cannot be shown."""

    code = ErrorCode.PASSKEY_NAME_INVALID
    message = "The name must not contain control characters."


class PasskeyNotFound(NotFound):
    """No passkey of this account has this id."""

    message = "There is no such passkey."


SITE = (PublicSiteUrlRequired, PublicSiteUrlInvalid)
NAME = (PasskeyNameTooLong, PasskeyNameInvalid)
START_REGISTRATION = (*SITE, *NAME)
FINISH_REGISTRATION = (
    *SITE,
    FlowInvalid,
    FlowOfAnotherAccount,
    CredentialMalformed,
    PasskeyNotDiscoverable,
    PasskeyRefused,
    CredentialTaken,
    *NAME,
)
START_LOGIN = (PasskeyLoginDisabled, *SITE)
FINISH_LOGIN = (
    PasskeyLoginDisabled,
    *SITE,
    FlowInvalid,
    CredentialMalformed,
    PasskeyRefused,
    PasskeyUnknown,
    AccountDisabled,
    PendingActivation,
)
