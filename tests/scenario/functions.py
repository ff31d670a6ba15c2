# SPDX-License-Identifier: Apache-2.0
"""The functions of an index beside what objdump says about the same code."""
import bisect
import collections
import re
import subprocess

from fathom import FATHOM, environment

FIBER, NO_RETURN, TAIL_JUMP, INDIRECT_JUMP, ENTRY_IS_RETURN, UNDECODED, IFUNC, UNCONFIRMED = (1 << i for i in range(8))
FLAG_NAMES = {NO_RETURN: "no return", TAIL_JUMP: "tail jump", INDIRECT_JUMP: "indirect jump",
              ENTRY_IS_RETURN: "entry is return", UNDECODED: "undecoded", IFUNC: "resolver",
              UNCONFIRMED: "unconfirmed"}

NO_STACK_CHECK = 0xffffffff
Function = collections.namedtuple("Function", "address flags stack_check restart_off returns linkage name")
LINE = re.compile(r" *([0-9a-f]+):\t(.*)")
MORESTACK = re.compile(r"(?:call|bl)\s.*<runtime\.morestack(?:_noctxt|c)?(?:\.abi0)?>")
RETURN = re.compile(r"(?:(?:repz|repnz|bnd|notrack|data16|cs|ds|rex\S*) )*(?:ret|retq|retaa|retab)\b")


def functions(path, cache, *options):
    r = subprocess.run([FATHOM, "symbolize", "-e", path, "--test-functions", "--cache-directory", cache,
                        *options], env=environment(), capture_output=True, text=True, timeout=600,
                       errors="backslashreplace")
    if r.returncode:
        raise RuntimeError("%s: %s" % (path, r.stderr))
    result = []
    for line in r.stdout.splitlines():
        place, name = line.split("\t", 1)
        address, flags, check, restart, returns, linkage = place.split(" ", 5)
        result.append(Function(int(address, 16), int(flags, 16), int(check, 16), int(restart, 16),
                               [int(a, 16) for a in returns.split(",")] if returns != "-" else [],
                               linkage, name))
    return result


class Disassembly:
    """Where objdump sees instructions begin, which of them return, and where calls of Go's morestack do."""

    def __init__(self, path, objdump="objdump"):
        self.starts, self.returns, self.restarts = set(), set(), set()
        after_morestack = False
        with subprocess.Popen([objdump, "-d", "-z", "-w", "--no-show-raw-insn", path], stdout=subprocess.PIPE,
                              text=True, errors="backslashreplace") as p:
            for line in p.stdout:
                match = LINE.match(line)
                if not match:
                    continue
                address = int(match[1], 16)
                self.starts.add(address)
                if after_morestack:
                    self.restarts.add(address)
                after_morestack = MORESTACK.match(match[2])
                if RETURN.match(match[2]):
                    self.returns.add(address)


def symbol_ranges(path):
    """[low, high) of the sized function symbols, and low of the others, by low."""
    out = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True,
                         errors="backslashreplace").stdout
    ranges = {}
    for line in out.splitlines():
        part = line.split()
        if len(part) >= 8 and part[3] in ("FUNC", "IFUNC") and part[6] != "UND":
            low, size = int(part[1], 16), int(part[2], 0)
            ranges[low] = max(ranges.get(low, 0), low + size)
    return sorted(ranges.items())


class Comparison:
    """What of PATH differs; every RET must be explained."""

    def __init__(self, path, cache, objdump="objdump"):
        self.functions = functions(path, cache)
        self.truth = Disassembly(path, objdump)
        self.returns = {r for f in self.functions for r in f.returns}
        entries = {f.address: f for f in self.functions}
        places = set(entries) | self.returns | {f.address + f.restart_off for f in entries.values() if self.may_restart(f)}
        self.places, self.no_start = len(places), sorted(places - self.truth.starts)
        self.invented = sorted(self.returns - self.truth.returns)
        self.refused, self.unnamed, self.missing = [], [], []
        # Only with names does objdump show what is called.
        self.wrong_restarts = sorted(
            f.address for f in entries.values() if self.truth.restarts and
            self.may_restart(f) and f.address + f.restart_off not in self.truth.restarts)
        order, ranges = sorted(entries), symbol_ranges(path)
        lows = [low for low, _ in ranges]
        for address in sorted(self.truth.returns - self.returns):
            before = bisect.bisect_right(order, address) - 1
            near = entries[order[before]] if before >= 0 else None
            if near and near.flags & UNDECODED:
                self.refused.append(address)
            elif near and near.flags & FIBER:
                self.missing.append(address)
            elif self.covered(ranges, lows, address):
                self.missing.append(address)
            else:
                self.unnamed.append(address)

    @staticmethod
    def may_restart(function):
        return function.stack_check != NO_STACK_CHECK and not function.flags & (UNDECODED | UNCONFIRMED)

    @staticmethod
    def covered(ranges, lows, address):
        """Whether a sized symbol has ADDRESS: one of the last few that begin before it."""
        last = bisect.bisect_right(lows, address)
        return any(low <= address < high for low, high in ranges[max(0, last - 8):last])

    def shares(self):
        """Percent of the entries with each flag."""
        entries = {f.address: f.flags for f in self.functions}
        return {name: 100.0 * sum(1 for flags in entries.values() if flags & flag) / max(len(entries), 1)
                for flag, name in FLAG_NAMES.items()}
