"""Proof that an address is its owner's: activation, e-mail change, and the links of all mails."""
