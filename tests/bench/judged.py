# SPDX-License-Identifier: Apache-2.0
"""Figures that tests judge or print: each is run, and its last line shown."""
import os
import re
import subprocess

from fathom import BUILD, TESTS

TESTED = {
    "pairs of caller and callee against machine code": "accuracy/frame_pairs.py",
    "goroutine ids and labels": "accuracy/go_matrix.py",
    "goroutines' frames against runtime.CallersFrames": "accuracy/go.sh",
    "names, lines and inlined calls": "accuracy/dwarf.sh",
    "perf --call-graph dwarf's chains in ours": "scenario/59-perf-dwarf",
    "the first second of a recording": "scenario/29-first-second",
    "index builders given bombs": "scenario/73-index-bombs",
    "flood of HTTP requests by another user": "scenario/71-http-access",
    "the page with 100,000 stacks": "scenario/35-page",
    "attaching to a busy server": "scenario/86-latency-attaching",
}
WHOLE = {"scenario/35-page"}  # their long form has the figures that are asked for


def judged(show):
    env = dict(os.environ, FATHOM_BUILD=BUILD)
    env.pop("ONLY", None)  # frame_pairs.py would take it for the name of a program
    for what, test in TESTED.items():
        its_env = dict(env, FULL="1") if test in WHOLE else env
        r = subprocess.run([os.path.join(TESTS, test)], env=its_env, cwd=os.path.dirname(TESTS), capture_output=True,
                           text=True)
        lines = r.stdout.strip().split("\n")
        show(what, lines[-1] if r.returncode == 0 else "exit status %d: %s" % (r.returncode, lines[-1]))
    out = subprocess.run([os.path.join(TESTS, "accuracy/unwind.sh")], env=env, cwd=os.path.dirname(TESTS),
                         capture_output=True, text=True).stdout
    for name, bytes_a_row in re.findall(r"^ok   (libc|libstdc\+\+|libcrypto): .*?([\d.]+) a row", out, re.M):
        show("unwind table of " + name, bytes_a_row + " bytes a row")
