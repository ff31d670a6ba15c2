#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in a guest of tests/vm/arm64: argv[1] is a program that spends its time in spin_here()."""
import os
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from pprof_read import Profile  # noqa: E402
from unix_http import get  # noqa: E402
from ftrace_guest import check, failures  # noqa: E402

# A copy: the network file system that it is on may be served too late for a sampler.
FATHOM, PROGRAM = os.environ["FATHOM"], shutil.copy(sys.argv[1], "/tmp")
SOCKET = "/tmp/fathom.socket"
WANTED = "sampler", "off-cpu", "mapping-lookup", "mapping-build-ids", "cpu-clock", "fentry", "uprobe_multi"


def check_machine():
    r = subprocess.run([FATHOM, "check"], capture_output=True, text=True)
    said = dict(reversed(line.split()[:2]) for line in r.stdout.splitlines() if line)
    wrong = {name: said.get(name) for name in WANTED if said.get(name) != "ok"}
    check(not wrong, "fathom check: %s" % (wrong or "all that 6.12 has is ok"))


def check_recording():
    r = subprocess.run([FATHOM, "record", "-F", "199", "-o", "/tmp/chain.pb.gz", "--", PROGRAM, "3"], capture_output=True, text=True)
    check(r.returncode == 0, "record: exit status %d %s" % (r.returncode, r.stderr[-500:] * bool(r.returncode)))
    if r.returncode:
        return
    samples = [s for s in Profile("/tmp/chain.pb.gz").samples if s["labels"].get("comm", "").startswith("chain")]
    count = sum(s["values"][0] for s in samples)
    named = sum(s["values"][0] for s in samples if any(f["func"] == "spin_here" for f in s["frames"]))
    good = count > 50 and named >= .9 * count
    check(good, "record: spin_here in %d of %d samples%s" % (named, count, "" if good else "\n" + r.stderr))


def check_page():
    agent = subprocess.Popen([FATHOM, "agent", "--http-address=unix:" + SOCKET, "--http-socket=", "--local-store-directory=",
                              "--log-level=info"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    samples = any('msg="sampling"' in line for line in agent.stderr)
    check(samples, "the agent samples")
    if samples:
        status, page = get(SOCKET, "/")
        check(status == 200 and b"</html>" in page, "the page: status %d, %d bytes" % (status, len(page)))
    agent.send_signal(signal.SIGTERM)
    agent.communicate(timeout=120)
    check(agent.returncode == 0, "the agent ends: %d" % agent.returncode)


check_machine()
check_recording()
check_page()
print("aarch64: %d failures" % len(failures))
sys.exit(bool(failures))
