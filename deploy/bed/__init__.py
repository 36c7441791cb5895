"""The test bed: nginx, two instances, PostgreSQL and Valkey, as real processes on this machine."""
