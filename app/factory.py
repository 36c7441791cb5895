"""Application factory: the only module that knows every area."""

from collections.abc import Mapping
from functools import partial

from flask import Flask
from flask_migrate import Migrate
from redis import Redis

from app import commands
from app.access_tokens import service as access_tokens
from app.audit_log.views import bp as admin_audit
from app.avatars import views as avatars
from app.browsers import service as browsers_service
from app.browsers.views import bp as browsers
from app.confirmation.views import bp as confirmation
from app.contact_verification.views import bp as contact_verification
from app.core import logs
from app.core.clock import Clock
from app.core.config import MIGRATIONS, Config
from app.core.http_client import HttpClient
from app.core.runtime import Hooks, Limits, Runtime
from app.crypto.keyring import Keyring
from app.crypto.passwords import Passwords
from app.crypto.secret_box import SecretBox
from app.events import views as events
from app.events.hub import Hub
from app.external_auth import links as external_links
from app.external_auth import queries as external_queries
from app.external_auth.providers.views import bp as admin_external_auth
from app.external_auth.views import bp as external_auth
from app.installation import cleanup
from app.installation.views import bp as admin_system
from app.invitations import views as invitations
from app.login import sign_in_methods
from app.login.views import bp as login
from app.mail import dispatcher, rendering
from app.mail.mailer import Mailer
from app.mail.views import bp as admin_mail
from app.mfa import queries as mfa_queries
from app.mfa.views import bp as mfa
from app.operations.views import bp as operations
from app.operations.views import docs
from app.own_data.views import bp as own_data
from app.own_teams.views import bp as own_teams
from app.own_tokens.views import bp as own_tokens
from app.pages.views import bp as pages
from app.passkeys import management as passkeys_management
from app.passkeys import queries as passkeys_queries
from app.passkeys.views import bp as passkeys
from app.passwords.views import bp as passwords
from app.profile.views import bp as profile
from app.registration.views import bp as registration
from app.sessions import service as sessions_service
from app.sessions.views import bp as sessions
from app.settings import queries as settings_queries
from app.settings import service as settings
from app.settings.views import bp as admin_settings
from app.setup.views import bp as setup
from app.storage_policies.views import bp as storage_policies
from app.store.database import Database
from app.store.db import db
from app.store.limits import AttemptLimits, RateLimits
from app.store.live_settings import LiveSettings
from app.store.redis import RedisClients
from app.team_admin.views import bp as admin_teams
from app.teams.views import bp as teams
from app.user_admin.views.accounts import bp as admin_users
from app.user_admin.views.credentials import bp as admin_credentials
from app.user_admin.views.tokens import bp as admin_tokens
from app.users import password_secrets
from app.users import service as users_service
from app.web import cors, errors, guards, lifecycle, metrics, request
from app.web import runtime as web_runtime

BLUEPRINTS = (
    operations,
    docs,
    pages,
    setup,
    registration,
    invitations.bp,
    invitations.admin_bp,
    contact_verification,
    mfa,
    browsers,
    login,
    sessions,
    own_tokens,
    confirmation,
    passwords,
    passkeys,
    external_auth,
    profile,
    avatars.bp,
    avatars.admin_bp,
    events.bp,
    own_data,
    storage_policies,
    teams,
    own_teams,
    admin_users,
    admin_settings,
    admin_audit,
    admin_system,
    admin_credentials,
    admin_tokens,
    admin_mail,
    admin_teams,
    admin_external_auth,
)


def create_app(
    config: Config,
    *,
    clock: Clock | None = None,
    redis: Redis | None = None,
    mailer: Mailer | None = None,
    http_client: HttpClient | None = None,
) -> Flask:
    """Return the WSGI application; tests can inject the clock and the clients of outside services.

    Reads nothing but the key file and writes nothing: `flask prepare` creates an instance.
    """
    logs.configure(config.log_format, config.log_level)
    app = Flask(__name__, static_folder=None)
    # Routing must not fail at a strange Host header: `web.origin` judges it where it matters.
    app.config["SERVER_NAME"] = "localhost"
    # A redirect to the normalised path would name that host.
    app.url_map.merge_slashes = False
    rt = _runtime(app, config, clock or Clock(), redis, mailer or Mailer(), http_client)
    app.url_map.converters["row"] = request.RowId
    web_runtime.install(app, rt)
    rt.database.on_statement(metrics.QUERIES.inc)
    guards.install(
        app,
        guards.Checks(
            authenticate=sessions_service.authenticate,
            authenticate_program=access_tokens.authenticate,
            note_use=access_tokens.note_use,
            require_still_admin=sessions_service.require_still_admin,
        ),
    )
    errors.install(app)
    lifecycle.install(app, rt)
    cors.install(app)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    commands.install(app)
    hub = Hub(rt)
    events.install(app, hub)
    Migrate(app, db, directory=str(MIGRATIONS))
    _fill_hooks(rt, hub)
    return app


def _runtime(
    app: Flask,
    config: Config,
    clock: Clock,
    redis: Redis | None,
    mailer: Mailer,
    http_client: HttpClient | None,
) -> Runtime:
    mailer.context = app.app_context  # Flask-Mail sends the application a signal for every mail
    database = Database(app, config)
    clients = RedisClients(config.redis_url, clock, redis)
    keyring = Keyring(config, clock)
    secret_box = SecretBox(keyring)

    def load_settings() -> Mapping[str, str]:
        with database.reading() as session:
            return settings_queries.list_texts(session)

    return Runtime(
        config=config,
        clock=clock,
        database=database,
        redis=clients,
        settings=LiveSettings(load_settings, clock),
        keyring=keyring,
        secret_box=secret_box,
        passwords=Passwords(
            config.argon2,
            config.password_threads,
            config.breached_passwords,
            partial(password_secrets.find, database, secret_box),
        ),
        limits=Limits(
            RateLimits(clients.fail_fast, clock),
            AttemptLimits(clients.fail_fast, clock, config.failure_limit, secret_box),
        ),
        mailer=mailer,
        http_client=http_client
        or HttpClient(
            allow_loopback=config.allow_loopback_http,
            internal=config.provider_networks,
            clock=clock,
        ),
        hooks=Hooks(),
    )


def _fill_hooks(rt: Runtime, hub: Hub) -> None:
    hooks = rt.hooks
    hooks.sign_in_methods.extend(
        [
            sign_in_methods.by_password,
            passkeys_management.by_passkey,
            external_links.by_external_link,
        ]
    )
    hooks.external_confirmations.append(external_links.by_dated_link)
    hooks.on_sign_in_switch.append(users_service.notify_administrators_of_switch)
    hooks.on_setting_change.append(browsers_service.void_if_switched_off)
    hooks.on_unverified_reset.extend([passkeys_queries.remove_all, external_queries.remove_links])
    hooks.on_unproven_reset.append(mfa_queries.remove_all)
    hooks.extra_login_methods.append(external_queries.is_any_enabled)
    hooks.template_defaults.append(rendering.built_in_texts)
    hooks.on_start.extend(
        [
            lambda: settings.listen(rt),
            lambda: cleanup.start_cleanup(rt),
            lambda: dispatcher.start(rt),
            hub.start,
        ]
    )
    hooks.on_shutdown.append(hub.begin_shutdown)
