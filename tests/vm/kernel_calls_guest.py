#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in a guest of tests/vm/kernel-addresses: adjacent frames of kernel stacks against the code that the
kernel has in memory (/proc/kcore). Before each return address stands a call, and a direct call leads to
the callee, or to a jump into it. Meanwhile ftrace and fentry programs have their trampolines in the stacks."""
import bisect
import collections
import contextlib
import os
import re
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from pprof_read import Profile  # noqa: E402
from ftrace_guest import check, failures, tracing  # noqa: E402

FATHOM = os.environ["FATHOM"]
LINKED_TEXT, IMAGES, IMAGES_END = 0xffffffff81000000, 0xffffffff00000000, 0xffffffff80000000
ALONE = ("bpf", "__builtin__ftrace", "__builtin__kprobes")
SECONDS = 5
LEAST_PAIRS = 300
BPF_ENTRY = 8  # bytes
LOAD = "while :; do find /usr/lib/python3* /usr/share/doc -type f 2>/dev/null | head -400 | xargs cat >/dev/null; done"
RETURNS = ("kretprobe_trampoline", "__kretprobe_trampoline", "arch_rethook_trampoline", "return_to_handler")
# Entries from below which the caller did not call: an interrupt or an exception came between.
ENTRIES = ("asm_", "error_entry", "common_interrupt_return")


class Memory:
    """The kernel's memory, by /proc/kcore."""

    def __init__(self):
        self.fd = os.open("/proc/kcore", os.O_RDONLY)
        head = os.pread(self.fd, 64, 0)
        offset, = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        self.loads = []
        for i in range(count):
            kind, _, off, address, _, length = struct.unpack_from(
                "<IIQQQQ", os.pread(self.fd, size, offset + i * size))
            if kind == 1:
                self.loads.append((address, length, off))

    def at(self, address, count):
        for start, length, off in self.loads:
            if start <= address and address + count <= start + length:
                try:
                    return os.pread(self.fd, count, off + address - start)
                except OSError:
                    return b""
        return b""


class Kernel:
    def __init__(self):
        self.memory, alone, functions = Memory(), {}, []
        with open("/proc/kallsyms") as f:
            for line in f:
                address, kind, name, *module = line.split()
                if kind not in "tTwW":
                    continue
                functions.append((int(address, 16), name))
                if name == "_text":
                    self.text = int(address, 16)
                if module and module[0][1:-1] in ALONE:
                    alone.setdefault("[%s]" % name, []).append(int(address, 16))
        # A program that is loaded twice has its name twice, too.
        self.alone = {name: addresses[0] for name, addresses in alone.items() if len(addresses) == 1}
        functions.sort()
        self.starts, self.names = [a for a, _ in functions], [n for _, n in functions]
        with open("/proc/modules") as f:
            self.modules = {"[%s]" % line.split()[0]: int(line.split()[5], 16) for line in f}

    def running(self, frame):
        """The running kernel's address of a frame, or None."""
        mapping, address = frame["mapping"], frame["address"]
        if mapping == "[kernel.kallsyms]":
            return address - LINKED_TEXT + self.text
        if IMAGES <= address < IMAGES_END:
            start = self.alone.get(mapping, self.modules.get(mapping))
            return start and address - IMAGES + start
        return None

    def function(self, address):
        """[begin, end) of what is at ADDRESS, and its names."""
        end = bisect.bisect_right(self.starts, address)
        begin = bisect.bisect_left(self.starts, self.starts[end - 1])
        after = self.starts[end] if end < len(self.starts) else self.starts[begin] + 4096
        return self.starts[begin], min(after, self.starts[begin] + (64 << 10)), self.names[begin:end]

    def call_before(self, address):
        """("direct", target), ("indirect", None) or None."""
        before = self.memory.at(address - 8, 8)
        for i in range(len(before) - 1):
            if before[i] == 0xff and before[i + 1] >> 3 & 7 == 2:
                mod, rm = before[i + 1] >> 6, before[i + 1] & 7
                length = 2 + (0 if mod == 3 else (rm == 4) + {0: 4 if rm == 5 else 0, 1: 1, 2: 4}[mod])
                if mod == 0 and rm == 4 and i + 2 < len(before) and before[i + 2] & 7 == 5:
                    length += 4
                if i + length == len(before):
                    return "indirect", None
        if len(before) == 8 and before[3] == 0xe8:
            target = (address + struct.unpack("<i", before[4:])[0]) & (2 ** 64 - 1)
            if any(name.startswith("__x86_indirect") for name in self.function(target)[2]):
                return "indirect", None
            return "direct", target
        return None

    def jumps_to(self, begin, end, wanted):
        """Whether the code [begin, end) jumps into the function WANTED; None: it may, by a register."""
        code, found = self.memory.at(begin, end - begin) + bytes(8), False
        for i in range(len(code) - 8):
            if code[i] == 0xeb or code[i] & 0xf0 == 0x70:
                to = begin + i + 2 + struct.unpack_from("<b", code, i + 1)[0]
                if wanted[0] <= to < wanted[1]:
                    return True
                if not begin <= to < end and code[i] == 0xeb:
                    found |= self.starts[bisect.bisect_right(self.starts, to) - 1] == to
            if code[i] == 0xe9 or code[i] == 0x0f and code[i + 1] & 0xf0 == 0x80:
                size = 5 if code[i] == 0xe9 else 6
                to = begin + i + size + struct.unpack_from("<i", code, i + size - 4)[0]
                if wanted[0] <= to < wanted[1]:
                    return True
                if not begin <= to < end and code[i] == 0xe9:
                    found |= self.starts[bisect.bisect_right(self.starts, to) - 1] == to
            found |= code[i] == 0xff and code[i + 1] >> 3 & 7 == 4
        return None if found else False

    def judge(self, callee, caller):
        """Verdict on two running addresses; CALLER is the last byte of its call."""
        if any(name.startswith(ENTRIES) for name in self.function(callee)[2]):
            return "interrupted"
        if caller == self.function(caller)[0] and any(name in RETURNS for name in self.function(caller)[2]):
            return "traced"  # its return address is the trampoline's start, which no call precedes
        call = self.call_before(caller + 1)
        if callee - self.function(callee)[0] <= BPF_ENTRY and self.function(callee)[0] in self.alone.values():
            return "unproved"  # the kernel's walk misses the caller of a program that has no frame yet
        if not call:
            return "no call"
        if call[0] == "indirect":
            return "indirect"
        wanted, target = self.function(callee), self.function(call[1])
        # arch/x86/lib/putuser.S, getuser.S: __put_user_4 checks the address and runs into __put_user_nocheck_4.
        if target[1] == wanted[0] and any("_user_nocheck_" in name for name in wanted[2]):
            return "direct"
        if wanted[:2] == target[:2]:
            return "direct"
        return {True: "jump", None: "unproved", False: "wrong target"}[self.jumps_to(*target[:2], wanted)]


def kallsyms_count(text):
    with open("/proc/kallsyms") as f:
        return sum(text in line and line.endswith("[bpf]\n") for line in f)


def measures():
    """Whether both functions have their probes: trampolines, or before Linux 5.12 kprobes (docs/latency.md)."""
    if tuple(map(int, os.uname().release.split(".")[:2])) >= (5, 12):
        return kallsyms_count("bpf_trampoline_") >= 2 and kallsyms_count("kernel_returned") >= 2
    with open("/sys/kernel/debug/kprobes/list") as f:
        probes = f.read()
    return all(re.search(r" r +%s\+" % name, probes) for name in ("path_openat", "vfs_getattr"))


@contextlib.contextmanager
def at_work():
    """The machine at work while functions of the kernel are traced and measured."""
    tracing("set_ftrace_filter", "vfs_read\nvfs_open\n")
    tracing("current_tracer", "function")
    load = subprocess.Popen(["sh", "-c", LOAD], stdout=subprocess.DEVNULL, start_new_session=True)
    measured = subprocess.Popen([FATHOM, "latency", "-k", "path_openat", "-k", "vfs_getattr*", "-o", "/tmp/l.pb.gz",
                                 "-d", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not measures() and time.monotonic() < deadline and measured.poll() is None:
            time.sleep(1)
        check(measures(), "the probes of fathom latency are there")
        time.sleep(5)
        yield
    finally:
        os.killpg(load.pid, signal.SIGKILL)
        measured.send_signal(signal.SIGINT)
        measured.communicate()
        load.wait()
        tracing("current_tracer", "nop")


def judged(kernel, profile):
    """{(callee, caller): (verdict, their frames)}, by running addresses."""
    pairs = {}
    for s in profile.samples:
        stack = [f for f in s["frames"] if f["address"] >> 63]
        for callee, caller in zip(stack, stack[1:]):
            a, b = kernel.running(callee), kernel.running(caller)
            if a and b and (a, b) not in pairs:
                pairs[a, b] = kernel.judge(a, b), callee, caller
    return pairs


def main():
    with at_work():
        r = subprocess.run([FATHOM, "record", "-F", "997", "-d", str(SECONDS), "-o", "/tmp/k.pb.gz"],
                           capture_output=True, text=True)
        check(r.returncode == 0, "record: exit status %d %s" % (r.returncode, r.stderr[-400:] * bool(r.returncode)))
        # The programs and trampolines have to be there still.
        kernel, profile = Kernel(), Profile("/tmp/k.pb.gz")
        pairs = judged(kernel, profile)
        report(kernel, profile, pairs)
    return 1 if failures else 0


def report(kernel, profile, pairs):
    frames = [f for s in profile.samples for f in s["frames"] if f["address"] >> 63]
    nameless = [f for f in frames if not f["func"]]
    mappings = collections.Counter(re.sub(r"_[0-9a-f]+.*", "]", f["mapping"]) for f in frames)
    counts = collections.Counter(verdict for verdict, _, _ in pairs.values())
    for (a, b), (verdict, callee, caller) in pairs.items():
        if verdict in ("no call", "wrong target"):
            print("%s: %s %s+%#x called from %s %s+%#x" % (
                verdict, callee["mapping"], callee["func"], a - kernel.function(a)[0], caller["mapping"],
                caller["func"], b - kernel.function(b)[0]), kernel.memory.at(b - 7, 8).hex())
    bad = counts["no call"] + counts["wrong target"]
    good = [pair for pair, (verdict, _, _) in pairs.items() if verdict in ("direct", "indirect", "jump")]
    moved = sum(kernel.judge(a, b + 1) in ("no call", "wrong target") for a, b in good)
    in_modules = sum(caller["mapping"] in kernel.modules or callee["mapping"] in kernel.modules
                     for _, callee, caller in pairs.values())
    print("mappings: %s" % dict(mappings.most_common(12)))
    check(len(good) >= LEAST_PAIRS and in_modules >= LEAST_PAIRS / 10,
          "%d different pairs of frames, %d of modules: %s" % (len(pairs), in_modules, dict(counts)))
    check(not bad, "%d of them are impossible" % bad)
    check(moved >= .98 * len(good), "of %d with a return address moved by a byte %d are" % (len(good), moved))
    check(len(nameless) <= .001 * len(frames), "%d of %d kernel frames have no name: %s" % (
        len(nameless), len(frames), sorted({hex(f["address"]) for f in nameless})))


if __name__ == "__main__":
    sys.exit(main())
