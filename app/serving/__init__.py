"""Processes: the launcher, the embedded Valkey and the gunicorn worker; nothing about accounts."""
