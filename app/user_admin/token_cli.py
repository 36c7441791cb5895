"""`flask tokens`: what people give to programs that are to act for them."""

import click

from app.access_tokens.models import AccessToken
from app.access_tokens.schemas import CreatedTokenData, TokenInfo
from app.access_tokens.service import longest_life
from app.core.access import COMMAND_LINE, Scope
from app.user_admin import tokens
from app.users.cli import user_argument
from app.web.cli import Commands, Output, Word, sentence, table
from app.web.runtime import runtime
from app.web.schema import INT64

group = Commands("tokens", help="Access tokens, by which programs act for accounts.")


@group.command("list")
@user_argument
def list_tokens(user: str) -> Output:
    """List the access tokens of USER, newest first; expired ones for 30 days."""
    data = TokenInfo(many=True).dump(tokens.list_of(runtime(), user))
    shown = "id", "name", "prefix", "scopes", "expires_at", "last_used_at"
    rows = [[one[name] for name in shown] for one in data]
    return Output(data, table(["ID", "NAME", "PREFIX", "SCOPES", "EXPIRES", "LAST USED"], rows))


@group.command("create")
@user_argument
@click.option("--name", required=True, help="What the owner knows it by, such as the program.")
@click.option(
    "--scope",
    "scopes",
    type=Word(Scope),
    multiple=True,
    required=True,
    metavar="SCOPE",
    help=f"What it opens: {', '.join(Scope)}. Repeat it for several.",
)
@click.option(
    "--days",
    type=int,
    help="How long it is valid; by default as long as auth_access_token_max_days allows.",
)
def create(user: str, name: str, scopes: tuple[str, ...], days: int | None) -> Output:
    """Make an access token for USER, who is told by mail, and print it: only this once."""
    rt = runtime()
    text, token = tokens.create(
        rt,
        COMMAND_LINE,
        user,
        name=name,
        scopes=[Scope(scope) for scope in scopes],
        days=days if days is not None else longest_life(rt),
    )
    return Output(CreatedTokenData().dump({"token": text, "info": token}), text)


@group.command("revoke")
@click.argument("token_id", metavar="ID", type=click.IntRange(1, INT64 - 1))
def revoke(token_id: int) -> Output:
    """Remove the access token ID, whose owner is told by mail; it opens nothing from now on."""
    removed = tokens.remove_any(runtime(), COMMAND_LINE, token_id)
    return _token(removed, "was removed")


def _token(token: AccessToken, what: str) -> Output:
    return sentence(TokenInfo().dump(token), token.name, token.id, what)
