"""What the owner of an account is told by mail about its links to identity providers.

Of an identity only its provider is named: whoever took over a session must not choose words that a
mail of this service says.
"""


def linked(provider: str) -> str:
    """Return the sentence for a new link; `provider` is the name people know it by."""
    return f"A sign-in with {provider} was added. It can be used to sign in without a password."


def unlinked(provider: str) -> str:
    """Return the sentence for a link that was removed."""
    return f"A sign-in with {provider} was removed. It cannot be used to sign in any more."
