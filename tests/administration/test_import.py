"""`flask users import`, and logins with the hashes that it brings."""

import base64
import hashlib
import itertools
import json

import bcrypt
import pytest
import sqlalchemy as sa
from argon2 import PasswordHasher
from argon2.low_level import Type
from passlib.hash import django_bcrypt_sha256, django_pbkdf2_sha256, pbkdf2_sha512

from app.crypto import foreign_hashes
from app.crypto import passwords as passwords_module
from app.crypto.foreign_hashes import checked, head_of, sample_of
from app.crypto.passwords import normalized
from app.users.models import PasswordHashKind, User
from bench.foreign_hashes import PASSWORD, VECTORS
from tests.support.api import ApiClient
from tests.support.factories import audit_rows, change_user, count

B64 = "c2FsdHNhbHRzYWx0c2FsdA"
ANNS = {"name": "Ann", "address": "Ann@Example.com", "verified": True}


def b64(data):
    return base64.b64encode(data).decode().rstrip("=")


def scrypt_of_better_auth():
    """Convert `salt:key` as docs/operations.md says."""
    salt = "0123456789abcdef0123456789abcdef"
    key = hashlib.scrypt(
        PASSWORD.encode(), salt=salt.encode(), n=2**14, r=16, p=1, dklen=64, maxmem=2**26
    )
    return f"$scrypt$ln=14,r=16,p=1${b64(salt.encode())}${b64(key[:32])}"


def pbkdf2_of_keycloak():
    """Convert salt and value as docs/operations.md says."""
    salt = b"sixteen bytes >?"
    value = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), salt, 1000, 64)
    converted = [b64(part).replace("+", ".") for part in (salt, value[:32])]
    return f"$pbkdf2-sha256$1000${converted[0]}${converted[1]}"


def bcrypted(password, ident="2b"):
    made = bcrypt.hashpw(password.encode()[:72], bcrypt.gensalt(4)).decode()
    return made.replace("$2b$", f"${ident}$")


def argon2(variant):
    return PasswordHasher(time_cost=2, memory_cost=64, parallelism=2, type=variant).hash(PASSWORD)


def passwords_of(rt, *keys):
    """Return the stored hashes of these accounts."""
    with rt.reading() as session:
        chosen = User.username_key.in_(keys)
        return list(session.scalars(sa.select(User.password_hash).where(chosen)))


HASHES = {
    "bcrypt": lambda: bcrypted(PASSWORD),
    "bcrypt of PHP": lambda: bcrypted(PASSWORD, "2y"),
    "bcrypt of Django": lambda: f"bcrypt${bcrypted(PASSWORD)}",
    "bcrypt_sha256 of Django": lambda: django_bcrypt_sha256.using(rounds=4).hash(PASSWORD),
    "PBKDF2 of Django": lambda: django_pbkdf2_sha256.using(rounds=1000).hash(PASSWORD),
    "PBKDF2": lambda: pbkdf2_sha512.using(rounds=1000).hash(PASSWORD),
    "PBKDF2 of Keycloak": pbkdf2_of_keycloak,
    "scrypt of better-auth": scrypt_of_better_auth,
    "Argon2i": lambda: argon2(Type.I),
    "Argon2 of Django": lambda: f"argon2{argon2(Type.ID)}",
}


@pytest.fixture
def file(tmp_path):
    """Write lines into a file; return its name."""

    def write(*lines):
        path = tmp_path / "accounts.jsonl"
        texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
        path.write_text("\n".join(texts) + "\n", "utf-8")
        return str(path)

    return write


@pytest.fixture
def imported(line, admin, file):
    """Import lines; return the report."""
    return lambda *lines: line.json("users", "import", file(*lines))


@pytest.mark.parametrize("kind", HASHES)
def test_a_password_goes_on_working_and_gets_a_hash_of_ours(rt, api, imported, kind):
    report = imported({**ANNS, "hash": HASHES[kind]()})
    assert (report["created"], report["existing"], report["refused"]) == (1, 0, [])
    api.login("ann@example.com", "a wrong password").fails(401, "auth.credentials_failed")
    api.login("Ann", PASSWORD).ok()
    me = api.me().ok()
    assert (me["username"], me["email"], me["email_verified"], me["role"]) == (
        *("Ann", "ann@example.com", True),
        "user",
    )
    [stored] = passwords_of(rt, "ann")
    assert stored.startswith("$argon2id$v=19$m=")
    assert stored.count("$") == rt.passwords.hash("any").count("$")
    assert rt.passwords.check(PASSWORD, stored).new_hash is None
    api.login("Ann", PASSWORD).ok()


def test_a_password_longer_than_bcrypt_reads_works(api, imported):
    imported({**ANNS, "hash": bcrypted("x" * 100)})
    api.login("Ann", "x" * 71).fails(401, "auth.credentials_failed")
    api.login("Ann", "x" * 100).ok()
    api.login("Ann", "x" * 100).ok()


def test_a_password_that_the_other_service_did_not_normalise_works(api, imported):
    typed = "\N{LATIN SMALL LIGATURE FI}ne and \N{KELVIN SIGN}elvin"
    imported({**ANNS, "hash": django_pbkdf2_sha256.using(rounds=1000).hash(typed)})
    api.login("Ann", typed).ok()
    api.login("Ann", typed).ok()


def test_what_a_line_may_leave_out(rt, imported, api):
    imported({"name": "ann", "address": "ann@example.com"})
    [row] = audit_rows(rt, "admin_create_user")
    assert row.details == '{"role": "user", "imported": true}'
    assert passwords_of(rt, "ann") == [None]
    api.login("ann", PASSWORD).fails(401, "auth.credentials_failed")


def test_a_bad_line_is_named_and_stops_no_other(rt, line, admin, file):
    secret = HASHES["PBKDF2"]()
    lines = [
        {**ANNS, "hash": secret},
        "{",
        "[1]",
        {"name": "bob", "address": "bob@example.com", "hahs": secret},
        {"name": "bob", "address": "nowhere"},
        {"name": "b", "address": "bob@example.com"},
        {"name": "bob", "address": "bob@example.com", "role": "king"},
        "",
        {"name": "bob", "address": "bob@example.com", "hash": "plain"},
        {"name": "ann", "address": "other@example.com"},
        {"name": "other", "address": "ann@example.com"},
        {"name": admin.username, "address": "other@example.com"},
        {"name": "bob", "address": "bob@example.com", "verified": "yes"},
        {"name": "carol", "address": "carol@example.com", "role": "admin"},
    ]
    result = line("users", "import", file(*lines), "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (report["created"], report["existing"]) == (2, 0)
    assert [one["line"] for one in report["refused"]] == [2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13]
    codes = {one["line"]: one["code"] for one in report["refused"]}
    assert (codes[2], codes[10], codes[11]) == (
        "bad_request",
        "auth.username_exists",
        "auth.email_exists",
    )
    assert secret not in result.stdout
    assert count(rt, User) == 3
    text = line("users", "import", file(*lines))
    assert (text.exit_code, text.stderr) == (1, "")
    assert "4     hahs: Unknown field." in text.stdout
    assert text.stdout.endswith("0 accounts created; 2 exist already; 11 lines refused\n")


def test_an_import_that_was_interrupted_goes_on(rt, api, imported):
    batches = [
        {"name": f"user-{n}", "address": f"u{n}@example.com", "hash": HASHES["PBKDF2"]()}
        for n in range(3)
    ]
    assert imported(*batches[:2])["created"] == 2
    api.login("user-0", PASSWORD).ok()
    renewed = passwords_of(rt, "user-0")
    assert imported(*batches, batches[2]) == {
        "created": 1,
        "formats": {"PBKDF2": 1},
        "existing": 3,
        "refused": [],
    }
    assert passwords_of(rt, "user-0") == renewed


def test_a_dry_run_says_the_same_and_does_nothing(rt, line, admin, file):
    lines = [ANNS, ANNS, {"name": "ann", "address": "x@example.com"}, "{"]
    name = file(*lines)
    before = audit_rows(rt)
    [dry, real] = [
        json.loads(line("users", "import", name, *options, "--json").stdout)
        for options in (["--dry-run"], [])
    ]
    assert dry == real
    assert (dry["created"], dry["existing"], len(dry["refused"])) == (1, 1, 2)
    assert len(audit_rows(rt)) == len(before) + 1


def test_standard_input_is_a_file_too(line, admin):
    text = line("users", "import", "-", stdin=json.dumps(ANNS)).text
    assert text == "1 account created; 0 exist already; 0 lines refused"


def test_nothing_is_imported_before_there_is_an_administrator(line, file):
    code = "validation.system_not_initialized"
    line.refuses(code, "users", "import", file(ANNS))


def test_an_address_that_somebody_changes_to_is_taken(rt, user, imported, line, file):
    change_user(rt, user, pending_email="ann@example.com")
    result = line("users", "import", file(ANNS), "--json")
    assert json.loads(result.stdout)["refused"][0]["code"] == "auth.email_exists"


@pytest.mark.parametrize(
    "costly",
    [
        "$2b$31$5BJqKfqMQvV7nS.yUguNcueVirQqDBGaLXSqj.rs.pZPlNR0UX/HK",
        "$2b$16$5BJqKfqMQvV7nS.yUguNcueVirQqDBGaLXSqj.rs.pZPlNR0UX/HK",
        "bcrypt_sha256$$2b$31$5BJqKfqMQvV7nS.yUguNcueVirQqDBGaLXSqj.rs.pZPlNR0UX/HK",
        f"$scrypt$ln=30,r=8,p=1${B64}${'A' * 43}",
        f"$scrypt$ln=14,r=8,p=100000${B64}${'A' * 43}",
        f"$scrypt$ln=4,r=100000000,p=1${B64}${'A' * 43}",
        f"pbkdf2_sha256$99999999${B64}${'A' * 43}=",
        f"$pbkdf2-sha512$99999999${B64}${'A' * 86}",
        f"$argon2id$v=19$m=4194304,t=1,p=1${B64}${B64}",
        f"$argon2id$v=19$m=65536,t=1000000,p=1${B64}${B64}",
        f"argon2$argon2id$v=19$m=65536,t=3,p=255${B64}${B64}",
    ],
)
def test_a_hash_that_takes_too_long_is_refused(costly):
    with pytest.raises(ValueError, match="costs too much"):
        checked(costly)


@pytest.mark.parametrize(
    "unusable",
    [
        *("", "plain", "5f4dcc3b5aa765d61d8327deb882cf99", "$1$salt$abc", "!", "$2b$12$short"),
        "$2x$05$5BJqKfqMQvV7nS.yUguNcueVirQqDBGaLXSqj.rs.pZPlNR0UX/HK",
        f"$argon2id$v=19$m=64,t=1,p=1${B64}",
        f"$pbkdf2-sha512$1000${B64}",
        f"$pbkdf2-sha512$1000${'A' * 300}${'A' * 86}",
        f"pbkdf2_sha256$-5${B64}${'A' * 43}=",
        "argon2$argon2",
        "bcrypt$$2",
    ],
)
def test_what_is_no_hash_is_refused(unusable):
    with pytest.raises(ValueError, match=r"^is (of no kind|no complete hash|longer than)"):
        checked(unusable)


# --- what a refusal costs ------------------------------------------------------------------------

# Pretended, in any unit; the longest of these that fits counts.
UNITS = {
    "$argon2": 20,
    "$2": 90,
    "$wp$2": 92,
    "bcrypt_sha256": 120,
    "$bcrypt-sha256": 110,
    "pbkdf2": 7,
    "$pbkdf2": 11,
    "$scrypt": 60,
    "$firescrypt": 50,
    "$P$": 4,
    "$S$": 21,
    "$5$": 3,
    "$6$": 2,
    "{SSHA": 1,
}


@pytest.mark.parametrize("kind", HASHES)
def test_a_sample_is_of_the_same_kind_and_nobodys(rt, kind):
    one, another = (checked(HASHES[kind]()).text for _ in range(2))
    sample = sample_of(one)
    assert (sample, len(sample)) == (sample_of(another), len(one))
    assert one.startswith(head_of(one))
    assert head_of(one) == head_of(sample)
    assert one[len(head_of(one)) + 4 : -4] not in sample
    assert not rt.passwords._context.verify(PASSWORD, sample)


@pytest.mark.parametrize(("seconds", "codes"), [(0.9, []), (1.1, ["bad_request"])])
def test_what_a_hash_costs_does_not_depend_on_how_busy_the_machine_is(
    rt, line, admin, file, monkeypatch, seconds, codes
):
    """All threads count, as lanes are threads of their own, but not the time that passes."""
    asked = itertools.count()

    def now(cls):
        number = next(asked)
        return cls(cpu=0, wall=60 * number, process=seconds * number)

    monkeypatch.setattr(rt.passwords, "_costs", {})
    monkeypatch.setattr(passwords_module.Cost, "now", classmethod(now))
    report = line("users", "import", file({**ANNS, "hash": HASHES["Argon2i"]()}), "--json")
    assert [one["code"] for one in json.loads(report.stdout)["refused"]] == codes


@pytest.fixture
def spent(rt, monkeypatch):
    """The units that were spent on passwords so far."""
    total, real = [0], rt.passwords._context.verify

    def spend(units):
        total[0] += units

    def verify(secret, hashed):
        fitting = [units for begin, units in UNITS.items() if hashed.startswith(begin)]
        spend(fitting[-1])
        return real(secret, hashed)

    monkeypatch.setattr(foreign_hashes, "MAX_SECONDS", max(UNITS.values()))
    cost = passwords_module.Cost
    monkeypatch.setattr(rt.passwords, "_costs", {})
    monkeypatch.setattr(rt.passwords, "seconds", lambda _: 0)
    monkeypatch.setattr(rt.passwords._context, "verify", verify)
    monkeypatch.setattr(rt.passwords._context, "dummy_verify", lambda: spend(20))
    monkeypatch.setattr(passwords_module, "pbkdf2_hmac", lambda *_: spend(1))
    monkeypatch.setattr(cost, "now", classmethod(lambda cls: cls(total[0], total[0], 0)))
    return lambda: total[0]


@pytest.mark.both_databases
@pytest.mark.parametrize("password", ["a wrong password", "wrong \N{LATIN SMALL LIGATURE FI}le"])
def test_a_refusal_costs_the_same_whoever_it_is(app, rt, imported, user, spent, password):
    """What NFKC changes is tried in both spellings where somebody may have stored either."""
    hashes = [{"hash": make()} for make in HASHES.values()]
    accounts = [
        {"name": f"user-{n}", "address": f"u{n}@example.com", **one}
        for n, one in enumerate([*hashes, *(vector.line for vector in VECTORS.values())])
    ]
    assert imported(*accounts)["created"] == len(accounts)
    names = ["nobody", user.username, *(one["name"] for one in accounts)]
    costs = []
    for name in ["first", *names]:  # the first also measures
        before = spent()
        ApiClient(app).login(name, password).fails(401, "auth.credentials_failed")
        costs.append(spent() - before)
    assert set(costs[1:]) == {240 if "wrong file" in normalized(password) else 120}


@pytest.mark.parametrize(
    ("password", "checks"), [("wrong", 1), ("wrong \N{LATIN SMALL LIGATURE FI}le", 2)]
)
def test_without_imports_a_refusal_costs_our_checks(rt, api, line, user, spent, password, checks):
    line.json("cleanup")
    api.login("first", password)  # which also measures
    for name in ("nobody", user.username):
        before = spent()
        api.login(name, password).fails(401, "auth.credentials_failed")
        assert spent() - before == 20 * checks


def test_the_kinds_that_nobody_has_any_more_are_forgotten(rt, api, line, imported):
    imported({**ANNS, "hash": HASHES["bcrypt"]()})
    assert count(rt, PasswordHashKind) == 2
    line.json("cleanup")
    assert count(rt, PasswordHashKind) == 2
    api.login("ann", PASSWORD).ok()
    line.json("cleanup")
    with rt.reading() as session:
        assert session.scalars(sa.select(PasswordHashKind.sample)).all() == [
            rt.passwords.own_sample
        ]


def test_a_hash_that_takes_too_long_here_is_refused(rt, line, admin, file, monkeypatch):
    monkeypatch.setattr(rt.passwords, "seconds", lambda _: 1.4)
    result = line("users", "import", file({**ANNS, "hash": HASHES["PBKDF2"]()}), "--json")
    [refused] = json.loads(result.stdout)["refused"]
    assert "a check takes 1.4 s" in refused["msg"]
