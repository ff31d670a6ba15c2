#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in a guest: `fathom latency` on programs that were built on the host, and that count and time their
own calls. Each argument is NAME=PROGRAM, or NAME=PROGRAM,ARGUMENT…"""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scenario"))
from latency_truth import *  # noqa: E402


def check_other_programs():
    """The BPF programs that take stacks, follow calls and fetch arguments load on this kernel, and work."""
    sleep = ["-u", "libc:clock_nanosleep", "--", "sleep", ".2"]
    profile = scratch("stacks.pb.gz")
    stacks = subprocess.run([FATHOM, "latency", "-o", profile] + sleep, text=True, capture_output=True)
    check(stacks.returncode == 0 and "1 call of 1 function" in stacks.stdout,
          "calls with their stacks: " + (stacks.stdout + stacks.stderr)[-300:])
    check(os.path.exists(profile) and os.path.getsize(profile) > 0, "a profile is written")
    for arguments in [], ["--args"]:
        trees = subprocess.run([FATHOM, "trace"] + arguments + sleep, text=True, capture_output=True)
        check(trees.returncode == 0 and "clock_nanosleep(" in trees.stdout,
              "traced: " + (trees.stdout + trees.stderr)[-300:])


def check_running(program):
    """A process that calls a function again and again, while its probes come and go one after the other."""
    with subprocess.Popen([program, "1000000000"], stdout=subprocess.DEVNULL, preexec_fn=lambda: os.nice(19)) as w:
        try:
            report = report_of(latency("--json", "-u", "quick", "-p", w.pid, "-d", "2"))
        finally:
            w.kill()
    calls = [f["calls"] for f in report["functions"]]
    check(len(calls) == 1 and calls[0] > 10 and not report["not_counted"]["not_returned"],
          "%s calls of a running process, all of which return: %s" % (calls, report["not_counted"]))


if os.uname().machine == "x86_64":
    check_other_programs()
for text in sys.argv[1:]:
    name, command = text.split("=", 1)
    program, *arguments = command.split(",")
    copy = shutil.copy(program, scratch(os.path.basename(program)))
    check_program(copy, arguments, name)
    if name == "C":
        check_running(copy)
done()
