"""Proof that an account owns its address: activation, e-mail change, and all mailed links."""
