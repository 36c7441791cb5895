"""The audit log as administrators read and export it; `audit` writes it."""

from app.web.operation import ADMINISTRATION

TAG = ADMINISTRATION
