#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a pprof profile with nothing but the standard library.

    profile = Profile("fathom.pb.gz")
    for sample in profile.samples:
        sample["values"], sample["labels"], sample["numbers"], sample["frames"]

Frames are innermost first, one for each line of a location: the inlined ones have `inlined` set.
A location without lines gives one frame whose `func` is "".
Run as a program it prints the profile's parts and its samples.
"""
import gzip
import struct
import sys


class BadProfile(Exception):
    """The bytes are no profile, or break one of profile.proto's promises."""


def _varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BadProfile("a varint runs past its message")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at


def fields(data):
    """(number, value) of each field of a message: ints, or bytes for length-delimited ones."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            value = data[at : at + size]
            if len(value) != size:
                raise BadProfile("a field runs past its message")
            at += size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value = struct.unpack("<Q" if size == 8 else "<I", data[at : at + size])[0]
            at += size
        else:
            raise BadProfile("wire type %d" % kind)
        yield key >> 3, value


def _signed(value):
    return value - (1 << 64) if value >> 63 else value


def _numbers(value):
    """A repeated integer's values, packed or not."""
    if isinstance(value, int):
        return [value]
    values, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        values.append(number)
    return values


def _message(data, names):
    """A message of single fields as a dictionary: `names` gives number → name, absent ones are 0."""
    message = dict.fromkeys(names.values(), 0)
    for number, value in fields(data):
        if number in names:
            message[names[number]] = value
    return message


_VALUE_TYPE = {1: "type", 2: "unit"}
_MAPPING = {
    1: "id",
    2: "start",
    3: "limit",
    4: "offset",
    5: "file",
    6: "build_id",
    7: "has_functions",
    8: "has_filenames",
    9: "has_line_numbers",
    10: "has_inline_frames",
}
_FUNCTION = {1: "id", 2: "name", 3: "system_name", 4: "file", 5: "start_line"}
_LINE = {1: "function", 2: "line", 3: "column"}
_LABEL = {1: "key", 2: "str", 3: "num", 4: "unit"}


class Profile:
    """path: a file, gzip or plain; or the bytes themselves."""

    def __init__(self, path):
        data = path if isinstance(path, bytes) else open(path, "rb").read()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        raw = {}
        for number, value in fields(data):
            raw.setdefault(number, []).append(value)
        self.strings = [text.decode("utf-8") for text in raw.get(6, [])]
        if not self.strings or self.strings[0]:
            raise BadProfile("the string table does not begin with an empty string")
        self.sample_types = [self._value_type(v) for v in raw.get(1, [])]
        self.period_type = self._value_type(raw[11][-1]) if 11 in raw else ("", "")
        self.period = _signed(raw.get(12, [0])[-1])
        self.time_ns = _signed(raw.get(9, [0])[-1])
        self.duration_ns = _signed(raw.get(10, [0])[-1])
        self.default_sample_type = self._string(raw.get(14, [0])[-1])
        self.comments = [self._string(n) for value in raw.get(13, []) for n in _numbers(value)]
        self.mappings = self._by_id(self._mapping(v) for v in raw.get(3, []))
        self.functions = self._by_id(self._function(v) for v in raw.get(5, []))
        self.locations = self._by_id(self._location(v) for v in raw.get(4, []))
        self.samples = [self._sample(v) for v in raw.get(2, [])]

    def _string(self, number):
        if number >= len(self.strings):
            raise BadProfile("string %d of %d" % (number, len(self.strings)))
        return self.strings[number]

    @staticmethod
    def _by_id(messages):
        table = {}
        for message in messages:
            if not message["id"] or message["id"] in table:
                raise BadProfile("id %d is 0 or not unique" % message["id"])
            table[message["id"]] = message
        return table

    def _value_type(self, data):
        message = _message(data, _VALUE_TYPE)
        return self._string(message["type"]), self._string(message["unit"])

    def _mapping(self, data):
        mapping = _message(data, _MAPPING)
        mapping["file"] = self._string(mapping["file"])
        mapping["build_id"] = self._string(mapping["build_id"])
        return mapping

    def _function(self, data):
        function = _message(data, _FUNCTION)
        for name in ("name", "system_name", "file"):
            function[name] = self._string(function[name])
        function["start_line"] = _signed(function["start_line"])
        return function

    def _location(self, data):
        location = {"id": 0, "mapping": 0, "address": 0, "lines": []}
        for number, value in fields(data):
            if number in (1, 2, 3):
                location[{1: "id", 2: "mapping", 3: "address"}[number]] = value
            elif number == 4:
                location["lines"].append(_message(value, _LINE))
        if location["mapping"] and location["mapping"] not in self.mappings:
            raise BadProfile("location %(id)d names mapping %(mapping)d" % location)
        location["frames"] = self._frames(location)
        return location

    def _frames(self, location):
        mapping = self.mappings.get(location["mapping"])
        lines = location["lines"] or [None]
        frames = []
        for place, line in enumerate(lines):
            function = self.functions.get(line["function"]) if line else None
            if line and not function:
                raise BadProfile("location %d names no function" % location["id"])
            frames.append(
                {
                    "func": function["name"] if function else "",
                    "system": function["system_name"] if function else "",
                    "file": function["file"] if function else "",
                    "line": _signed(line["line"]) if line else 0,
                    "start": function["start_line"] if function else 0,
                    "address": location["address"],
                    "mapping": mapping["file"] if mapping else "",
                    "file_off": location["address"] - mapping["start"] + mapping["offset"] if mapping else 0,
                    "build_id": mapping["build_id"] if mapping else "",
                    "inlined": place < len(lines) - 1,
                }
            )
        return frames

    def _sample(self, data):
        sample = {"values": [], "labels": {}, "numbers": {}, "units": {}, "frames": []}
        locations = []
        for number, value in fields(data):
            if number == 1:
                locations += _numbers(value)
            elif number == 2:
                sample["values"] += [_signed(n) for n in _numbers(value)]
            elif number == 3:
                self._label(_message(value, _LABEL), sample)
        if len(sample["values"]) != len(self.sample_types):
            raise BadProfile("a sample has %d values" % len(sample["values"]))
        for location in locations:
            if location not in self.locations:
                raise BadProfile("a sample names location %d" % location)
            sample["frames"] += self.locations[location]["frames"]
        return sample

    def _label(self, label, sample):
        key = self._string(label["key"])
        if label["str"]:
            sample["labels"][key] = self._string(label["str"])
        else:
            sample["numbers"][key] = _signed(label["num"])
            sample["units"][key] = self._string(label["unit"])


def main():
    profile = Profile(sys.argv[1])
    print("types", profile.sample_types, "period", profile.period_type, profile.period)
    print("time", profile.time_ns, "duration", profile.duration_ns)
    for mapping in profile.mappings.values():
        print("mapping %(id)d %(start)#x-%(limit)#x @%(offset)#x %(file)s %(build_id)s" % mapping)
    for sample in profile.samples:
        print(sample["values"], sample["labels"], sample["numbers"])
        for frame in sample["frames"]:
            shown = dict(frame, mark=" (inlined)" if frame["inlined"] else "")
            print("    %(address)#x %(func)s %(file)s:%(line)d%(mark)s" % shown)


if __name__ == "__main__":
    main()
