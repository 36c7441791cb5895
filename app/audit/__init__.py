"""The audit log: who did what to which account, kept in the same transaction as the deed."""
