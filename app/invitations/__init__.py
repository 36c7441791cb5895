"""Invitations: accounts made by whoever was invited by mail."""
