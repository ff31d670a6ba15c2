# SPDX-License-Identifier: Apache-2.0
"""What unwind tables cost to make: CPU time for each megabyte of .eh_frame (eh_frame_time.c), of the libraries of this
machine with the largest ones. Files, names and what is read from instructions are not in it: `make bench ONLY=indexes`."""
import glob
import os
import statistics
import subprocess

from fathom import BUILD, TESTS, scratch

LIBRARIES, LEAST_MB, MIN_FILE_BYTES = 30, 0.2, 1 << 20


def tool():
    to, root = scratch("eh_frame_time"), os.path.dirname(TESTS)
    libraries = subprocess.run(["make", "-s", "ldlibs"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    subprocess.run(["cc", "-O2", "-std=gnu17", "-D_GNU_SOURCE", "-I.", "-o", to, "tests/bench/eh_frame_time.c",
                    os.path.join(BUILD, "libfathom.a"), "-Wl,--as-needed", *libraries], cwd=root, check=True)
    return to


def tables(show, runs):
    program, found = tool(), []
    for path in {os.path.realpath(p) for p in glob.glob("/usr/lib/*-linux-gnu/*.so*")}:
        if os.path.getsize(path) < MIN_FILE_BYTES:
            continue
        r = subprocess.run([program, path, str(runs)], capture_output=True, text=True)
        if r.returncode == 0:
            seconds, size = r.stdout.split()
            found.append((int(size) / 1e6, 1e3 * float(seconds)))
    largest = [(mb, ms / mb) for mb, ms in sorted(found, reverse=True)[:LIBRARIES] if mb > LEAST_MB]
    per_mb = [ms for _, ms in largest]
    show("unwind tables: CPU time for each MB of .eh_frame", "%.1f ms" % statistics.median(per_mb),
         "%d libraries of %.1f to %.1f MB, %.1f to %.1f ms" % (
             len(per_mb), largest[-1][0], largest[0][0], min(per_mb), max(per_mb)))
