// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"unicode/utf8"
)

// What google/pprof's parser forgives or hides, read off the bytes: ids out of order, references
// that lead nowhere, strings that are not UTF-8 or stand twice, labels with one key.

type field struct {
	number int
	value  uint64 // varint
	bytes  []byte // length-delimited
}

// fields splits a message; ok is false when its bytes make no sense.
func fields(data []byte) (list []field, ok bool) {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return list, false
		}
		data = data[n:]
		v, n := binary.Uvarint(data)
		if n <= 0 {
			return list, false
		}
		data = data[n:]
		f := field{number: int(tag >> 3), value: v}
		switch tag & 7 {
		case 0:
		case 2:
			if v > uint64(len(data)) {
				return list, false
			}
			f.bytes, data = data[:v:v], data[v:]
		default:
			return list, false
		}
		list = append(list, f)
	}
	return list, true
}

func first(list []field, number int) uint64 {
	for _, f := range list {
		if f.number == number {
			return f.value
		}
	}
	return 0
}

// repeated gives a packed or unpacked repeated varint.
func repeated(list []field, number int) (values []uint64) {
	for _, f := range list {
		if f.number != number {
			continue
		}
		if f.bytes == nil {
			values = append(values, f.value)
			continue
		}
		for rest := f.bytes; len(rest) > 0; {
			v, n := binary.Uvarint(rest)
			if n <= 0 {
				return values
			}
			values, rest = append(values, v), rest[n:]
		}
	}
	return values
}

type wire struct {
	f                                   *findings
	strings                             []string
	types                               int
	samples, mappings, locations, funcs [][]field
}

func (w *wire) text(what string, number uint64) {
	if number >= uint64(len(w.strings)) {
		w.f.add("%s names string %d of %d", what, number, len(w.strings))
	}
}

func (w *wire) id(what string, id, count uint64, none bool) {
	if id > count || (id == 0 && !none) {
		w.f.add("%s refers to %d of %d", what, id, count)
	}
}

func (w *wire) inOrder(what string, list [][]field) {
	for i, m := range list {
		if id := first(m, 1); id != uint64(i+1) {
			w.f.add("%s number %d has the id %d", what, i+1, id)
			return
		}
	}
}

func (w *wire) checkStrings() {
	seen := map[string]bool{}
	if len(w.strings) == 0 || w.strings[0] != "" {
		w.f.add("string 0 is not empty")
	}
	for i, s := range w.strings {
		if !utf8.ValidString(s) {
			w.f.add("string %d is not UTF-8: %q", i, s)
		}
		if seen[s] {
			w.f.add("string %d stands twice: %q", i, s)
		}
		seen[s] = true
	}
}

func (w *wire) checkSample(sample []field) {
	for _, id := range repeated(sample, 1) {
		w.id("a sample", id, uint64(len(w.locations)), false)
	}
	if n := len(repeated(sample, 2)); n != w.types {
		w.f.add("a sample has %d values for %d types", n, w.types)
	}
	keys := map[uint64]bool{}
	for _, f := range sample {
		if f.number != 3 {
			continue
		}
		label, _ := fields(f.bytes)
		for number := 1; number <= 4; number++ {
			if number != 3 {
				w.text("a label", first(label, number))
			}
		}
		if key := first(label, 1); keys[key] {
			w.f.add("a sample has label %d twice", key)
		} else {
			keys[key] = true
		}
	}
}

func (w *wire) checkLocation(location []field) {
	w.id("a location", first(location, 2), uint64(len(w.mappings)), true)
	for _, f := range location {
		if f.number == 4 {
			line, _ := fields(f.bytes)
			w.id("a line", first(line, 1), uint64(len(w.funcs)), false)
		}
	}
}

func (w *wire) checkAll() {
	w.checkStrings()
	w.inOrder("mapping", w.mappings)
	w.inOrder("location", w.locations)
	w.inOrder("function", w.funcs)
	for _, s := range w.samples {
		w.checkSample(s)
	}
	for _, l := range w.locations {
		w.checkLocation(l)
	}
	for _, m := range w.mappings {
		w.text("a mapping", first(m, 5))
		w.text("a mapping", first(m, 6))
	}
	for _, fn := range w.funcs {
		for number := 2; number <= 4; number++ {
			w.text("a function", first(fn, number))
		}
	}
}

func checkWire(plain []byte, f *findings) {
	w := wire{f: f}
	top, ok := fields(plain)
	if !ok {
		f.add("not a protocol buffer message")
		return
	}
	for _, t := range top {
		m, ok := []field(nil), true
		if t.number >= 2 && t.number <= 5 {
			if m, ok = fields(t.bytes); !ok {
				f.add("field %d of the profile is malformed", t.number)
			}
		}
		switch t.number {
		case 1:
			w.types++
		case 2:
			w.samples = append(w.samples, m)
		case 3:
			w.mappings = append(w.mappings, m)
		case 4:
			w.locations = append(w.locations, m)
		case 5:
			w.funcs = append(w.funcs, m)
		case 6:
			w.strings = append(w.strings, string(t.bytes))
		}
	}
	w.checkAll()
}
