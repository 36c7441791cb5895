"""Signing in with a provider, and finding whose account it is."""
