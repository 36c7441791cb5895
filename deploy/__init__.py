"""Deployment of Gatehouse, and a test bed that deploys it on one machine."""
