# SPDX-License-Identifier: Apache-2.0
"""What names, lines and inlined calls of addresses cost: one and a thousand of a program that was never seen
before (the index is built), and each further one; beside llvm-symbolizer and addr2line on the same addresses.
VMLINUX=FILE adds the kernel's debug file (Debian: linux-image-...-dbg), LIBJVM=FILE that of libjvm, which is
compressed (openjdk-17-dbg)."""
import os
import random
import re
import shutil
import statistics
import subprocess

from fathom import FATHOM, built, environment, scratch
from figures import medians

COUNT, SINGLE, TURNS, BIG_BYTES = 1000, 9, 100, 100 << 20
GO = "go build -o {out} ."


def addresses_of(path):
    """COUNT random addresses in functions of a program, by its symbols."""
    functions = []
    for line in subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=True).stdout.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "tT" and int(fields[1], 16):
            functions.append((int(fields[0], 16), int(fields[1], 16)))
    chosen = random.Random(int(os.environ.get("FATHOM_TEST_SEED", "1"))).choices(functions, k=COUNT)
    return ["0x%x\n" % (start + random.Random(start).randrange(size)) for start, size in chosen]


def written(name, lines):
    path = scratch(name)
    with open(path, "w") as f:
        f.writelines(lines)
    return path


def run(measured, argv, questions, env=None):
    """`{}` in ARGV stands for the questions, for who does not read them from standard input."""
    with open(questions) as stdin:
        if "{}" in argv:
            argv = [*(a for a in argv if a != "{}"), *stdin.read().split()]
        return measured(argv, stdin=stdin, env=env)[:3]


class Resolver:
    """FATHOM with a cache of its own or a peer. Figures are those of `measured`: wall s, CPU s, peak MB."""

    def __init__(self, name, argv, measured):
        self.name, self.argv, self.measured, self.number = name, argv, measured, 0

    def cold(self, questions):
        self.number += 1
        cache = scratch("symbols-%s-%d" % (self.name, self.number))
        figures = run(self.measured, self.argv, questions, environment(cache))
        shutil.rmtree(cache, ignore_errors=True)
        return figures

    def warm_us(self, once, often):
        """CPU time of a look-up that is not the first of its address; None: it has no such way to be asked."""
        if "{}" in self.argv:
            return None
        env = environment(scratch("symbols-%s-warm" % self.name))
        # Of a big file the whole index is made once there are many addresses.
        run(self.measured, self.argv, often, env)
        first, all_of_them = (run(self.measured, self.argv, q, env)[1] for q in (once, often))
        return 1e6 * (all_of_them - first) / (COUNT * (TURNS - 1))


def in_turn(resolvers, questions):
    """Medians of cold figures by name. The machine's pace changes within minutes, so the resolvers take turns."""
    figures = {r.name: [] for r in resolvers}
    for question in questions:
        for r in resolvers:
            figures[r.name].append(r.cold(question))
    return {name: medians(rows) for name, rows in figures.items()}


def compare(show, runs, what, resolvers, lines):
    # What one address costs depends on its unit, so several are asked, each in a process of its own.
    singles, once = [written("one-%d" % i, lines[i:i + 1]) for i in range(SINGLE)], written("once", lines)
    often = written("often", lines * TURNS)
    ones = in_turn(resolvers, singles * runs)
    colds = in_turn(resolvers, [once] * runs)
    own = None
    for r in resolvers:
        single, cold = ones[r.name], colds[r.name]
        warm = [w for w in (r.warm_us(once, often) for _ in range(runs)) if w is not None]
        show("%s: %s, one address cold" % (r.name, what), "%.3f CPU s, %.0f MB" % tuple(single[1:]),
             "ratio %.2f" % (own[2] / single[1]) if own else "")
        show("  %d addresses cold" % COUNT, "%.3f CPU s, %.0f MB" % tuple(cold[1:]),
             "ratio %.2f" % (own[0] / cold[1]) if own else "")
        if warm:
            warm = statistics.median(warm)
            show("  each further one", "%.2f us" % warm, "ratio %.2f" % (own[1] / warm) if own else "")
        own = own or (cold[1], warm, single[1])


def peers(path, measured):
    found = []
    if shutil.which("llvm-symbolizer"):
        found.append(Resolver("llvm-symbolizer", ["llvm-symbolizer", "--inlines", "-e", path], measured))
    # It goes through all units for each address: a big file takes minutes.
    if shutil.which("addr2line") and os.path.getsize(path) < BIG_BYTES:
        found.append(Resolver("addr2line", ["addr2line", "-fiC", "-e", path], measured))
    if shutil.which("blazecli"):
        found.append(Resolver("blazesym", ["blazecli", "symbolize", "elf", "--path", path, "{}"], measured))
    return found


def kernel(show, runs, measured):
    with open("/proc/kallsyms") as f:
        lines = ["0x%s\n" % m for m in re.findall(r"^([0-9a-f]+) [tT] ", f.read(), re.M)][:COUNT]
    own = Resolver("fathom", [FATHOM, "symbolize", "-k", "--no-inlines"], measured)
    once, often = written("kernel-once", lines), written("kernel-often", lines * TURNS)
    show("kernel symbols: %d addresses, start included" % COUNT,
         "%.3f CPU s, %.0f MB" % tuple(medians([own.cold(once) for _ in range(runs)])[1:]))
    show("  each further address", "%.2f us" % statistics.median(own.warm_us(once, often) for _ in range(runs)))


def symbols(show, runs, measured):
    programs = {"fathom (C)": FATHOM}
    if shutil.which("go"):
        programs["a Go program"] = built("gohttp", recipe=GO)
    for name in ("VMLINUX", "LIBJVM"):
        if os.environ.get(name):
            programs[name.lower()] = os.environ[name]
    for what, path in programs.items():
        own = Resolver("fathom", [FATHOM, "symbolize", "-e", path], measured)
        compare(show, runs, what, [own, *peers(path, measured)], addresses_of(path))
    kernel(show, runs, measured)
