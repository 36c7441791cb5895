"""The test bed: nginx, two instances and their stores, as real processes on this machine."""
