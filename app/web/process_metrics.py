"""CPU time, memory and open files of every worker.

prometheus_client omits its process metrics in multiprocess mode. They are read here at scrape time,
under their usual names, with a label `pid`: a sum of CPU seconds would fall whenever a worker is
replaced, and so would not be a counter.
"""

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from prometheus_client import Metric, ProcessCollector
from prometheus_client.registry import Collector


class WorkerProcesses(Collector):
    """The process metrics of all workers of this worker's master."""

    def collect(self) -> Iterable[Metric]:
        """Return one family per metric, with a sample per worker."""
        families: dict[str, Metric] = {}
        for pid in _workers():
            # Values that cannot be read are omitted: the worker may just have exited.
            for metric in ProcessCollector(pid=partial(int, pid), registry=None).collect():
                family = Metric(metric.name, metric.documentation, metric.type)
                family = families.setdefault(metric.name, family)
                for sample in metric.samples:
                    family.add_sample(sample.name, {"pid": str(pid)}, sample.value)
        return families.values()


def _workers() -> list[int]:
    """Return the ids of the master's child processes, including this one."""
    master = os.getppid()
    try:
        children = Path(f"/proc/{master}/task/{master}/children").read_text()
    except OSError:
        return [os.getpid()]  # not every kernel has this list
    return [int(pid) for pid in children.split()]
