/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `perf script` prints, and collapsed stacks (`main;work 12`), as a profile of the form that
 * pprof.js reads. The same as agent/commands/text_profile.c does for `fathom view`, which has the
 * form of the lines; tests/scenario/94-view-text compares the two.
 */
"use strict";

const textProfile = (() => {
	const LOOK_BYTES = 512;
	const MAX_EVENTS = 8;
	const MAX_FRAMES = 1024;
	const MAX_LINE = 2000; /* letters of the line about a sample: the time to look at it grows with their square */
	const LONGEST_S = 100 * 365 * 86400;
	const { ITEMS } = typeof module === "object" ? require("./slices.js") : slices;
	const { BadProfile } = typeof module === "object" ? require("./pprof.js") : pprof;

	/* comm, pid, tid, CPU, time and the rest. What stands before the time may be missing. */
	const SAMPLE = /^(.*?)(?:(?:^|\s+)(\d+)(?:\/(\d+))?)?(?:\s+\[(\d+)\])?\s+(\d+\.?\d*):(?:\s+(.*))?$/;
	const EVENT = /^(?:(\d+) +)?(\S+):(?:\s+(.*))?$/;
	const FRAME = /^\s*([0-9a-f]+) +(.*)$/;
	const COUNT = /^(.+) (\d+)$/;

	function isText(bytes) {
		if (!bytes.length || bytes[0] === 10) return false; /* a pprof message may begin so */
		if (isOther(bytes)) return true; /* to say what to do */
		return bytes.subarray(0, LOOK_BYTES).every((b) => b !== 127 && (b >= 32 || (b >= 9 && b <= 13)));
	}

	/* Files that other tools turn into what can be shown, as view.c has them. */
	const OTHERS = [
		["PERFILE2", "it is perf's own; open what `perf script -i FILE` prints"],
		["\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0", "it is gperftools' own; open what `go tool pprof -proto PROGRAM FILE` writes"],
		["FLR\0", "it is of Java Flight Recorder; open what `jfrconv -o collapsed FILE` writes"],
		["{", "it is JSON; have the tool write pprof or collapsed stacks, as `py-spy record -f raw` does"],
	];

	function isOther(bytes) {
		return OTHERS.find(([begin]) => [...begin].every((letter, i) => bytes[i] === letter.charCodeAt(0)));
	}

	/* Collects samples into the lists of a profile. */
	class Builder {
		constructor() {
			this.numbers = new Map();
			this.mappings = [];
			this.functions = [];
			this.locations = [];
			this.samples = [];
			this.labels = new Map();
		}

		numberOf(key, list, make) {
			if (!this.numbers.has(key)) this.numbers.set(key, list.push(make()) - 1);
			return this.numbers.get(key);
		}

		location({ name, file, address }) {
			return this.numberOf(["l", name, file, address].join("\0"), this.locations, () => ({
				mapping: file ? this.mapping(file) : -1, address, folded: 0,
				lines: name ? [{ function: this.fn(name), line: 0, column: 0 }] : [],
			}));
		}

		mapping(file) {
			return this.numberOf("m\0" + file, this.mappings, () => ({ start: 0, limit: 0, offset: 0, file,
				buildId: "", hasFunctions: 1, hasFilenames: 0, hasLineNumbers: 0, hasInlineFrames: 0 }));
		}

		fn(name) {
			return this.numberOf("f\0" + name, this.functions, () => ({ name, systemName: name, file: "", startLine: 0 }));
		}

		label(key, text, number, unit) {
			const name = [key, text, number].join("\0");
			if (!this.labels.has(name)) this.labels.set(name, { key, text, number, unit });
			return this.labels.get(name);
		}

		profile(types, durationNs) {
			const main = types[types.length - 1];
			const { mappings, functions, locations, samples } = this;
			return { types, defaultType: main.type, periodType: main, period: 1, timeNs: 0, durationNs,
				comments: [], mappings, functions, locations, samples };
		}
	}

	/* ---- perf script ------------------------------------------------------------------------- */

	function readSample(line) {
		const found = SAMPLE.exec(line.slice(0, MAX_LINE).trim());
		if (!found) return null;
		const [, comm, pid, tid, cpu, time, rest] = found;
		const [, period, event, frame] = EVENT.exec(rest || "") || [];
		return { comm, pid: Number(pid || 0), tid: Number(tid || pid || 0), cpu, timeS: Number(time),
			period: Math.max(1, Number(period || 1)), frame: frame || "",
			event: (event || "").replace(/:[ukhpPGHSDIeW]*$/, "") };
	}

	function readFrame(line) {
		const found = FRAME.exec(line);
		if (!found) return null;
		const big = BigInt("0x" + found[1]) & 0xffffffffffffffffn;
		const text = found[2].trimEnd();
		const open = text.endsWith(")") ? text.lastIndexOf("(") : -1;
		const place = open < 0 ? "" : text.slice(open + 1, -1);
		const name = (open < 0 ? text : text.slice(0, open).trimEnd()).replace(/\+0x[0-9a-f]+$/, "");
		return { address: Number.isSafeInteger(Number(big)) ? Number(big) : big,
			name: name === "[unknown]" ? "" : name, file: place === "inlined" ? "" : place };
	}

	function* readPerf(lines) {
		const made = new Builder();
		const events = [];
		const times = [];
		const kept = [];
		for (let at = 0; at < lines.length; at++) {
			if (at % ITEMS === 0) yield;
			const sample = lines[at].startsWith("#") ? null : readSample(lines[at]);
			if (!sample) continue;
			const frames = [readFrame(sample.frame)].filter(Boolean);
			for (; !frames.length && at + 1 < lines.length && lines[at + 1].trim(); at++) {
				const frame = /^\s/.test(lines[at + 1]) && readFrame(lines[at + 1]);
				if (frame) kept.push(frame);
			}
			frames.push(...kept.splice(0));
			if (!frames.length) frames.push({ name: "[unknown]", file: "", address: 0 });
			if (!events.includes(sample.event) && events.length < MAX_EVENTS) events.push(sample.event);
			times.push(sample.timeS);
			made.samples.push({ locations: frames.slice(0, MAX_FRAMES).map((f) => made.location(f)),
				labels: labelsOf(made, sample), values: [sample.event, sample.period] });
		}
		const types = events.map((e) => (e.includes("clock") ? { type: "cpu", unit: "nanoseconds" } : { type: e, unit: "count" }));
		for (const s of made.samples)
			s.values = [1, ...events.map((event) => (event === s.values[0] ? s.values[1] : 0))];
		const seconds = times.reduce((a, b) => Math.max(a, b), 0) - times.reduce((a, b) => Math.min(a, b), Infinity);
		const durationNs = seconds > 0 && seconds < LONGEST_S ? Math.round(seconds * 1e9) : 0;
		return made.profile([{ type: "samples", unit: "count" }, ...types], durationNs);
	}

	function labelsOf(made, { comm, pid, tid, cpu }) {
		const numbers = [["pid", pid], ["tid", tid], ["cpu", cpu === undefined ? -1 : Number(cpu)]];
		return [...(comm ? [made.label("comm", comm, 0, "")] : []),
			...numbers.filter(([key, number]) => number > 0 || (key === "cpu" && number === 0))
				.map(([key, number]) => made.label(key, null, number, "id"))];
	}

	/* ---- collapsed stacks -------------------------------------------------------------------- */

	function* readCollapsed(lines) {
		const made = new Builder();
		for (let at = 0; at < lines.length; at++) {
			if (at % ITEMS === 0) yield;
			const found = COUNT.exec(lines[at].trim());
			if (!found) continue;
			const names = found[1].split(";").slice(0, MAX_FRAMES).reverse();
			made.samples.push({ labels: [], values: [Number(found[2])],
				locations: names.map((name) => made.location({ name: name || "??", file: "", address: 0 })) });
		}
		return made.profile([{ type: "samples", unit: "count" }], 0);
	}

	/* The profile in the text in BYTES, as work for slices.run(). */
	function* reading(bytes) {
		const other = isOther(bytes);
		if (other) throw new BadProfile(other[1]);
		const lines = new TextDecoder().decode(bytes).split("\n");
		yield;
		const first = lines.find((line) => line.trim() && !line.startsWith("#")) || "";
		const profile = yield* COUNT.test(first.trim()) ? readCollapsed(lines) : readPerf(lines);
		if (!profile.samples.length)
			throw new BadProfile("a text, but neither `perf script` output nor collapsed stacks");
		return profile;
	}

	return { isText, reading };
})();

if (typeof module === "object") module.exports = textProfile;
