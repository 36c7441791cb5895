"""Test infrastructure: servers, clock, clients, factories and the live service."""
