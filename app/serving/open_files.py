"""The limit on open files, which include connections, of a process."""

import resource

# Listeners, logs, connections to the database, and up to twice 1024 connections to Redis.
RESERVED_DESCRIPTORS = 3072


def raise_limit(connections: int) -> int:
    """Raise the soft limit to what `connections` need, at most to the hard limit; return it.

    Shells and systemd usually set 1024, to be safe for programs that use select(); gevent does not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + RESERVED_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
