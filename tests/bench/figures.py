# SPDX-License-Identifier: Apache-2.0
"""What several parts compute from their runs."""
import contextlib
import glob
import re
import statistics
import sys
import time

STATS = "/proc/sys/kernel/bpf_stats_enabled"


def medians(rows):
    """The median of each column."""
    return [statistics.median(column) for column in zip(*rows)]


@contextlib.contextmanager
def bpf_stats():
    with open(STATS) as f:
        before = f.read()
    with open(STATS, "w") as f:
        f.write("1")
    try:
        yield
    finally:
        with open(STATS, "w") as f:
            f.write(before)


def programs_of(pid):
    """(ns, runs) of the BPF programs that a process has open."""
    ns = runs = 0
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        try:
            with open(path) as f:
                told = dict(re.findall(r"^(run_time_ns|run_cnt):\s*(\d+)", f.read(), re.M))
        except OSError:
            continue
        ns += int(told.get("run_time_ns", 0))
        runs += int(told.get("run_cnt", 0))
    return ns, runs


def wait_for_runs(process, count, name):
    """Until the BPF programs of PROCESS, which is called NAME, have run so often."""
    limit = time.monotonic() + 60
    while programs_of(process.pid)[1] < count:
        if process.poll() is not None or time.monotonic() > limit:
            sys.exit("%s took no sample" % name)
        time.sleep(0.1)
