# SPDX-License-Identifier: Apache-2.0
"""Programs that run (they spin) and are expensive to index: sections of a few hundred KB to a few MB
whose straightforward reading takes minutes of CPU time or gigabytes of memory."""
import lzma
import shutil
import struct
import subprocess
import zlib

BASE = 0x400000
CODE = b"\xeb\xfe" + b"\x90" * 4094  # spin: jmp spin
CODE_OFF = 0x1000
TEXT = BASE + CODE_OFF
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_NOTE = 1, 2, 3, 7
SHF_ALLOC_EXEC, SHF_COMPRESSED = 6, 0x800
MB = 1 << 20
CIE = struct.pack("<IIBBBBB", 16, 0, 1, 0, 1, 0x78, 0x10) + b"\x0c\7\x08" + bytes(4)  # of .eh_frame


class Section:
    def __init__(self, name, data=b"", type=SHT_PROGBITS, flags=0, address=0, link=0, entry=0, same_as=None):
        self.name, self.data, self.type, self.flags = name, data, type, flags
        self.address, self.link, self.entry, self.same_as = address, link, entry, same_as


def elf(sections, code_bytes=None, code=CODE):
    """An ELF file; section 1 is .text, with CODE; CODE_BYTES: its size in memory, if that is another. SAME_AS: index
    into SECTIONS of the section whose bytes it shares."""
    sections = [Section(".text", flags=SHF_ALLOC_EXEC, address=TEXT), *sections]
    code_bytes = code_bytes or len(code)
    names = b"\0" + b"".join(s.name.encode() + b"\0" for s in sections) + b".shstrtab\0"
    out = bytearray(CODE_OFF) + code
    places = [(CODE_OFF, code_bytes)]
    for s in sections[1:]:
        if s.same_as is not None:
            places.append(places[s.same_as + 1])
            continue
        out += bytes(-len(out) % 16)
        places.append((len(out), len(s.data)))
        out += s.data
    names_off = len(out)
    out += names + bytes(-(len(out) + len(names)) % 16)
    shoff = len(out)
    out += bytes(64)
    at = 1
    for s, (off, size) in zip(sections, places):
        out += struct.pack("<IIQQQQIIQQ", at, s.type, s.flags, s.address, off, size, s.link, 0, 1, s.entry)
        at += len(s.name) + 1
    out += struct.pack("<IIQQQQIIQQ", at, SHT_STRTAB, 0, 0, names_off, len(names), 0, 0, 1, 0)
    count = len(sections) + 2
    many = count >= 0xff00
    if many:
        struct.pack_into("<QI", out, shoff + 32, count, count - 1)
    phoff = 64
    out[:64] = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, TEXT, phoff, shoff, 0, 64, 56, 1,
                           64, 0 if many else count, 0xffff if many else count - 1)
    struct.pack_into("<IIQQQQQQ", out, phoff, 1, 5, CODE_OFF, TEXT, TEXT, len(code), code_bytes, 4096)
    return bytes(out)


def uleb(n):
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n > 127 else 0))
        n >>= 7
        if not n:
            return bytes(out)


def abbrev(code, tag, children, *attributes):
    return uleb(code) + uleb(tag) + bytes([children]) + b"".join(
        uleb(a) + uleb(f) + (uleb(v[0]) if v else b"") for a, f, *v in attributes) + b"\0\0"


def unit(dies, abbrev_off=0, version=4):
    body = struct.pack("<HIB", version, abbrev_off, 8) + dies if version < 5 else \
        struct.pack("<HBBI", version, 1, 8, abbrev_off) + dies
    return struct.pack("<I", len(body)) + body


CU, SUBPROGRAM, NAMESPACE = 0x11, 0x2e, 0x39
NAME, LOW, HIGH, RANGES, STMT = 0x03, 0x11, 0x12, 0x55, 0x10
ADDR, DATA4, STRP, FLAG_PRESENT, SEC_OFFSET, STRING, IMPLICIT = 0x01, 0x06, 0x0e, 0x19, 0x17, 0x08, 0x21
FUNCTION_AT = struct.pack("<QI", TEXT, 16)


def shared_abbreviations():
    """80,000 units that share a table of 200,000 abbreviations."""
    table = b"".join(abbrev(i, CU, 0) for i in range(1, 200001)) + b"\0"
    return elf([Section(".debug_info", unit(b"\1") * 80000), Section(".debug_abbrev", table)])


def abbreviation_suffixes():
    """Units whose tables are the suffixes of one long table."""
    one = abbrev(1, CU, 0)
    table = one * 100000 + b"\0"
    info = b"".join(unit(b"\1", abbrev_off=len(one) * i) for i in range(100000))
    return elf([Section(".debug_info", info), Section(".debug_abbrev", table)])


def many_attributes():
    """Entries of one byte with 900,000 attributes that take no bytes."""
    table = abbrev(1, CU, 1) + uleb(2) + uleb(SUBPROGRAM) + b"\0" + uleb(LOW) + uleb(FLAG_PRESENT)
    table += (uleb(NAME) + uleb(FLAG_PRESENT)) * 900000 + b"\0\0\0"
    return elf([Section(".debug_info", unit(b"\1" + b"\2" * 200000 + b"\0")), Section(".debug_abbrev", table)])


def zstd(data):
    return subprocess.run([shutil.which("zstd"), "-19", "-c"], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True).stdout


def compressed(kind, size, packed):
    return struct.pack("<IIQQ", kind, 0, size, 1) + packed


def inflating(kind, compress, megabytes=1000):
    table = abbrev(1, CU, 0) + b"\0"
    data = compressed(kind, megabytes * MB, compress(bytes(megabytes * MB)))
    return elf([Section(".debug_info", data, flags=SHF_COMPRESSED), Section(".debug_abbrev", table)])


def inflating_zlib():
    return inflating(1, lambda data: zlib.compress(data, 9))


def inflating_zstd():
    return inflating(2, zstd)


def inflating_badly():
    """Sections that inflate to 64 MB and then turn out to be broken, 2,000 of them."""
    data = compressed(1, 64 * MB - 1, zlib.compress(bytes(64 * MB), 9))
    first = Section(".symtab", data, type=SHT_SYMTAB, flags=SHF_COMPRESSED, entry=24)
    more = [Section("s", type=SHT_SYMTAB, flags=SHF_COMPRESSED, entry=24, same_as=0) for _ in range(2000)]
    return elf([first, *more])


def range_lists():
    """200,000 functions of two bytes that share a list of 60,000 ranges."""
    table = abbrev(1, CU, 1) + abbrev(2, SUBPROGRAM, 0, (RANGES, IMPLICIT, 0), (NAME, STRING)) + b"\0"
    ranges = b"".join(struct.pack("<QQ", TEXT + i % 4000, TEXT + i % 4000 + 1) for i in range(60000)) + bytes(16)
    return elf([Section(".debug_info", unit(b"\1" + b"\2\0" * 200000 + b"\0")), Section(".debug_abbrev", table),
                Section(".debug_ranges", ranges)])


def line_headers():
    """20,000 units that share a line table of 100,000 files."""
    table = abbrev(1, CU, 0, (STMT, SEC_OFFSET)) + b"\0"
    header = b"\1\1\1\xfb\x0e\x0d" + b"\0\1\1\1\1\0\0\0\1\0\0\1" + b"\0" + b"f\0\0\0\0" * 100000 + b"\0"
    line = struct.pack("<HI", 4, len(header)) + header
    return elf([Section(".debug_info", unit(b"\1" + bytes(4)) * 20000), Section(".debug_abbrev", table),
                Section(".debug_line", struct.pack("<I", len(line)) + line)])


def line_entries():
    """20,000 line tables with a million files each, which take no bytes."""
    table = abbrev(1, CU, 0, (STMT, SEC_OFFSET)) + b"\0"
    header = b"\1\1\1\xfb\x0e\x0d" + b"\0\1\1\1\1\0\0\0\1\0\0\1" + b"\0\0" + b"\1\1\x19" + uleb(1000000)
    line = struct.pack("<HBBI", 5, 8, 0, len(header)) + header
    line = struct.pack("<I", len(line)) + line
    info = b"".join(unit(b"\1" + struct.pack("<I", i * len(line))) for i in range(20000))
    return elf([Section(".debug_info", info), Section(".debug_abbrev", table), Section(".debug_line", line * 20000)])


def long_paths():
    """100,000 files in one directory whose name has 4,000 bytes, each with a line."""
    table = abbrev(1, CU, 0, (STMT, SEC_OFFSET)) + b"\0"
    count = 100000
    files = b"".join(b"%x\0\1\0\0" % i for i in range(count))
    header = b"\1\1\1\xfb\x0e\x0d" + b"\0\1\1\1\1\0\0\0\1\0\0\1" + b"/" + b"d" * 4000 + b"\0\0" + files + b"\0"
    program = b"\0\x09\2" + struct.pack("<Q", TEXT)
    program += b"".join(b"\4" + uleb(i + 1) + b"\x21" for i in range(count)) + b"\x02\1\0\1\1"
    line = struct.pack("<HI", 4, len(header)) + header + program
    return elf([Section(".debug_info", unit(b"\1" + bytes(4))), Section(".debug_abbrev", table),
                Section(".debug_line", struct.pack("<I", len(line)) + line)], code_bytes=1 << 24)


def long_names():
    """60,000 functions named by the suffixes of one string of a megabyte."""
    table = abbrev(1, CU, 1) + abbrev(2, SUBPROGRAM, 0, (NAME, STRP), (LOW, ADDR), (HIGH, DATA4)) + b"\0"
    dies = b"".join(b"\2" + struct.pack("<I", i) + FUNCTION_AT for i in range(60000))
    return elf([Section(".debug_info", unit(b"\1" + dies + b"\0")), Section(".debug_abbrev", table),
                Section(".debug_str", b"x" * MB + b"\0")])


def deep_nesting():
    """Functions without linkage names inside 30 and 500 namespaces with names of 100 bytes, in many units."""
    table = abbrev(1, CU, 1) + abbrev(2, NAMESPACE, 1, (NAME, STRP)) + abbrev(
        3, SUBPROGRAM, 0, (NAME, STRING), (LOW, ADDR), (HIGH, DATA4)) + b"\0"
    functions = b"".join(b"\3" + b"%x\0" % i + FUNCTION_AT for i in range(4000))
    one = unit(b"\1" + (b"\2" + bytes(4)) * 30 + functions + b"\0" * 31)
    deep = unit(b"\1" + (b"\2" + bytes(4)) * 500 + functions + b"\0" * 501)
    return elf([Section(".debug_info", (one + deep) * 20), Section(".debug_abbrev", table),
                Section(".debug_str", b"n" * 100 + b"\0")])


def symbol(name, address=TEXT, size=16, info=0x12, section=1):
    return struct.pack("<IBBHQQ", name, info, 0, section, address, size)


def symbol_suffixes():
    """60,000 symbols named by the suffixes of one string of 60,000 bytes."""
    table = bytes(24) + b"".join(symbol(i + 1) for i in range(60000))
    return elf([Section(".symtab", table, type=SHT_SYMTAB, link=3, entry=24),
                Section(".strtab", b"\0" + b"x" * 60000 + b"\0", type=SHT_STRTAB)])


def symbols_of_one_address():
    """60,000 functions and 60,000 mangled symbols of other names, all at one address."""
    table = abbrev(1, CU, 1) + abbrev(2, SUBPROGRAM, 0, (NAME, STRING), (LOW, ADDR), (HIGH, DATA4)) + b"\0"
    dies = b"".join(b"\2" + b"f%x\0" % i + FUNCTION_AT for i in range(60000))
    strings, symbols = bytearray(b"\0"), bytearray(24)
    for i in range(60000):
        symbols += symbol(len(strings))
        strings += b"_Z6g%05dv\0" % i
    return elf([Section(".symtab", bytes(symbols), type=SHT_SYMTAB, link=3, entry=24),
                Section(".strtab", bytes(strings), type=SHT_STRTAB),
                Section(".debug_info", unit(b"\1" + dies + b"\0")), Section(".debug_abbrev", table)])


def many_symbol_tables():
    """60,000 symbol tables over the same 60,000 symbols."""
    table = bytes(24) + b"".join(symbol(1) for i in range(60000))
    first = [Section(".symtab", table, type=SHT_SYMTAB, link=3, entry=24),
             Section(".strtab", b"\0name\0", type=SHT_STRTAB)]
    return elf(first + [Section("t", type=SHT_SYMTAB, link=3, entry=24, same_as=0) for _ in range(60000)])


def frame_entries():
    """300,000 entries at one address."""
    out = bytearray(CIE)
    for i in range(300000):
        out += struct.pack("<IIQQ", 20, len(out) + 4, TEXT, 4096)
    return elf([Section(".eh_frame", bytes(out), address=0x900000)])


def wide_entry():
    """One entry for 3 GB of code that takes no bytes."""
    return elf([Section(".eh_frame", CIE + struct.pack("<IIQQ", 20, 24, TEXT, 3 << 30), address=TEXT + (3 << 30))],
               code_bytes=3 << 30)


def calls_without_tables():
    """40,000 calls in a function without a table. The next function may begin behind each of them, unless what
    follows pops more than it pushes, which only the last instructions tell."""
    call = b"\x0f\x1f\x44\0\0" + b"\x66\x90" + b"\x90" + b"\x0f\x1f\0" + b"\xe8\0\0\0\x10"  # nops first
    code = b"\x85\xc0" + b"\x90" * 14 + call * 40000 + b"\x58\x58\xc3"  # test; ...; pop; pop; ret
    entry = struct.pack("<IIQQ", 20, 24, TEXT, len(CODE))
    return elf([Section(".eh_frame", CIE + entry, address=0x900000)], code=CODE + code)


def debugdata():
    """.gnu_debugdata that becomes 500 MB."""
    packer = lzma.LZMACompressor(preset=6)
    packed = b"".join([packer.compress(b"\x7fELF")] + [packer.compress(bytes(MB)) for _ in range(500)])
    return elf([Section(".gnu_debugdata", packed + packer.flush())])


def notes():
    """60,000 note sections over the same megabyte of notes without a build ID."""
    note = struct.pack("<III4s", 4, 0, 99, b"ABC\0") * 65536
    first = Section(".note", note, type=SHT_NOTE)
    return elf([first] + [Section("n", type=SHT_NOTE, same_as=0) for _ in range(60000)])


def section_names():
    """60,000 sections whose names are in a table of which no name ends."""
    sections = [Section("s", same_as=0) for _ in range(60000)]
    data = bytearray(elf([Section("x", b"y" * (4 * MB)), *sections]))
    shoff, = struct.unpack_from("<Q", data, 40)
    off, size = struct.unpack_from("<QQ", data, shoff + 64 * 2 + 24)
    last = shoff + 64 * (len(sections) + 3)
    struct.pack_into("<QQ", data, last + 24, off, size)
    return bytes(data)


BOMBS = (shared_abbreviations, abbreviation_suffixes, many_attributes, inflating_zlib, inflating_zstd,
         inflating_badly, range_lists, line_headers, line_entries, long_paths, long_names, deep_nesting,
         symbol_suffixes, symbols_of_one_address, many_symbol_tables, frame_entries, wide_entry, calls_without_tables,
         debugdata, notes, section_names)
