# SPDX-License-Identifier: Apache-2.0
"""Stacks by perf's DWARF unwinder (a copy of the stack with each sample, unwound afterwards) beside
ours, of the same program at the same time.

The two sample at different instants, so chains of callers are compared, without the leaf, and by
function, since a signal or a loop gives one chain a hundred addresses. A function begins where its
entry in .eh_frame_hdr does, so that stripped files have functions too. A chain of perf's counts as
present if one of our stacks contains it without a gap.

Left out of perf's chains: everything beyond a frame without a file (JIT code, where perf has no tables
and guesses), and samples without a caller before that. A chain that perf cuts (its copy of the stack
ends) is compared as far as it goes and counted as cut: none of our stacks ends with its outermost
function. We may have missed a chain that perf saw less than SEEN times: of such a chain the longest
outer part that it saw that often is compared."""
import bisect
import collections
import os
import re
import shutil
import struct
import subprocess

from fathom import (FATHOM, SOURCES, SCRATCH, Workload, built, environment, of_pid, read_profile,
                    scratch, stop, user_frames)

STACK_BYTES = 32768
SEEN = 5
NO_FRAME_POINTERS = "-O2 -g -D_GNU_SOURCE -fomit-frame-pointer -pthread"
Result = collections.namedtuple("Result", "counts missing")


def loads():
    """The programs to run: name -> argv."""
    programs = {
        "c": [built("unwind.c", "unwind-pie", "gcc %s -fPIE -pie -o {out} {source}" %
                    NO_FRAME_POINTERS), "600"],
        "c++": [built("unwind.cc", "unwind-cc", "g++ %s -o {out} {source}" % NO_FRAME_POINTERS),
                "600"],
        "python3": ["python3", os.path.join(SOURCES, "busy.py"), "600"],
    }
    if shutil.which("rustc"):
        programs["rust"] = [built("spin.rs", "unwind-rust", "rustc -O -g -o {out} {source}"), "600"]
    if shutil.which("node"):
        programs["node"] = ["node", os.path.join(SOURCES, "hash.js"), "600"]
    return programs


class _File:
    """The functions of an ELF file, according to its table of unwind data."""

    _PT_LOAD, _PT_GNU_EH_FRAME = 1, 0x6474e550
    _SORTED_TABLE = 0x3b  # 4-byte offsets from the header, as all linkers write it

    def __init__(self, path):
        self.loads, self.starts = [], []
        with open(path, "rb") as f:
            header = f.read(64)
            offset, = struct.unpack_from("<Q", header, 32)
            size, count = struct.unpack_from("<HH", header, 54)
            f.seek(offset)
            table = f.read(size * count)
            for i in range(count):
                kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", table, i * size)
                if kind == self._PT_LOAD:
                    self.loads.append((offset, length, address))
                elif kind == self._PT_GNU_EH_FRAME:
                    f.seek(offset)
                    self._read_table(f.read(length), address)

    def _read_table(self, data, address):
        if data[3] != self._SORTED_TABLE:
            return
        count, = struct.unpack_from("<I", data, 8)
        self.starts = [address + row[0] for row in
                       struct.iter_unpack("<ii", data[12:12 + 8 * count])]

    def address(self, file_offset):
        for offset, length, address in self.loads:
            if offset <= file_offset < offset + length:
                return file_offset - offset + address
        return file_offset

    def function(self, address):
        number = bisect.bisect_right(self.starts, address)
        return self.starts[number - 1] if number else 0


class _Files:
    def __init__(self):
        self._files = {}

    def _get(self, path):
        if path not in self._files:
            self._files[path] = _File(path)
        return self._files[path]

    def function(self, path, address):
        """The key by which a frame is compared; the vDSO counts as one function."""
        return (path, self._get(path).function(address) if path.startswith("/") else 0)

    def function_at(self, path, file_offset):
        if not path.startswith("/"):
            return (path, 0)
        return self.function(path, self._get(path).address(file_offset))


def _sampled(pid, hz, seconds, perf_data, ours):
    """Runs both at once."""
    commands = [
        ["perf", "record", "-q", "-B", "-F", str(hz), "-e", "cpu-clock:u", "-m", "4M", "--call-graph",
         "dwarf,%d" % STACK_BYTES, "-p", str(pid), "-o", perf_data, "--", "sleep", str(seconds)],
        [FATHOM, "record", "-F", str(hz), "-p", str(pid), "-d", str(seconds), "-o", ours]]
    running = [subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
               for command in commands]
    for command, p in zip(commands, running):
        text = p.communicate()[0].decode(errors="replace")
        if p.returncode:
            stop("%s: exit status %d\n%s" % (" ".join(command), p.returncode, text))


def _perf_stacks(path):
    """Each sample's frames, innermost first: (file offset, file or None, symbol)."""
    r = subprocess.run(["perf", "script", "-i", path, "--no-inline", "-F", "pid,ip,sym,dso"],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    line = re.compile(r"\s*([0-9a-f]+) (.*) \((.*?)(?: \(deleted\))?\)$")
    for block in r.stdout.decode(errors="replace").split("\n\n"):
        frames = []
        for text in block.split("\n")[1:]:
            m = line.match(text)
            if m:
                in_file = m.group(3).startswith("/") and "/perf-" not in m.group(3)
                frames.append((int(m.group(1), 16), m.group(3) if in_file or m.group(3) == "[vdso]"
                               else None, m.group(2)))
        if frames:
            yield frames


def _callers(frames, files):
    """The callers in files, up to the first frame without a file."""
    callers = []
    if frames[0][1] is None:
        return callers
    for file_offset, path, _ in frames[1:]:
        if path is None:
            break
        callers.append(files.function_at(path, file_offset))
    return callers


def _ours(path, pid, files):
    """Our stacks, innermost first. A location of several lines is one frame."""
    for sample in of_pid(read_profile(path), pid):
        frames = [files.function(f["mapping"], f["address"])
                  for f in user_frames(sample) if not f["inlined"]]
        if frames:
            yield frames


class _Chains:
    """Many lists of frames; answers whether one contains a given list without a gap."""

    def __init__(self):
        self.numbers = {}
        self.known = set()

    def _text(self, frames):
        return " %s " % " ".join(str(self.numbers.setdefault(f, len(self.numbers))) for f in frames)

    def add(self, frames):
        self.known.add(self._text(frames))

    def has(self, frames):
        text = self._text(frames)
        return any(text in one for one in self.known)


def _well_seen(distinct):
    """For each chain the longest outer part seen SEEN times or more, with its count."""
    outer_parts = collections.Counter()
    for callers, weight in distinct.items():
        for i in range(len(callers)):
            outer_parts[callers[i:]] += weight
    seen = collections.Counter()
    for callers, weight in distinct.items():
        for i in range(len(callers)):
            if outer_parts[callers[i:]] >= SEEN:
                seen[callers[i:]] += weight
                break
    return seen


def compare(name, argv, hz, seconds):
    perf_data, ours = scratch("perf-%s.data" % name), scratch("perf-%s.pb.gz" % name)
    with Workload(argv, cwd=SCRATCH) as w:
        _sampled(w.pid, hz, seconds, perf_data, ours)
        pid = w.pid
    counts, chains, roots, files = collections.Counter(), _Chains(), set(), _Files()
    for frames in _ours(ours, pid, files):
        chains.add(frames)
        roots.add(frames[-1])
    distinct, names = collections.Counter(), {}
    for frames in _perf_stacks(perf_data):
        callers = tuple(_callers(frames, files))
        counts["perf"] += 1
        if callers:
            distinct[callers] += 1
        for i in range(len(callers)):
            names.setdefault(callers[i:], [symbol for _, _, symbol in frames[1 + i:1 + len(callers)]])
    os.unlink(perf_data)
    missing = []
    for callers, weight in _well_seen(distinct).items():
        counts["chains"] += weight
        counts["cut"] += 0 if callers[-1] in roots else weight
        if chains.has(callers):
            counts["present"] += weight
        else:
            missing.append((names[callers], weight))
    return Result(counts, sorted(missing, key=lambda m: -m[1]))


def text(counts):
    return "%.2f%% of %d chains (of %d samples; %d cut by perf)" % (
        100.0 * counts["present"] / max(counts["chains"], 1), counts["chains"], counts["perf"],
        counts["cut"])
