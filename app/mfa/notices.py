"""Notices mailed to an account's owner about its second factors."""

from enum import StrEnum


class Notice(StrEnum):
    """An event; its value is the sentence in the mail."""

    FACTOR_ADDED = "An authenticator app was added. Signing in now also asks for its code."
    FACTOR_REMOVED = (
        "The authenticator app was removed, and the recovery codes with it. "
        "Signing in no longer asks for a code of the app."
    )
    RECOVERY_CODE_USED = "One of your recovery codes was just used. It cannot be used again."
    RECOVERY_CODES_REGENERATED = (
        "New recovery codes were made. The old ones cannot be used any more."
    )
