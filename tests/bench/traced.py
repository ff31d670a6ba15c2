# SPDX-License-Identifier: Apache-2.0
"""What tracing a call costs: the CPU time of the program that is traced, and that of who prints the calls; how
many events in a second were held, and how many got lost. Beside bpftrace that prints a line for each entry, or
for each entry and each return (it makes no trees)."""
import re
import resource
import shutil
import statistics
import subprocess

from fathom import FATHOM, built, environment, scratch

CALLS = 100000
ENTRY = 'uprobe:%s:work { printf("%%d %%d %%s %%d\\n", nsecs, tid, "work", arg0); }'
RETURN = ' uretprobe:%s:work { printf("%%d %%d %%s\\n", nsecs, tid, "-work"); }'


class Figures:
    def __init__(self, wall_s, cpu_s, text, events_of_call, shown, lost):
        own_ns = float(re.search(r"^(\d+\.\d)$", text, re.M).group(1))
        self.program_us = own_ns / 1e3
        self.printer_us = 1e6 * cpu_s / CALLS - self.program_us
        self.rate = shown / wall_s
        self.lost = 100.0 * lost / (CALLS * events_of_call)

    def row(self):
        return self.program_us, self.printer_us, self.program_us + self.printer_us, self.rate, self.lost


def measured(command):
    """(CPU s with that of the program, output)"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = scratch("trace.out")
    with open(out, "w") as f:
        subprocess.run(command, stdout=f, stderr=subprocess.STDOUT, env=environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(out, errors="replace") as f:
        text = f.read()
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, text


def seconds_of(times):
    return (max(times) - min(times)) / 1e9 if times else 1


def fathom(program):
    cpu, text = measured([FATHOM, "trace", "-u", "work", "--", program, str(CALLS)])
    shown, wall = (float(re.search(r"^([\d.]+)s: (\d+) calls", text, re.M).group(i)) for i in (2, 1))
    return Figures(wall, cpu, text, 2, 2 * shown, 2 * (CALLS - shown))


def bpftrace(program, script, events_of_call):
    cpu, text = measured(["bpftrace", "-e", script, "-c", "%s %d" % (program, CALLS)])
    times = [int(t) for t in re.findall(r"^(\d+) \d+ -?work", text, re.M)]
    return Figures(seconds_of(times), cpu, text, events_of_call, len(times), CALLS * events_of_call - len(times))


def traced(show, runs):
    program = built("latencyloop.c", "latencyloop", "gcc -O2 -o {out} {source}")
    fathom(program)  # makes the index
    kinds = {"fathom trace": lambda: fathom(program)}
    if shutil.which("bpftrace"):
        kinds["bpftrace, entries"] = lambda: bpftrace(program, ENTRY % program, 1)
        kinds["bpftrace, entries and returns"] = lambda: bpftrace(program, (ENTRY + RETURN) % (program, program), 2)
    ours = None
    for name, one in kinds.items():
        rows = [one().row() for _ in range(runs)]
        in_program, in_printer, sum_us, rate, lost = [statistics.median(column) for column in zip(*rows)]
        ours = ours or sum_us
        show("%s: CPU time of a call" % name, "%.1f us, %.1f us to print it" % (in_program, in_printer),
             "" if sum_us == ours else "ratio %.2f" % (ours / sum_us))
        show("  events held, lost", "%.0f a second, %.1f%%" % (rate, lost))
