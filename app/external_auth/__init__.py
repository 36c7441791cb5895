"""Signing in with an identity that another service vouches for."""
