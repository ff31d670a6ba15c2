/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.proto messages, read and written, with gzip around them. Numbers are Number where that is
 * exact and BigInt above (kernel addresses, times in nanoseconds). References between messages are
 * array indices, -1 for none, and strings stand where they are used: ids and string numbers exist
 * only in the bytes.
 *
 * The bytes come from a server: nothing in them is believed. A broken message is a BadProfile.
 */
"use strict";

const pprof = (() => {
	const MAX_BYTES = 128 << 20; /* after gzip */
	const MAX_ITEMS = 4 << 20; /* of one kind */
	const MAX_DEPTH = 16384; /* locations of a sample; lines of a location; labels of a sample */
	const { ITEMS, finish, run } = typeof module === "object" ? require("./slices.js") : slices;

	class BadProfile extends Error {}

	const utf8 = new TextDecoder();

	/* ---- wire format --------------------------------------------------------------------- */

	class Reader {
		constructor(bytes, at = 0, end = bytes.length) {
			this.bytes = bytes;
			this.at = at;
			this.end = end;
			this.field = 0;
			this.wire = 0;
		}

		byte() {
			if (this.at >= this.end) throw new BadProfile("a number runs past its message");
			return this.bytes[this.at++];
		}

		/* An unsigned varint: Number below 2^53, else BigInt. */
		number() {
			let value = 0;
			for (let shift = 0; shift < 28; shift += 7) {
				const byte = this.byte();
				value |= (byte & 0x7f) << shift;
				if (byte < 0x80) return value;
			}
			for (let shift = 28; shift < 49; shift += 7) {
				const byte = this.byte();
				value += (byte & 0x7f) * 2 ** shift;
				if (byte < 0x80) return value;
			}
			let big = BigInt(value);
			for (let shift = 49n; shift < 70n; shift += 7n) {
				const byte = this.byte();
				big |= BigInt(byte & 0x7f) << shift;
				if (byte < 0x80) return narrow(BigInt.asUintN(64, big));
			}
			throw new BadProfile("a number has more than 64 bits");
		}

		signed() {
			const value = this.number();
			return typeof value === "bigint" ? narrow(BigInt.asIntN(64, value)) : value;
		}

		/* Moves on to the next field; false at the message's end. */
		next() {
			if (this.at >= this.end) return false;
			const key = Number(this.number());
			this.field = Math.floor(key / 8);
			this.wire = key % 8;
			return true;
		}

		/* The reader of a length-delimited field. */
		sub() {
			if (this.wire !== 2) throw new BadProfile("a message is expected in field " + this.field);
			const size = Number(this.number());
			if (size > this.end - this.at) throw new BadProfile("a field runs past its message");
			const reader = new Reader(this.bytes, this.at, this.at + size);
			this.at += size;
			return reader;
		}

		text() {
			const part = this.sub();
			return utf8.decode(part.bytes.subarray(part.at, part.end));
		}

		/* A repeated number, packed or not, onto LIST. */
		numbers(list, signed) {
			if (this.wire === 0) {
				list.push(signed ? this.signed() : this.number());
				return;
			}
			const part = this.sub();
			while (part.at < part.end) list.push(signed ? part.signed() : part.number());
		}

		skip() {
			if (this.wire === 0) this.number();
			else if (this.wire === 2) this.sub();
			else if (this.wire === 1 || this.wire === 5) this.at += this.wire === 1 ? 8 : 4;
			else throw new BadProfile("wire type " + this.wire);
			if (this.at > this.end) throw new BadProfile("a field runs past its message");
		}
	}

	function narrow(big) {
		const number = Number(big);
		return Number.isSafeInteger(number) ? number : big;
	}

	/* The single fields of a message, all numbers, from FIELDS: field number → [name, signed]. */
	function shape(fields) {
		const names = Object.values(fields).map(([name]) => [name, 0]);
		return { fields: Object.assign([], fields), zeros: Object.fromEntries(names), list: Object.entries(fields) };
	}

	/* The field that READER is at. MORE: field number → function of (reader, message) for other fields. */
	function readField(reader, result, { fields }, more) {
		const known = fields[reader.field];
		if (known && reader.wire === 0)
			result[known[0]] = known[1] ? reader.signed() : reader.number();
		else if (more && more[reader.field])
			more[reader.field](reader, result);
		else
			reader.skip();
	}

	function message(reader, shaped, more = null) {
		const result = { ...shaped.zeros };
		while (reader.next()) readField(reader, result, shaped, more);
		return result;
	}

	const VALUE_TYPE = shape({ 1: ["type"], 2: ["unit"] });
	const LABEL = shape({ 1: ["key"], 2: ["text"], 3: ["number", true], 4: ["unit"] });
	const MAPPING = shape({
		1: ["id"], 2: ["start"], 3: ["limit"], 4: ["offset"], 5: ["file"], 6: ["buildId"],
		7: ["hasFunctions"], 8: ["hasFilenames"], 9: ["hasLineNumbers"], 10: ["hasInlineFrames"],
	});
	const LOCATION = shape({ 1: ["id"], 2: ["mapping"], 3: ["address"], 5: ["folded"] });
	const LINE = shape({ 1: ["function"], 2: ["line", true], 3: ["column", true] });
	const FUNCTION = shape({
		1: ["id"], 2: ["name"], 3: ["systemName"], 4: ["file"], 5: ["startLine", true],
	});
	const PROFILE = shape({
		9: ["timeNs", true], 10: ["durationNs", true], 12: ["period", true], 14: ["defaultType"],
	});

	/* ---- reading ------------------------------------------------------------------------- */

	function readLocation(reader) {
		const lines = [];
		const location = message(reader, LOCATION, {
			4: (r) => lines.push(message(r.sub(), LINE)),
		});
		if (lines.length > MAX_DEPTH) throw new BadProfile("a location has too many lines");
		location.lines = lines;
		return location;
	}

	/* LABELS: labels of samples before. Equal ones are one object, since most samples share theirs. */
	function readLabel(reader, labels) {
		const label = message(reader, LABEL);
		const { key, text, number, unit } = label;
		const parts = text ? [key, text, 0] : [key * 512 + unit, number, 1];
		const isSmall = key < 1 << 17 && unit < 512 && number >= 0 && parts[1] < 2 ** 25;
		const name = isSmall && !(text && (number || unit)) ? parts[0] * 2 ** 26 + parts[1] * 2 + parts[2] : label;
		const known = labels.get(name);
		if (known) return known;
		labels.set(name, label);
		return label;
	}

	function readSample(reader, labels) {
		const sample = { locations: [], values: [], labels: [] };
		while (reader.next()) {
			if (reader.field === 1) reader.numbers(sample.locations, false);
			else if (reader.field === 2) reader.numbers(sample.values, true);
			else if (reader.field === 3) sample.labels.push(readLabel(reader.sub(), labels));
			else reader.skip();
		}
		if (Math.max(sample.locations.length, sample.labels.length) > MAX_DEPTH)
			throw new BadProfile("a sample has too many locations or labels");
		return sample;
	}

	/* The message as it stands in the bytes: ids and string numbers. */
	function* readRaw(bytes) {
		const lists = {
			types: [], samples: [], mappings: [], locations: [], functions: [], strings: [],
			comments: [], period: [],
		};
		const labels = new Map();
		const add = (list, item) => {
			if (list.length >= MAX_ITEMS) throw new BadProfile("too many items");
			list.push(item);
		};
		const more = {
			1: (r) => add(lists.types, message(r.sub(), VALUE_TYPE)),
			2: (r) => add(lists.samples, readSample(r.sub(), labels)),
			3: (r) => add(lists.mappings, message(r.sub(), MAPPING)),
			4: (r) => add(lists.locations, readLocation(r.sub())),
			5: (r) => add(lists.functions, message(r.sub(), FUNCTION)),
			6: (r) => add(lists.strings, r.text()),
			11: (r) => add(lists.period, message(r.sub(), VALUE_TYPE)),
			13: (r) => r.numbers(lists.comments, false),
		};
		const raw = { ...PROFILE.zeros, lists, labels: [] };
		const reader = new Reader(bytes);
		for (let count = 1; reader.next(); count++) {
			readField(reader, raw, PROFILE, more);
			if (count % ITEMS === 0) yield;
		}
		raw.labels = [...labels.values()];
		return raw;
	}

	/* A function from ids to indices: -1 for 0, BadProfile for what nothing has. */
	function idTable(items, what) {
		const isDense = items.every((item, index) => item.id === index + 1);
		const table = isDense ? null : sparseTable(items, what);
		const { length } = items;
		return (id) => {
			if (!id) return -1;
			const index = table ? table.get(id) : typeof id === "number" && id <= length ? id - 1 : undefined;
			if (index === undefined) throw new BadProfile("there is no " + what + " " + id);
			return index;
		};
	}

	function sparseTable(items, what) {
		const table = new Map();
		items.forEach((item, index) => {
			if (!item.id || table.has(item.id)) throw new BadProfile(what + " ids are not unique");
			table.set(item.id, index);
		});
		return table;
	}

	function* resolve(raw) {
		const { types, samples, mappings, locations, functions, strings } = raw.lists;
		const text = (number) => {
			if (number >= strings.length) throw new BadProfile("there is no string " + number);
			return strings[number];
		};
		const type = (t) => ({ type: text(t.type), unit: text(t.unit) });
		if (strings[0] !== "") throw new BadProfile("the first string is not empty");
		for (const m of mappings) Object.assign(m, { file: text(m.file), buildId: text(m.buildId) });
		for (const f of functions) {
			f.name = text(f.name);
			f.systemName = text(f.systemName);
			f.file = text(f.file);
		}
		yield;
		const mappingOf = idTable(mappings, "mapping");
		const functionOf = idTable(functions, "function");
		for (const l of locations) {
			l.mapping = mappingOf(l.mapping);
			for (const line of l.lines) line.function = functionOf(line.function);
		}
		yield;
		const locationOf = idTable(locations, "location");
		for (const l of raw.labels) Object.assign(l, { key: text(l.key), unit: text(l.unit), text: l.text ? text(l.text) : null });
		yield;
		for (let i = 0; i < samples.length; i++) {
			resolveSample(samples[i], types.length, locationOf);
			if (i % ITEMS === 0) yield;
		}
		return {
			types: types.map(type),
			defaultType: text(raw.defaultType),
			periodType: raw.lists.period.length ? type(raw.lists.period[0]) : { type: "", unit: "" },
			period: raw.period,
			timeNs: raw.timeNs,
			durationNs: raw.durationNs,
			comments: raw.lists.comments.map(text),
			mappings, functions, locations, samples,
		};
	}

	function resolveSample(s, types, locationOf) {
		if (s.values.length !== types) throw new BadProfile("a sample lacks values");
		for (let i = 0; i < s.locations.length; i++) {
			const location = locationOf(s.locations[i]);
			if (location < 0) throw new BadProfile("a sample has location 0");
			s.locations[i] = location;
		}
	}

	/* The profile in BYTES (a Uint8Array, not compressed). */
	function* reading(bytes) {
		if (bytes.length > MAX_BYTES) throw new BadProfile("too large");
		return yield* resolve(yield* readRaw(bytes));
	}

	function read(bytes) {
		return finish(reading(bytes));
	}

	/* ---- writing ------------------------------------------------------------------------- */

	class Writer {
		constructor() {
			this.bytes = new Uint8Array(64); /* most messages are smaller */
			this.size = 0;
		}

		room(count) {
			if (this.size + count <= this.bytes.length) return;
			const grown = new Uint8Array(Math.max(this.bytes.length * 2, this.size + count));
			grown.set(this.bytes.subarray(0, this.size));
			this.bytes = grown;
		}

		varint(value) {
			this.room(10);
			if (value < 0 || typeof value === "bigint") {
				let big = BigInt.asUintN(64, BigInt(value));
				for (; big > 127n; big >>= 7n) this.bytes[this.size++] = Number(big & 127n) | 128;
				this.bytes[this.size++] = Number(big);
				return;
			}
			for (; value > 127; value = Math.floor(value / 128))
				this.bytes[this.size++] = (value % 128) | 128;
			this.bytes[this.size++] = value;
		}

		/* A number; 0 is what is absent. */
		number(field, value) {
			if (!value) return;
			this.varint(field * 8);
			this.varint(Number.isInteger(value) || typeof value === "bigint" ? value : 1);
		}

		raw(field, bytes, size = bytes.length) {
			this.varint(field * 8 + 2);
			this.varint(size);
			this.room(size);
			this.bytes.set(size === bytes.length ? bytes : bytes.subarray(0, size), this.size);
			this.size += size;
		}

		packed(field, values) {
			const part = new Writer();
			for (const value of values) part.varint(value);
			if (part.size) this.raw(field, part.bytes, part.size);
		}

		/* A message whose single fields are numbers, by the shape that reads it. */
		message(field, shaped, values, more) {
			const part = new Writer();
			for (const [number, [name]] of shaped.list) part.number(+number, values[name]);
			if (more) more(part);
			this.raw(field, part.bytes, part.size);
		}
	}

	class Strings {
		constructor() {
			this.list = [""];
			this.numbers = new Map([["", 0]]);
		}

		of(text) {
			let number = this.numbers.get(text || "");
			if (number === undefined) {
				number = this.list.length;
				this.list.push(text);
				this.numbers.set(text, number);
			}
			return number;
		}
	}

	function writeSample(writer, sample, strings) {
		const part = new Writer();
		part.packed(1, sample.locations.map((index) => index + 1));
		part.packed(2, sample.values);
		for (const l of sample.labels) {
			part.message(3, LABEL, {
				key: strings.of(l.key),
				text: l.text === null ? 0 : strings.of(l.text),
				number: l.text === null ? l.number : 0,
				unit: strings.of(l.unit),
			});
		}
		writer.raw(2, part.bytes, part.size);
	}

	/* The bytes of PROFILE (of the form that read() gives), not compressed. */
	function* writing(profile) {
		const out = new Writer();
		const strings = new Strings();
		const type = (field, t) => out.message(field, VALUE_TYPE,
			{ type: strings.of(t.type), unit: strings.of(t.unit) });
		for (const t of profile.types) type(1, t);
		for (let i = 0; i < profile.samples.length; i++) {
			writeSample(out, profile.samples[i], strings);
			if (i % ITEMS === 0) yield;
		}
		profile.mappings.forEach((m, index) => out.message(3, MAPPING,
			{ ...m, id: index + 1, file: strings.of(m.file), buildId: strings.of(m.buildId) }));
		profile.locations.forEach((l, index) => out.message(4, LOCATION,
			{ ...l, id: index + 1, mapping: l.mapping + 1 },
			(part) => l.lines.forEach((line) => part.message(4, LINE,
				{ ...line, function: line.function + 1 }))));
		profile.functions.forEach((f, index) => out.message(5, FUNCTION, {
			id: index + 1, name: strings.of(f.name), systemName: strings.of(f.systemName),
			file: strings.of(f.file), startLine: f.startLine,
		}));
		type(11, profile.periodType);
		const comments = (profile.comments || []).map((text) => strings.of(text));
		out.packed(13, comments);
		for (const [field, [name]] of PROFILE.list)
			out.number(+field, name === "defaultType" ? strings.of(profile.defaultType) : profile[name]);
		const encoder = new TextEncoder();
		for (const text of strings.list) out.raw(6, encoder.encode(text));
		return out.bytes.slice(0, out.size);
	}

	/* ---- gzip ---------------------------------------------------------------------------- */

	/* What STREAM makes of BYTES, at most LIMIT bytes of it. */
	async function through(stream, bytes, limit) {
		const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
		const parts = [];
		let size = 0;
		for (;;) {
			const { done, value } = await reader.read();
			if (done) break;
			size += value.length;
			if (size > limit) {
				reader.cancel().catch(() => {});
				throw new BadProfile("too large");
			}
			parts.push(value);
		}
		const whole = new Uint8Array(size);
		let at = 0;
		for (const part of parts) {
			whole.set(part, at);
			at += part.length;
		}
		return whole;
	}

	async function unzipped(bytes) {
		if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
		return through(new DecompressionStream("gzip"), bytes, MAX_BYTES);
	}

	async function decode(bytes) {
		return run(reading(await unzipped(bytes)));
	}

	async function encode(profile) {
		return through(new CompressionStream("gzip"), await run(writing(profile)), Infinity);
	}

	return { BadProfile, read, reading, unzipped, decode, encode };
})();

if (typeof module === "object") module.exports = pprof;
