"""Opens a login awaiting its second factor for every account: `python -m bench.pending_mfa CODES`.

Runs in the service's environment. All bench accounts get the same TOTP secret and the same CODES
recovery codes. Prints one line of JSON: the flow tokens, the current TOTP code and the last
recovery code.
"""

import json
import os
import sys
from typing import Any

import pyotp
import sqlalchemy as sa

from app.core.client import Client
from app.core.config import Config
from app.core.runtime import Runtime
from app.factory import create_app
from app.login.mfa_login import FirstFactorKind, open_login
from app.mfa import recovery_codes, totp
from app.mfa.models import MfaFactor, MfaMethod, MfaRecoveryCode
from app.mfa.service import secret_row_name
from app.users import queries as users_queries
from app.users.models import Account
from app.web.runtime import EXTENSION
from bench.accounts import USERNAME_PREFIX


def main() -> None:
    """Prepare the accounts and their logins, and print the result."""
    code_count = int(sys.argv[1])
    rt: Runtime = create_app(Config.from_env(os.environ)).extensions[EXTENSION]
    with rt.reading() as connection:
        everyone = users_queries.list_accounts(connection)
    accounts = [account for account in everyone if account.username.startswith(USERNAME_PREFIX)]
    secret = totp.new_secret()
    codes = recovery_codes.new_codes()[:code_count]
    _give_factors(rt, accounts, secret, codes)
    client = Client("127.0.0.1", "bench")
    tokens = [open_login(rt, a, FirstFactorKind.PASSWORD, client)[0] for a in accounts]
    code = pyotp.TOTP(secret).at(rt.clock.now())
    print(json.dumps({"tokens": tokens, "totp": code, "recovery_code": (codes or [""])[-1]}))
    rt.close()


def _give_factors(rt: Runtime, accounts: list[Account], secret: str, codes: list[str]) -> None:
    """Give each account its factor and codes, replacing those of the last run."""
    now, box = rt.clock.now(), rt.secret_box
    factors: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for account in accounts:
        sealed = box.seal(secret, secret_row_name(account.id))
        factors.append(
            {
                "user_id": account.id,
                "method": MfaMethod.TOTP,
                "name": "bench",
                "secret": sealed,
                "enabled_at": now,
            }
        )
        rows += [
            {"user_id": account.id, "code_hash": recovery_codes.hash_code(box, account.id, code)}
            for code in codes
        ]
    with rt.transaction() as session:
        for model in (MfaFactor, MfaRecoveryCode):
            session.execute(sa.delete(model))
        session.execute(sa.insert(MfaFactor), factors)
        if rows:
            session.execute(sa.insert(MfaRecoveryCode), rows)


if __name__ == "__main__":
    main()
