# SPDX-License-Identifier: Apache-2.0
"""Where a program's functions begin and return, as nm and objdump say, in the form that
tests/bpf/latency_drive.h reads. A source of truth for tests, independent of the index."""
import re
import subprocess

# Offsets in struct g and m by Go version: m in g, curg in m, goid in g. From DWARF.
GO_OFFSETS = {(1, 16): (48, 192, 152), (1, 20): (48, 192, 152), (1, 21): (48, 192, 152),
              (1, 23): (48, 192, 160), (1, 24): (48, 192, 160), (1, 25): (48, 184, 152),
              (1, 26): (48, 184, 152), (1, 27): (48, 184, 152)}
NO_STACK_CHECK = 0xffffffff
SIMPLE = re.compile(r"\bcmp\s+(?:0x10\(%r14\),%rsp|%rsp,0x10\(%r14\)|0x10\(%rcx\),%rsp)")
LARGE = re.compile(r"\blea\s+-(0x[0-9a-f]+)\(%rsp\),%(r12|rax)")
# Until 1.16: (sp + A) - guard <= B.
OLD_ADD = re.compile(r"\blea\s+(0x[0-9a-f]+)\(%rsp\),%rax")
OLD_LIMIT = re.compile(r"\bcmp\s+\$(0x[0-9a-f]+),%rax")
HUGE = re.compile(r"\bsub\s+\$(0x[0-9a-f]+),%(r12|rsi)")


def tool(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def segments(path):
    """(address, file offset, size) of each loaded segment."""
    found = re.findall(r"^  LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", tool("readelf", "-lW", path), re.M)
    return [(int(start, 16), int(off, 16), int(size, 16)) for off, start, size in found]


def file_offset(loaded, address):
    for start, off, size in loaded:
        if start <= address < start + size:
            return address - start + off
    raise ValueError("%#x is in no segment" % address)


def functions(path):
    """{name: (address, size)} of all functions with a size."""
    found = {}
    for line in tool("nm", "-S", "--defined-only", path).splitlines():
        fields = line.split(None, 3)
        if len(fields) == 4 and fields[2] in "tTwW":
            found[fields[3]] = (int(fields[0], 16), int(fields[1], 16))
    return found


def code_of(path, address, size):
    """[(address, instruction)]"""
    text = tool("objdump", "-d", "--no-show-raw-insn", "--start-address=%#x" % address,
                "--stop-address=%#x" % (address + size), path)
    return [(int(m[1], 16), m[2].strip()) for m in re.finditer(r"^ +([0-9a-f]+):\t(.*)$", text, re.M)]


def stack_check(code):
    """By how much a Go prologue lowers sp before it compares it with the stack's guard."""
    added = None
    for _, instruction in code[:12]:
        if OLD_ADD.search(instruction):
            added = int(OLD_ADD.search(instruction)[1], 16)
        if added and OLD_LIMIT.search(instruction):
            return int(OLD_LIMIT.search(instruction)[1], 16) - added
        if LARGE.search(instruction) or HUGE.search(instruction):
            return int((LARGE.search(instruction) or HUGE.search(instruction))[1], 16)
        if SIMPLE.search(instruction):
            return 0
        if re.match(r"call|ret|push", instruction):
            break
    return NO_STACK_CHECK


def restart_offset(code):
    """From a Go function's entry to where its call of morestack returns; 0 = none."""
    after = [code[i + 1][0] for i, (_, instruction) in enumerate(code[:-1])
             if re.match(r"call .*runtime\.morestack", instruction)]
    return after[-1] - code[0][0] if after else 0


def is_return(instruction):
    return re.match(r"(bnd |repz |rep )?ret", instruction) is not None


def sites_of(path, name, place, fiber, check=None, restart=None):
    """The lines for one function at PLACE; of Go if it is on a FIBER's stack."""
    loaded = segments(path)
    code = code_of(path, *place)
    if check is None:
        check = stack_check(code) if fiber else NO_STACK_CHECK
    if restart is None:
        restart = restart_offset(code) if fiber else 0
    lines = ["function %s %d %d %d" % (name, fiber, check, restart),
             "entry %#x" % file_offset(loaded, place[0])]
    if restart:
        lines.append("again %#x" % file_offset(loaded, place[0] + restart))
    return lines + ["return %#x" % file_offset(loaded, address) for address, instruction in code
                    if is_return(instruction)]


def go_line(version, tls=-8):
    m, curg, goid = GO_OFFSETS[version]
    return "go %d %d %d %d" % (tls, m, curg, goid)
