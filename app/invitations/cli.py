"""`flask invitations`: who was invited."""

from app.web.cli import Commands

group = Commands("invitations", help="Accounts made by whoever was invited by mail.")
