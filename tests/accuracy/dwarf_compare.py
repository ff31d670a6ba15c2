# SPDX-License-Identifier: Apache-2.0
"""dwarf_compare.py FATHOM BINARY LIMIT [DEBUG]: compares `fathom symbolize -e` with llvm-symbolizer for
the addresses in the line table of BINARY, or of its debug file DEBUG, which both find.

Both read a copy with hidden symbol tables: llvm-symbolizer prefers the symbol's name for the outermost
frame, and this compares DWARF. Frames must agree in number, order, linkage name, file, line and
column. Counted by name, not as differences:

  line-0    llvm prints the file of a row that has no line; a location without a line is unknown.
  doubled   the compilation directory is relative and is directory 0 of a version 5 table: llvm 14
            prepends it to itself (./x/./x/a.c). Checked: without the repetition the paths agree.
  no-entry  rows cover the padding between two functions (or code without a function in .debug_info):
            llvm gives a line without a name, we report no function.
  alias     one piece of assembly with several names, each a function in .debug_info: we take the
            first, llvm the last. Checked: both are symbols of the same address.
Prints one line of counts, and examples of differences; exits 1 when there are any.
"""
import collections
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

LLVM = "llvm-symbolizer-14"
DWARFDUMP = "llvm-dwarfdump-14"
SHT_SYMTAB, SHT_DYNSYM, SHT_HIDDEN = 2, 11, 0x6fff0000
SHF_EXECINSTR = 4
EXPLAINED = ("same", "line-0", "doubled", "no-entry", "alias")


def sections(data):
    table, = struct.unpack_from("<Q", data, 0x28)
    count, = struct.unpack_from("<H", data, 0x3c)
    return [table + 64 * i for i in range(count)]


def hide_symbols(path, copy):
    """Writes COPY of an ELF file without symbol tables; returns its executable ranges."""
    code = []
    with open(path, "rb") as f:
        data = bytearray(f.read())
    for at in sections(data):
        kind, flags, address = struct.unpack_from("<IQQ", data, at + 4)
        size, = struct.unpack_from("<Q", data, at + 32)
        if kind in (SHT_SYMTAB, SHT_DYNSYM):
            struct.pack_into("<I", data, at + 4, SHT_HIDDEN)
        if flags & SHF_EXECINSTR:
            code.append((address, address + size))
    with open(copy, "wb") as f:
        f.write(data)
    return code


def row_addresses(path, code, limit):
    dump = subprocess.Popen([DWARFDUMP, "--debug-line", path], stdout=subprocess.PIPE, text=True,
                            errors="replace")
    rows = {int(m.group(1), 16) for m in map(re.compile(r"0x([0-9a-f]{16}) +\d+").match, dump.stdout)
            if m}
    dump.wait()
    rows |= {a - 1 for a in rows} | {a + 1 for a in rows}
    found = sorted(a for a in rows if any(low <= a < high for low, high in code))
    if len(found) > limit:
        found = sorted(random.Random(1).sample(found, limit))
    return found


def ask(command, addresses):
    """{address: [(name, file, line, column), …]}"""
    run = subprocess.run(command, input="".join("0x%x\n" % a for a in addresses), text=True,
                         stdout=subprocess.PIPE, errors="replace")
    if run.returncode:
        raise SystemExit("%s: exit status %d" % (command[0], run.returncode))
    text = run.stdout
    answers = {}
    blocks = text.rstrip("\n").split("\n\n")
    if len(blocks) != len(addresses):
        raise SystemExit("%s: %d answers to %d addresses" % (command[0], len(blocks), len(addresses)))
    for address, block in zip(addresses, blocks):
        lines = block.lstrip("\n").split("\n")
        answers[address] = [(name,) + tuple(where.rsplit(":", 2))
                            for name, where in zip(lines[::2], lines[1::2])]
    return answers


def symbol_addresses(path):
    """{name: addresses}"""
    listed = collections.defaultdict(set)
    for line in subprocess.run(["nm", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, errors="replace").stdout.splitlines():
        fields = line.split()
        if len(fields) == 3:
            listed[fields[2].split("@")[0]].add(fields[0])
    return listed


def undoubled(path):
    """./x/./x/a.c → ./x/a.c: removes the longest repetition."""
    for length in range(len(path) // 2, 0, -1):
        if path[:length].endswith("/") and path[length:2 * length] == path[:length]:
            return path[length:]
    return path


def differs(ours, theirs, symbols, notes):
    """The difference in one frame, or None."""
    if ours[0] != theirs[0]:
        if not symbols[ours[0]] & symbols[theirs[0]]:
            return "name"
        notes.add("alias")
    if ours[2] != theirs[2]:
        return "line"
    if theirs[2] == "0":
        if ours[1] != theirs[1]:
            notes.add("line-0")
        return None
    if ours[1] != theirs[1]:
        if ours[1] != undoubled(theirs[1]):
            return "file"
        notes.add("doubled")
    return "column" if ours[3] != theirs[3] else None


def compare(ours, theirs, symbols):
    if len(theirs) == 1 and theirs[0][0] == "??" and ours[0][0] == "??":
        return "no-entry" if theirs[0][2] != "0" and ours != theirs else "same"
    if len(ours) != len(theirs):
        return "frames"
    notes = set()
    for pair in zip(ours, theirs):
        wrong = differs(*pair, symbols, notes)
        if wrong:
            return wrong
    return notes.pop() if notes else "same"


def main():
    fathom, binary, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
    debug = sys.argv[4] if len(sys.argv) > 4 else binary
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy")
        if os.path.exists(binary + ".dwp"):
            shutil.copy(binary + ".dwp", copy + ".dwp")
        addresses = row_addresses(debug, hide_symbols(binary, copy), limit)
        ours = ask([fathom, "symbolize", "-e", copy, "--no-demangle"], addresses)
        theirs = ask([LLVM, "--obj=" + copy, "--no-demangle", "--inlines",
                      "--functions=linkage", "--output-style=LLVM"], addresses)
    symbols = symbol_addresses(debug)
    counts = collections.Counter()
    examples = []
    for address in addresses:
        verdict = compare(ours[address], theirs[address], symbols)
        counts[verdict] += 1
        if verdict not in EXPLAINED:
            examples.append((verdict, address))
    print("%d addresses: %s" % (len(addresses),
                                ", ".join("%s %d" % c for c in counts.most_common())))
    for verdict, address in examples[:5]:
        print("  %s 0x%x\n    ours %s\n    llvm %s" % (verdict, address, ours[address],
                                                       theirs[address]))
    return 1 if examples or not addresses else 0


sys.exit(main())
