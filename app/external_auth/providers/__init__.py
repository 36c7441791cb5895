"""Administration of the providers."""

from app.web.operation import ADMINISTRATION

TAG = ADMINISTRATION
