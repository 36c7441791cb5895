"""The audit log as administrators read and export it; `audit` writes it."""
