"""Invitations by mail to create an account."""
