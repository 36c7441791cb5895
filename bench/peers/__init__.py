"""The peers: other account services that `bench.scenarios` measures for comparison."""
