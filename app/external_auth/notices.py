"""Sentences for the mails that tell an account's owner about links to identity providers.

They name the provider but nothing of the identity: whoever took over a session must not be able to
choose words that appear in a mail from this service.
"""


def linked(provider: str) -> str:
    """Return the sentence for a new link; `provider` is the provider's display name."""
    return f"A sign-in with {provider} was added. It can be used to sign in without a password."


def unlinked(provider: str) -> str:
    """Return the sentence for a link that was removed."""
    return f"A sign-in with {provider} was removed. It cannot be used to sign in any more."
