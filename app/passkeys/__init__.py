"""Passkeys: discoverable WebAuthn credentials, signing in with them and managing them."""
