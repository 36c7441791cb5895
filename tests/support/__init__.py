"""What the tests stand on: servers, clock, client, factories, the live service."""
