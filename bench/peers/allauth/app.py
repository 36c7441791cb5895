"""django-allauth headless in one module: settings, URLs, WSGI application, test data.

`python app.py fill` creates the tables and the accounts; `gunicorn app` serves. With
PEER_STRATEGY=jwt it issues JSON Web Tokens (the only kind it can refresh), else session tokens.
"""

import os
import sys
from pathlib import Path

import django
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.urls import include, path


class Hasher(Argon2PasswordHasher):
    """Argon2id at the same cost as all services in this comparison."""

    time_cost = 2
    memory_cost = 19456
    parallelism = 1


def _database() -> dict[str, object]:
    if "PEER_POSTGRES_HOST" in os.environ:
        return {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ["PEER_POSTGRES_HOST"],
            "USER": "postgres",
            "NAME": os.environ["PEER_DATABASE"],
            "CONN_MAX_AGE": None,
        }
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["PEER_DATABASE"],
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }


def _signing_key() -> str:
    """Return the key that signs the tokens; `fill`, which runs first, creates it."""
    file = Path(os.environ["PEER_FOLDER"], "key.pem")
    if not file.exists():
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        file.write_bytes(key.private_bytes(pem, pkcs8, serialization.NoEncryption()))
    return file.read_text()


def _token_settings() -> dict[str, str]:
    strategies = "allauth.headless.tokens.strategies"
    if os.environ.get("PEER_STRATEGY") != "jwt":
        return {"HEADLESS_TOKEN_STRATEGY": f"{strategies}.sessions.SessionTokenStrategy"}
    return {
        "HEADLESS_TOKEN_STRATEGY": f"{strategies}.jwt.JWTTokenStrategy",
        "HEADLESS_JWT_PRIVATE_KEY": _signing_key(),
    }


settings.configure(
    SECRET_KEY="of the bench " * 4,
    ALLOWED_HOSTS=["127.0.0.1"],
    USE_TZ=True,
    ROOT_URLCONF=__name__,
    DATABASES={"default": _database()},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "allauth",
        "allauth.account",
        "allauth.headless",
        "allauth.usersessions",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "allauth.account.middleware.AccountMiddleware",
        "allauth.usersessions.middleware.UserSessionsMiddleware",
    ],
    AUTHENTICATION_BACKENDS=["allauth.account.auth_backends.AuthenticationBackend"],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
        }
    ],
    PASSWORD_HASHERS=[f"{__name__}.Hasher"],
    ACCOUNT_LOGIN_METHODS={"email"},
    ACCOUNT_SIGNUP_FIELDS=["email*", "password1*"],
    ACCOUNT_EMAIL_VERIFICATION="none",
    ACCOUNT_RATE_LIMITS=False,
    HEADLESS_ONLY=True,
    HEADLESS_CLIENTS=("app",),
    EMAIL_BACKEND="django.core.mail.backends.dummy.EmailBackend",
    **_token_settings(),
)
django.setup()

urlpatterns = [
    path("accounts/", include("allauth.urls")),
    path("_allauth/", include("allauth.headless.urls")),
]
application = get_wsgi_application()


def fill() -> None:
    """Create the tables and the accounts, which share one stored password."""
    # The models can only be imported once the settings are configured.
    from allauth.account.models import EmailAddress
    from django.contrib.auth.hashers import make_password
    from django.contrib.auth.models import User

    call_command("migrate", verbosity=0)
    stored = make_password(os.environ["PEER_PASSWORD"])
    numbers = range(1, int(os.environ["PEER_ACCOUNTS"]) + 1)
    emails = [os.environ["PEER_EMAIL"].format(n) for n in numbers]
    users = User.objects.bulk_create(User(username=e, email=e, password=stored) for e in emails)
    EmailAddress.objects.bulk_create(
        EmailAddress(user=user, email=user.email, verified=True, primary=True) for user in users
    )


if __name__ == "__main__" and sys.argv[1:] == ["fill"]:
    fill()
