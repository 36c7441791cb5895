"""What the pages of tokens know by themselves, and the service as well."""

import re
from pathlib import Path

import pytest

from app.access_tokens.models import MAX_NAME_LENGTH
from app.access_tokens.service import MAX_DAYS, MAX_TOKENS
from app.core.access import Scope
from app.settings import keys

SCRIPTS = Path(__file__).parents[2] / "app/pages/static/account"


@pytest.mark.parametrize(
    ("script", "name", "value"),
    [
        ("tokens.js", "MOST", MAX_TOKENS),
        ("new_token.js", "NAME_LENGTH", MAX_NAME_LENGTH),
        ("token_end.js", "MOST", MAX_DAYS),
        ("token_end.js", "MOST", keys.ACCESS_TOKEN_MAX_DAYS.maximum),
    ],
)
def test_the_pages_know_the_limits(script, name, value):
    assert f"const {name} = {value};" in (SCRIPTS / script).read_text()


def test_the_page_offers_every_scope():
    areas = re.findall(r"^  \w+: \[(.*)\],$", (SCRIPTS / "token_scopes.js").read_text(), re.M)
    offered = [scope for area in areas for scope in re.findall(r'"(.+?)"', area)]
    assert sorted(offered) == sorted(Scope)
