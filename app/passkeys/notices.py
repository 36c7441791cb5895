"""What the owner of an account is told by mail about its passkeys."""

from enum import StrEnum


class Notice(StrEnum):
    """An event; its value is the sentence in the mail.

    Names of passkeys are left out: whoever took over a session must not choose words that a mail
    of this service says.
    """

    ADDED = "A passkey was added. It can be used to sign in without a password."
    REMOVED = "A passkey was removed. It cannot be used to sign in any more."
