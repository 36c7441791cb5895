"""Notices mailed to an account's owner about its passkeys."""

from enum import StrEnum


class Notice(StrEnum):
    """An event; its value is the sentence in the mail.

    Passkey names are left out, so that a hijacked session cannot put text of its choice into a mail
    from this service.
    """

    ADDED = "A passkey was added. It can be used to sign in without a password."
    REMOVED = "A passkey was removed. It cannot be used to sign in any more."
