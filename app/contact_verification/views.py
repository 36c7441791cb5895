"""/auth/contact-verification and /auth/email/change."""

from flask import Blueprint

from app.contact_verification import models  # noqa: F401

bp = Blueprint("contact_verification", __name__, url_prefix="/api/v1/auth")
