#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The share of samples that carry the right goroutine id, for several versions of Go.

  tests/accuracy/goid.py [VERSION...]

builds tests/workloads/goid with each version (with DWARF, without, position-independent by the
external linker), records it, and judges each sample with main.workerN on its stack: it must carry
the goid that the worker printed. The test fails below 99.5 % in any version. FULL=1 runs all versions
instead of four.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
sys.dont_write_bytecode = True
import pprof_read  # noqa: E402

BUILD = os.path.join(ROOT, os.environ.get("FATHOM_BUILD", "build"))
FATHOM = os.path.join(ROOT, os.environ.get("FATHOM", os.path.join(BUILD, "fathom")))
WORKLOAD = os.path.join(ROOT, "tests/workloads/goid")
SHORT = ["1.16.15", "1.20.14", "1.27.4", "local"]
ALL = ["1.16.15", "1.17.13", "1.18.10", "1.19.13", "1.20.14", "1.21.13", "1.22.12", "1.23.12",
       "1.24.13", "1.25.7", "1.27.4", "local"]
KINDS = {
    "dwarf": [],
    "stripped": ["-ldflags=-s -w"],
    "external": ["-buildmode=pie", "-ldflags=-linkmode=external -s -w"],
}
WANTED = 0.995
MIN_SAMPLES = 200
SECONDS = "6"


def toolchain(version):
    return "local" if version == "local" else "go" + version


def build(version, kind, program):
    # Go 1.19 mistakes the package index that newer versions left in the cache for its own.
    env = dict(os.environ, GOTOOLCHAIN=toolchain(version), GOFLAGS="-mod=mod", GODEBUG="goindex=0",
               CGO_ENABLED="1" if kind == "external" else "0")
    argv = ["go", "build", "-o", program] + KINDS[kind] + ["."]
    done = subprocess.run(argv, cwd=WORKLOAD, env=env, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(done.stderr.strip())
    return done.returncode == 0


def record(program, profile):
    """Records the program; returns the goid of each worker, as it printed them."""
    env = dict(os.environ, XDG_CACHE_HOME=os.path.dirname(profile))
    goids = {}
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as running:
        try:
            for line in running.stdout:
                if line == "ready\n":
                    break
                number, goid = re.fullmatch(r"worker (\d+) goid (\d+)\n", line).groups()
                goids["main.worker" + number] = int(goid)
            done = subprocess.run([FATHOM, "record", "-F", "997", "-d", SECONDS, "-p",
                                   str(running.pid), "-o", profile], env=env, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                sys.exit(done.stdout)
        finally:
            running.kill()
    return goids


def judge(profile, goids):
    """Counts of samples of workers: all, with the right goid, with another one."""
    judged = right = wrong = 0
    for sample in pprof_read.Profile(profile).samples:
        workers = {goids[f["func"]] for f in sample["frames"] if f["func"] in goids}
        if len(workers) != 1:
            continue
        weight = sample["values"][0]
        goid = sample["numbers"].get("goid")
        judged += weight
        right += weight * (goid in workers)
        wrong += weight * (goid is not None and goid not in workers)
    return judged, right, wrong


def check(version, kind, directory):
    program = os.path.join(directory, "goid")
    profile = os.path.join(directory, "goid.pb.gz")
    if not build(version, kind, program):
        print("FAIL %-8s %-8s cannot be built" % (version, kind))
        return False
    judged, right, wrong = judge(profile, record(program, profile))
    share = right / judged if judged else 0
    good = judged >= MIN_SAMPLES and share >= WANTED
    print("%-4s %-8s %-8s %d samples of workers, right %.2f %%, another's %d, none %d" % (
        "ok" if good else "FAIL", version, kind, judged, 100 * share, wrong,
        judged - right - wrong), flush=True)
    return good


def main():
    if not shutil.which("go"):
        print("go is not installed")
        return 77
    if os.geteuid() != 0:
        print("needs root")
        return 77
    versions = sys.argv[1:] or (ALL if os.environ.get("FULL") else SHORT)
    with tempfile.TemporaryDirectory(prefix="goid-") as directory:
        results = [check(v, k, directory) for v in versions for k in KINDS]
    print("%d passed, %d failed" % (results.count(True), results.count(False)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
