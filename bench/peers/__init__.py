"""The peers: other account services, measured beside ours by the scenarios in `bench.scenarios`."""
