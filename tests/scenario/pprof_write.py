# SPDX-License-Identifier: Apache-2.0
"""Writes pprof profiles byte by byte, valid and broken ones, with the standard library alone.

    profile([Sample(frames=["leaf", "caller", "main"], ns=10_000_000, labels={"comm": "x", "pid": 7})])
"""
import collections
import gzip

# frames: function names, innermost first; labels: texts and numbers by key.
Sample = collections.namedtuple("Sample", "frames ns labels")


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def raw(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field, values):
    return raw(field, b"".join(map(varint, values)))


class Strings:
    def __init__(self):
        self.numbers = {"": 0}

    def of(self, text):
        return self.numbers.setdefault(text, len(self.numbers))


def message(samples, time_ns=0, duration_ns=0, mapping="/usr/bin/program", file="source.c", period_ns=0, comments=()):
    """The profile's bytes, uncompressed. PERIOD_NS: 0 leaves the unit of its period out."""
    strings = Strings()
    functions = {}
    parts = [raw(1, number(1, strings.of("samples")) + number(2, strings.of("count"))),
             raw(1, number(1, strings.of("cpu")) + number(2, strings.of("nanoseconds")))]
    for sample in samples:
        locations = [functions.setdefault(name, len(functions) + 1) for name in sample.frames]
        data = packed(1, locations) + packed(2, [1, sample.ns])
        for key, value in sample.labels.items():
            text = isinstance(value, str)
            data += raw(3, number(1, strings.of(key)) +
                        number(2 if text else 3, strings.of(value) if text else value))
        parts.append(raw(2, data))
    parts.append(raw(3, number(1, 1) + number(2, 0x1000) + number(3, 0x100000000) +
                     number(5, strings.of(mapping))))
    for name, id_ in functions.items():
        line = number(1, id_) + number(2, id_)
        parts.append(raw(4, number(1, id_) + number(2, 1) + number(3, 0x1000 + 16 * id_) + raw(4, line)))
        parts.append(raw(5, number(1, id_) + number(2, strings.of(name)) + number(4, strings.of(file))))
    parts += [number(9, time_ns), number(10, duration_ns), number(12, period_ns or 10000000)]
    if period_ns:
        parts.append(raw(11, number(1, strings.of("cpu")) + number(2, strings.of("nanoseconds"))))
    parts += [number(13, strings.of(comment)) for comment in comments]
    parts += [raw(6, text.encode(errors="surrogateescape")) for text in strings.numbers]
    return b"".join(parts)


def profile(samples, **options):
    return gzip.compress(message(samples, **options), 1)


def broken():
    """name → bytes of an invalid profile."""
    good = message([Sample(["f", "main"], 1, {"comm": "x", "pid": 1})])
    return {
        "empty gzip": b"\x1f\x8b",
        "cut gzip": gzip.compress(good)[:-12],
        "gzip of text": gzip.compress(b"<html>this is no profile</html>"),
        "cut message": good[:len(good) // 2],
        "number without end": b"\x08" + b"\xff" * 11,
        "length past the end": raw(6, b"") + b"\x12\x7f",
        "wire type 7": raw(6, b"") + b"\x0f",
        "first string not empty": raw(6, b"x"),
        "string beyond the table": raw(6, b"") + raw(1, number(1, 9) + number(2, 9)),
        "unknown location": good + raw(2, packed(1, [99]) + packed(2, [1, 1])),
        "location 0": good + raw(2, packed(1, [0]) + packed(2, [1, 1])),
        "unknown function": good + raw(4, number(1, 77) + raw(4, number(1, 88))),
        "id 0": good + raw(5, number(2, 1)),
        "id twice": good + raw(5, number(1, 1)),
        "values missing": good + raw(2, packed(1, [1]) + packed(2, [1])),
        "stack too deep": good + raw(2, packed(1, [1] * 20000) + packed(2, [1, 1])),
    }
