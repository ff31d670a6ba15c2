#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# May run beside another test: it judges what samples say, no shares of time.
"""Pairs of adjacent frames against machine code: foreign programs at work are recorded from their
first instant on, and each caller's return address must come after a call; the target of a direct
call must be the callee's function. A function begins where its entry in .eh_frame_hdr does, so that
stripped programs are no exception. A call may also reach its callee through jumps: of a PLT's stub,
of a tail call, to a cold part. A path that ends in an indirect jump proves nothing and is counted as
`unproved`; so is a function that contains none of these jumps but is entered by none of the calls
seen: that is impossible, and a failure.

Short: four programs. FULL=1: all that are installed, of at least fifteen. ONLY="xz lua" chooses. INDEXED=1:
each is recorded twice, and of the second recording's stacks whose tables exist and came in time 99.5 % must be
whole (for guests where the first second passes before a table can be loaded). KEPT=DIR only records, into DIR; with MACHINE, SYSROOT
and OBJDUMP as well it judges what is there, recorded on another machine whose files are below SYSROOT."""
import bisect
import collections
import mmap
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from pprof_read import Profile  # noqa: E402

FULL = bool(os.environ.get("FULL"))
FATHOM = os.environ.get("FATHOM", os.path.join(os.environ.get("FATHOM_BUILD", "build"), "fathom"))
MACHINE, SYSROOT, KEPT = (os.environ.get(name, "") for name in ("MACHINE", "SYSROOT", "KEPT"))
OBJDUMP = os.environ.get("OBJDUMP", "objdump")
ARM = (MACHINE or platform.machine()) == "aarch64"
ONLY, INDEXED = os.environ.get("ONLY", "").split(), bool(os.environ.get("INDEXED"))
SHORT = ("python3", "perl", "openssl", "cc1")
LEAST_PROGRAMS, LEAST_PAIRS = (15, 5000) if FULL else (4, 300)
if ONLY:
    LEAST_PROGRAMS, LEAST_PAIRS = len(ONLY), 75 * len(ONLY)
LEAST_WHOLE = .995
SECONDS = 6 if FULL else 3
MOST_JUMPS = 6  # between a call and its callee
WIDTH, HEIGHT = 640, 352  # of the video that is encoded

C_SOURCE = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define F(n) int f##n(int a, char *b) { char c[64]; for (int i = 0; i < a; i++) \\
    { snprintf(c, sizeof c, "%d %s", i * n, b); a += strlen(c) % 3; } return a ? a : f##n(a + 1, c); }
#define T(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
#define H(n) T(n##0) T(n##1) T(n##2) T(n##3) T(n##4) T(n##5) T(n##6) T(n##7) T(n##8) T(n##9)
H(1) H(2) H(3) H(4) H(5) H(6) H(7) H(8) H(9)
"""
CC_SOURCE = """#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
int main() { std::regex r("a.*b|c"); std::map<std::string, std::vector<std::function<int(int)>>> m;
    m["a"].push_back([](int x) { return x + 1; });
    std::cout << std::regex_match("ab", r) << m["a"][0](1); }
"""


def write_video(path):
    """Forty frames that move."""
    line = bytes((x * x // 7 ^ x * 3) & 255 for x in range(WIDTH + 999))
    with open(path, "wb") as f:
        for frame in range(40):
            for y in range(HEIGHT * 3 // 2):
                at = (y * 5 + frame * 3) % 999
                f.write(line[at:at + WIDTH])


def programs(where):
    """name -> argv. The commands end by themselves or are ended."""
    with open(where + "/a.c", "w") as f:
        f.write(C_SOURCE)
    with open(where + "/a.cc", "w") as f:
        f.write(CC_SOURCE)
    with open(where + "/text", "wb") as f:
        for i in range(400000):
            f.write(b"%d some words of text %d\n" % (i * 7919 % 100003, i))
    text = where + "/text"
    with open(where + "/a.json", "w") as f:
        f.write("[%s]" % ",".join('{"a":%d,"b":"x%d","c":[1,2,%d]}' % (i, i, i) for i in range(60000)))
    with open(where + "/a.ps", "w") as f:
        f.write("%!PS\n/Times-Roman findfont 12 scalefont setfont\n0 1 100000 { 500 mod 72 exch moveto "
                "(some words) show 300 400 100 200 50 60 curveto stroke } for showpage\n")
    if FULL or "x264" in ONLY:
        write_video(where + "/a.yuv")
    loop = "while :; do %s; done"
    sql = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 9000000) "
           "SELECT count(*), sum(length(hex(x))), max(x%97) FROM c GROUP BY x%1000;")
    all_of_them = {
        "python3": ["python3", os.path.join(ROOT, "tests/workloads/busy.py"), "60"],
        "perl": ["perl", "-e", 'while(1){my %h;$h{$_%1000}.=sprintf("%d",$_) for 1..99999;'
                               'my @s=sort{$a<=>$b}keys %h; my $t=join ",",@s; $t=~s/(\\d)1/$1/g;}'],
        "openssl": ["openssl", "speed", "-seconds", "2", "rsa2048", "ecdsap256", "sha256"],
        "cc1": ["gcc", "-O2", "-c", where + "/a.c", "-o", "/dev/null"],
        "clang": ["clang++", "-O2", "-c", where + "/a.cc", "-o", "/dev/null"],
        "git": ["sh", "-c", loop % ("git -C %s log --stat -n 300 >/dev/null" % ROOT)],
        "gzip": ["sh", "-c", loop % ("gzip -9 -c %s >/dev/null" % text)],
        "xz": ["xz", "-9", "-k", "-c", text],
        "zstd": ["zstd", "-19", "-q", "-c", text],
        "sqlite3": ["sqlite3", ":memory:", sql],
        "gs": ["gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=ppmraw", "-r300", "-o", "/dev/null",
               where + "/a.ps"],
        "ffmpeg": ["ffmpeg", "-v", "quiet", "-nostdin", "-f", "lavfi", "-i", "mandelbrot=size=640x480",
                   "-t", "20", "-c:v", "mpeg4", "-f", "null", "-"],
        "x264": ["x264", "--quiet", "--threads", "1", "--preset", "slower", "--demuxer", "raw", "--fps", "25",
                 "--input-res", "%dx%d" % (WIDTH, HEIGHT), "-o", "/dev/null", where + "/a.yuv"],
        "php": ["php", "-r", 'while(1){$a=[];for($i=0;$i<99999;$i++){$a[$i%1000]=md5((string)$i);}'
                             'sort($a);preg_replace("/a(b|c)/","x",join($a));}'],
        "ruby": ["ruby", "-e", "loop{(0..99999).map{|i|i*7919%100003}.sort_by{|x|-x}.map(&:to_s).group_by(&:size)}"],
        "lua": ["lua5.4", "-e", "while true do local t={} for i=1,99999 do t[i]=tostring(i*7919%100003) end "
                                "table.sort(t) table.concat(t):gsub('1','2') end"],
        "gawk": ["gawk", "{n[$1%100]+=length($0); gsub(/o/,\"0\"); s=s substr($0,1,1)} END{print length(s)}",
                 text, text, text, text, text, text],
        "sort": ["sort", "--parallel=1", "-k2", "-n", "-r", text, text, text, text],
        "tar": ["sh", "-c", loop % ("tar -C %s -cJf - tests >/dev/null" % ROOT)],
        "jq": ["sh", "-c", loop % ("jq -c 'map(.a+(.c|add))|add' %s/a.json >/dev/null" % where)],
        "node": ["node", os.path.join(ROOT, "tests/workloads/hash.js"), "60"],
        "grep": ["sh", "-c", loop % ("grep -cE '(a|b)*c|9.*1.*2$' %s >/dev/null" % text)],
        "bash": ["bash", "-c", "while :; do x=; for i in {1..2000}; do x=${x:0:50}$((i*i)); done; done"],
    }
    return {name: argv for name, argv in all_of_them.items()
            if (shutil.which(argv[0]) or MACHINE) and (name in ONLY if ONLY else FULL or name in SHORT)}


class Code:
    """An ELF file's code and where its functions begin."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as f:
            self.bytes = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        offset, = struct.unpack_from("<Q", self.bytes, 32)
        size, count = struct.unpack_from("<HH", self.bytes, 54)
        self.loads, self.starts, self._jumps, self._plt = [], [], {}, None
        for i in range(count):
            kind, _, off, address, _, length = struct.unpack_from("<IIQQQQ", self.bytes, offset + i * size)
            if kind == 1:
                self.loads.append((off, length, address))
            elif kind == 0x6474e550 and self.bytes[off + 3] == 0x3b:
                entries, = struct.unpack_from("<I", self.bytes, off + 8)
                self.starts = [address + row[0] for row in struct.iter_unpack(
                    "<ii", self.bytes[off + 12:off + 12 + 8 * entries])]

    def address(self, file_off):
        for off, length, address in self.loads:
            if off <= file_off < off + length:
                return file_off - off + address
        return None

    def at(self, address, count):
        for off, length, start in self.loads:
            if start <= address and address + count <= start + length:
                return self.bytes[off + address - start:off + address - start + count]
        return b""

    def function(self, address):
        """[begin, end) of the function at `address`, as far as the table knows."""
        i = bisect.bisect_right(self.starts, address)
        if not i:
            # Of .init, which may have no entry: it begins the segment.
            begins = [start for _, length, start in self.loads if start <= address < start + length]
            return (begins[0], self.starts[0]) if begins and self.starts else None
        return self.starts[i - 1], self.starts[i] if i < len(self.starts) else self.starts[i - 1] + 4096

    def call_before(self, address):
        """("direct", target), ("indirect", None) or None."""
        if ARM:
            word, = struct.unpack("<I", self.at(address - 4, 4) or b"\0\0\0\0")
            if word >> 26 == 0x25:
                offset = word & 0x3ffffff
                return "direct", address - 4 + 4 * (offset - (offset >> 25 << 26))
            return ("indirect", None) if word & 0xfffffc1f == 0xd63f0000 or word >> 21 == 0x6b9 else None
        before = self.at(address - 8, 8)
        # FF /2: its length follows from ModRM, SIB and displacement.
        indirect = False
        for i in range(len(before) - 1):
            if before[i] == 0xff and before[i + 1] >> 3 & 7 == 2:
                mod, rm = before[i + 1] >> 6, before[i + 1] & 7
                length = 2 + (0 if mod == 3 else (rm == 4) + {0: 4 if rm == 5 else 0, 1: 1, 2: 4}[mod])
                if mod == 0 and rm == 4 and i + 2 < len(before) and before[i + 2] & 7 == 5:
                    length += 4
                indirect |= i + length == len(before)
        if len(before) == 8 and before[3] == 0xe8:
            target = (address + struct.unpack("<i", before[4:])[0]) & (2 ** 64 - 1)
            if self.at(target, 1):
                return "direct", target
        return ("indirect", None) if indirect else None

    def jumps(self, begin, end):
        """Targets outside of [begin, end) of its direct jumps; None among them: an indirect one."""
        if (begin, end) not in self._jumps:
            text = subprocess.run([OBJDUMP, "-d", "--no-show-raw-insn", "--start-address=%#x" % begin,
                                   "--stop-address=%#x" % end, self.path], capture_output=True, text=True).stdout
            found = set()
            for line in text.splitlines():
                op = re.match(r"\s+[0-9a-f]+:\t(?:bnd |notrack )?(j\w+|b|b\.\w+|br|cbn?z|tbn?z)\s+(.*)", line)
                if not op:
                    continue
                target = re.search(r"(?:^|, )(?:0x)?([0-9a-f]+)(?: <.*>)?$", op[2])
                if target and "*" not in op[2]:
                    to = int(target[1], 16)
                    if not begin <= to < end:
                        found.add(to)
                elif op[1] in ("jmp", "br"):
                    found.add(None)
            self._jumps[begin, end] = found
        return self._jumps[begin, end]

    def reaches(self, target, is_there):
        """Whether a call of `target` can come to where is_there(address, its function): True, False, or None."""
        seen, todo, proved = set(), [target], True
        for _ in range(MOST_JUMPS):
            further = []
            for at in todo:
                where = self.function(at)
                if is_there(at, where):
                    return True
                # Stubs of a PLT have one entry in the table together, or none.
                if not where or self.is_plt(at) or where[1] - where[0] > 1 << 20:
                    where = at, at + 16
                if where in seen:
                    continue
                seen.add(where)
                jumps = self.jumps(*where)
                proved &= None not in jumps
                further += jumps - {None}
            todo = further
        return False if proved and not todo else None

    def reaches_function(self, target, callee):
        wanted = self.function(callee)
        return self.reaches(target, lambda at, function: wanted and function == wanted)

    def reaches_plt(self, target):
        return self.reaches(target, lambda at, function: self.is_plt(at))

    def is_plt(self, address):
        if self._plt is None:
            text = subprocess.run(["readelf", "-SW", self.path], capture_output=True, text=True).stdout
            self._plt = [(int(m[1], 16), int(m[1], 16) + int(m[2], 16)) for m in re.finditer(
                r"\.plt\S*\s+PROGBITS\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", text)]
        return any(low <= address < high for low, high in self._plt)


SYSCALL = b"\x0f\x05"
SIGRETURN = b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"


class Checker:
    def __init__(self):
        self.files, self.counts, self.bad, self.known = {}, collections.Counter(), [], {}

    def code(self, path):
        if path not in self.files:
            try:
                self.files[path] = Code(SYSROOT + path)
            except (OSError, ValueError, struct.error):
                self.files[path] = None
        return self.files[path]

    def judge(self, callee, caller, is_root):
        """Of two frames, each (file, file offset). IS_ROOT: none is further out than the caller."""
        code = self.code(caller[0])
        address = code and code.address(caller[1])
        if address is None:
            return "no file"
        inner = self.code(callee[0])
        inner_address = inner and inner.address(callee[1])
        # One of the two is what signal handlers return to. It has not called the handler, and what was interrupted has
        # not called it. As the innermost frame it is at its system call.
        if not ARM and (SIGRETURN in code.at(address, 10) or inner_address is not None and any(
                SIGRETURN in inner.at(inner_address + back, 10) for back in (-SIGRETURN.index(SYSCALL), 0, 1))):
            return "signal"
        # The profile has the byte before the return address.
        call = code.call_before(address + 1)
        if not call:
            # makecontext() lets the stack begin as if the instruction before __start_context() had called.
            placed = is_root and address + 1 in code.starts
            return "placed" if placed else "no call"
        if call[0] == "indirect":
            return "indirect"
        if code is not inner:
            return {True: "through a plt", None: "unproved", False: "wrong target"}[code.reaches_plt(call[1])]
        if inner_address is None:
            return "no file"
        return {True: "direct", None: "unproved", False: "wrong target"}[code.reaches_function(call[1], inner_address)]

    def sample(self, frames):
        while frames and not frames[-1][0].startswith("/"):
            frames = frames[:-1]
        for i, (callee, caller) in enumerate(zip(frames, frames[1:])):
            if not (callee[0].startswith("/") and caller[0].startswith("/")):
                continue
            pair = callee, caller
            if pair not in self.known:
                verdict = self.known[pair] = self.judge(callee, caller, i + 2 == len(frames))
                self.counts[verdict] += 1
                if verdict in ("no call", "wrong target"):
                    self.bad.append((verdict, callee, caller))


def recorded(name, argv, where, again=False):
    out = "%s/%s%s.pb.gz" % (KEPT or where, name, "-again" * again)
    if KEPT and MACHINE:
        return Profile(out) if os.path.exists(out) else None
    if os.path.exists(out):
        os.unlink(out)
    command = [FATHOM, "record", "-q", "-U", "-F", "499", "-d", str(SECONDS), "-o", out, "--cache-directory",
               where + "/cache", "--"] + argv
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        p.wait(timeout=240)
    finally:
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # the program's processes have ended
    return Profile(out) if os.path.exists(out) else None


def can_fail(checker):
    """Of pairs whose return address is moved by a byte, how many are found impossible; and all of them."""
    good = [pair for pair, verdict in checker.known.items() if verdict in ("direct", "indirect", "through a plt")]
    moved = [checker.judge(callee, (file, offset + 1), False) for callee, (file, offset) in good]
    return sum(verdict in ("no call", "wrong target") for verdict in moved), len(moved)


def judge_profile(checker, profile):
    """Checks the pairs; returns the weights of whole stacks, of all, and of those whose tables are missing or were late."""
    good = count = late = 0
    for s in profile.samples if profile else []:
        frames = [f for f in s["frames"] if not f["inlined"]]
        # Nobody could have walked where [no stack] is.
        if not frames or frames[-1]["func"].startswith("[no stack"):
            continue
        count += s["values"][0]
        good += s["values"][0] * (not frames[-1]["func"].startswith("[truncated"))
        late += s["values"][0] * (frames[-1]["func"] in ("[truncated: not_loaded]", "[truncated: no_table]"))
        checker.sample([(f["mapping"], f["file_off"]) for f in frames])
    return good, count, late


def main():
    failed = False
    checker, whole, all_samples, all_late, done = Checker(), 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as where:
        for name, argv in programs(where).items():
            before = sum(checker.counts.values())
            first = recorded(name, argv, where) if INDEXED else None
            profile = recorded(name, argv, where, INDEXED)
            if not profile:
                print("FAIL %s: no profile" % name)
                failed = True
                continue
            if KEPT and not MACHINE:
                continue
            judge_profile(checker, first)
            good, count, late = judge_profile(checker, profile)
            pairs = sum(checker.counts.values()) - before
            whole, all_samples, done = whole + good, all_samples + count, done + (pairs > 0)
            all_late += late
            print("%-8s %5d of %5d stacks whole, %d without tables, %5d new pairs" % (name, good, count, late, pairs), flush=True)
    if KEPT and not MACHINE:
        return 0
    noticed, moved = can_fail(checker)
    failed |= noticed < 0.98 * moved
    for verdict, callee, caller in checker.bad[:20]:
        print("FAIL %s: %s+%#x called from %s+%#x" % ((verdict,) + callee + caller))
    pairs = sum(checker.counts.values())
    possible = sum(checker.counts[v] for v in ("direct", "indirect", "through a plt", "signal", "placed"))
    failed |= bool(checker.bad) or done < LEAST_PROGRAMS or pairs < LEAST_PAIRS
    failed |= INDEXED and (whole < LEAST_WHOLE * (all_samples - all_late) or all_late > all_samples / 2)
    print("%s: %s" % ("failed" if failed else "passed", dict(checker.counts)))
    print("of %d pairs with a return address moved by a byte %d are impossible" % (moved, noticed))
    print("%d programs, %d different pairs, %d possible, %d impossible, %d of %d stacks whole" % (
        done, pairs, possible, len(checker.bad), whole, all_samples))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
