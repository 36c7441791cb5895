"""Flask-Security-Too's JSON interface, with authentication and refresh tokens in the body.

`python app.py fill` creates the tables and the accounts; `gunicorn app` serves. The library has no
route that returns the signed-in user, so this module adds a minimal one.
"""

import os
import sys
from typing import Any

from flask import Flask, Response, jsonify
from flask_security import (
    Security,
    SQLAlchemyUserDatastore,
    auth_required,
    current_user,
    hash_password,
)
from flask_security.models import fsqla_v4 as models
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import event


def _database() -> dict[str, Any]:
    name = os.environ["PEER_DATABASE"]
    if host := os.environ.get("PEER_POSTGRES_HOST"):
        return {
            "SQLALCHEMY_DATABASE_URI": f"postgresql+psycopg2://postgres@/{name}?host={host}",
            "SQLALCHEMY_ENGINE_OPTIONS": {"pool_size": 16},
        }
    return {
        "SQLALCHEMY_DATABASE_URI": f"sqlite:///{name}",
        "SQLALCHEMY_ENGINE_OPTIONS": {"connect_args": {"timeout": 20}},
    }


app = application = Flask(__name__)
app.config.update(
    _database(),
    SECRET_KEY="of the bench " * 4,
    SECURITY_PASSWORD_SALT="of the bench " * 4,
    # Argon2id at the same cost as all services in this comparison.
    SECURITY_PASSWORD_HASH_PASSLIB_OPTIONS={
        "argon2__time_cost": 2,
        "argon2__memory_cost": 19456,
        "argon2__parallelism": 1,
    },
    SECURITY_REFRESH_TOKEN=True,
    SECURITY_REFRESH_TOKEN_COOKIE_NAME=None,
    SECURITY_EMAIL_VALIDATOR_ARGS={"check_deliverability": False},
    WTF_CSRF_ENABLED=False,
)
db = SQLAlchemy(app)
models.FsModels.set_db_info(db)


class Role(db.Model, models.FsRoleMixin):
    """Required by the library."""


class User(db.Model, models.FsUserMixin):
    """Required by the library."""


class WebAuthn(db.Model, models.FsWebAuthnMixin):
    """Required by the library."""


class FsRefreshTracker(db.Model, models.FsRefreshTrackerMixin):
    """Required by the library."""


security = Security(app, SQLAlchemyUserDatastore(db, User, Role, WebAuthn, FsRefreshTracker))


def _write_ahead(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


if "PEER_POSTGRES_HOST" not in os.environ:
    with app.app_context():
        event.listen(db.engine, "connect", _write_ahead)


@app.get("/me")
@auth_required("token")
def me() -> Response:
    """Return the signed-in user."""
    return jsonify(id=current_user.id, email=current_user.email)


def fill() -> None:
    """Create the tables and the accounts, which share one stored password."""
    with app.app_context():
        db.create_all()
        stored = hash_password(os.environ["PEER_PASSWORD"])
        for n in range(1, int(os.environ["PEER_ACCOUNTS"]) + 1):
            address = os.environ["PEER_EMAIL"].format(n)
            security.datastore.create_user(email=address, password=stored)
        db.session.commit()


if __name__ == "__main__" and sys.argv[1:] == ["fill"]:
    fill()
