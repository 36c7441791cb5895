"""What operators and frontends ask first: health, metrics, bootstrap config, API description."""
