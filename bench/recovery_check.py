"""Measures the check of a recovery code in isolation: `python -m bench.recovery_check CODES`.

Runs in the service's environment, on an account that `bench.pending_mfa` has given CODES codes.
Prints one line of JSON: CPU milliseconds of this process per check of a code that matches none,
including the read of the stored codes.
"""

import json
import os
import sys
import time
from contextlib import suppress

from app.core.config import Config
from app.core.runtime import Runtime
from app.factory import create_app
from app.mfa import queries, service
from app.mfa.errors import MfaCodeInvalid
from app.users import identifiers
from app.users import queries as users_queries
from app.web.runtime import EXTENSION
from bench.accounts import username

CHECKS = 2000
WARMUP_CHECKS = 200
WRONG = "AAAA-BBBB-CCCC"


def main() -> None:
    """Measure what the command line asks for."""
    code_count = int(sys.argv[1])
    rt: Runtime = create_app(Config.from_env(os.environ)).extensions[EXTENSION]
    account = users_queries.look_up_identifier(rt.database, identifiers.identifier(username(1)))
    if account is None or len(queries.list_codes(rt.database, account.id)) != code_count:
        raise SystemExit(f"no account with {code_count} recovery codes")
    _check(rt, account.id, WARMUP_CHECKS)
    began = time.process_time()
    _check(rt, account.id, CHECKS)
    print(json.dumps({"cpu_ms": (time.process_time() - began) * 1000 / CHECKS}))
    rt.close()


def _check(rt: Runtime, user_id: int, times: int) -> None:
    for _ in range(times):
        with suppress(MfaCodeInvalid):
            service.check_recovery_code(rt, user_id, WRONG)


if __name__ == "__main__":
    main()
