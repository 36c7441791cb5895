"""How many files and connections a process may have open."""

import resource

# Listeners, logs, and the connections to the database and, up to 1024 twice, to Redis.
BESIDES = 3072


def make_room(connections: int) -> int:
    """Raise the soft limit as far as so many connections need and the hard one lets; return it.

    A shell or systemd usually gives 1024, so that programs which use select() are safe; gevent
    does not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + BESIDES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
