"""How Gatehouse is deployed, and a test bed that deploys it on one machine."""
