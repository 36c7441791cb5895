"""The audit log: who did what to what, recorded in the same transaction as the change itself."""
