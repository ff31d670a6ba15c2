/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of many profiles, each distinct mapping, function, location, stack and label set kept
 * once: what is added is columns of small numbers. Answers what the page asks of them: sums by
 * filter and time, the choices that filters have, rows for a call tree, one profile to download.
 *
 * A profile is one file: { path, group, timeMs, durationMs }. Two values of a sample are kept: how
 * many there were, and the profile's main value (nanoseconds of CPU).
 */
"use strict";

const samples = (() => {
	/* What a filter can ask of a sample, and its bit in a mask of what does not fit. */
	const FIELDS = ["group", "container", "comm", "process", "thread", "goroutine"];
	const KINDS = { native: 0, go: 1, jit: 2, kernel: 3, unknown: 4, label: 5 };
	const KIND_NAMES = Object.keys(KINDS);
	const HIGH_HALF = 1n << 63n; /* addresses from here on are the kernel's */
	const WITHOUT = "(none)";

	/* Numbers for distinct keys, from 0 in order of first use, and the thing of each. */
	class Table {
		constructor() {
			this.numbers = new Map();
			this.items = [];
		}

		of(key, make) {
			let number = this.numbers.get(key);
			if (number === undefined) {
				number = this.items.length;
				this.numbers.set(key, number);
				this.items.push(make(number));
			}
			return number;
		}

		/*
		 * Keeps the items whose flag in USED is set, in their order; REKEY gives the key of an item
		 * whose parts have new numbers. Returns the new number of each old one, -1 for none.
		 */
		retain(used, rekey = null) {
			const { numbers, items } = this;
			const renumbered = new Int32Array(items.length).fill(-1);
			this.numbers = new Map();
			this.items = [];
			for (const [key, number] of numbers) {
				if (!used[number]) continue;
				const item = items[number];
				renumbered[number] = this.items.length;
				this.numbers.set(rekey ? rekey(item) : key, this.items.length);
				this.items.push(item);
			}
			return renumbered;
		}
	}

	/* ---- what a frame is ----------------------------------------------------------------- */

	function baseName(path) {
		return path.slice(path.lastIndexOf("/") + 1);
	}

	function inKernel(mapping, address) {
		if (mapping && mapping.file.startsWith("[v")) return false; /* vDSO and its kind */
		return typeof address === "bigint" && address >= HIGH_HALF;
	}

	function isGo(fn) {
		return fn.file.endsWith(".go") || (fn.file.endsWith(".s") && /^[\w./]+\.\w+$/.test(fn.name));
	}

	function kindOf(mapping, address, fn) {
		if (!fn || (!mapping && fn.name.startsWith("["))) return KINDS.unknown;
		if (inKernel(mapping, address)) return KINDS.kernel;
		if (mapping && mapping.file === "[jit]") return KINDS.jit;
		return isGo(fn) ? KINDS.go : KINDS.native;
	}

	/* ---- labels -------------------------------------------------------------------------- */

	function labelNumber(labels, key) {
		const label = labels.find((l) => l.key === key && l.text === null);
		return label ? String(label.number) : "";
	}

	function labelText(labels, key) {
		const label = labels.find((l) => l.key === key && l.text !== null);
		return label ? label.text : "";
	}

	function named(name, number) {
		return number ? (name || "?") + " (" + number + ")" : name || WITHOUT;
	}

	/* A set of labels, with the texts that filters compare and choices show. */
	function labelSet(labels) {
		const pid = labelNumber(labels, "pid");
		const comm = labelText(labels, "comm");
		const process = named(comm, pid);
		const goid = labelNumber(labels, "goid");
		return {
			labels,
			comm: comm || WITHOUT,
			process,
			container: labelText(labels, "container_id") || WITHOUT,
			thread: named(labelText(labels, "thread_comm"), labelNumber(labels, "tid")),
			goroutine: goid ? process + " goroutine " + goid : WITHOUT,
		};
	}

	/* ---- the samples --------------------------------------------------------------------- */

	class Samples {
		constructor() {
			this.mappings = new Table();
			this.functions = new Table();
			this.locations = new Table();
			this.frames = new Table();
			this.stacks = new Table();
			this.sets = new Table();
			this.labels = new Map(); /* key → label: sets differ in few of theirs */
			this.files = new Map(); /* path → file */
			this.type = null; /* of the main value */
		}

		/* ---- adding ---------------------------------------------------------------------- */

		/* PROFILE as pprof.read() gives it. False: its values are another kind, nothing is added. */
		add(file, profile) {
			const main = mainValue(profile);
			const type = profile.types[main] || { type: "", unit: "" };
			if (this.type && (this.type.type !== type.type || this.type.unit !== type.unit))
				return false;
			this.type = type;
			this.periodType = profile.periodType;
			this.period = profile.period;
			const counts = profile.types.findIndex((t) => t.unit === "count" && t.type === "samples");
			const mappings = profile.mappings.map((m) => this.mapping(m));
			const functions = profile.functions.map((f) => this.fn(f));
			const locations = profile.locations.map((l) => this.location(l, mappings, functions));
			/* Samples of other values only, as time off the CPU, are no samples of this one. */
			const samples = profile.samples.filter((s) =>
				counts < 0 || Number(s.values[main]) || Number(s.values[counts]));
			const size = samples.length;
			const added = {
				...file, size,
				stacks: new Int32Array(size), sets: new Int32Array(size),
				values: new Float64Array(size), counts: new Float64Array(size),
			};
			samples.forEach((s, i) => {
				added.stacks[i] = this.stack(s.locations.map((l) => locations[l]));
				added.sets[i] = this.set(s.labels);
				added.values[i] = Math.max(0, Number(s.values[main] || 0));
				added.counts[i] = counts < 0 ? 0 : Math.max(0, Number(s.values[counts]));
			});
			this.files.set(file.path, added);
			return true;
		}

		mapping(m) {
			const key = [m.start, m.limit, m.offset, m.file, m.buildId, m.hasFunctions,
				m.hasFilenames, m.hasLineNumbers, m.hasInlineFrames].join("\0");
			return this.mappings.of(key, () => m);
		}

		fn(f) {
			const key = [f.name, f.systemName, f.file, f.startLine].join("\0");
			return this.functions.of(key, () => f);
		}

		location(l, mappings, functions) {
			const mapping = l.mapping < 0 ? -1 : mappings[l.mapping];
			const lines = l.lines.map((line) => ({
				function: line.function < 0 ? -1 : functions[line.function],
				line: line.line, column: line.column,
			}));
			return this.locations.of(locationKey({ mapping, address: l.address, lines }),
				() => this.madeLocation(mapping, l, lines));
		}

		/* Frames and their lines stand outermost first, as a tree wants them. */
		madeLocation(mapping, l, lines) {
			const m = mapping < 0 ? null : this.mappings.items[mapping];
			const named = lines.filter((line) => line.function >= 0);
			const frames = named.map((line, i) =>
				this.frame(m, l.address, this.functions.items[line.function], i < named.length - 1));
			return {
				mapping, address: l.address, lines, folded: l.folded,
				kernel: inKernel(m, l.address),
				frames: frames.length ? frames.reverse() : [this.frame(m, l.address, null, false)],
				frameLines: frames.length ? named.map((line) => line.line).reverse() : [0],
			};
		}

		frame(mapping, address, fn, inlined) {
			const module = mapping ? mapping.file : "";
			const kind = kindOf(mapping, address, fn);
			const name = fn ? fn.name :
				(module ? baseName(module) : "unknown") + "+0x" + address.toString(16);
			const file = fn ? fn.file : "";
			const key = [name, file, module, kind, inlined ? 1 : 0].join("\0");
			return this.frames.of(key, () =>
				({ name, file, module, kind, inlined, start: fn ? Number(fn.startLine) : 0 }));
		}

		/* The frame that stands for a group of stacks in a tree. */
		labelFrame(name) {
			return this.frames.of("\0" + name, () =>
				({ name, file: "", module: "", kind: KINDS.label, inlined: false, start: 0 }));
		}

		stack(locations) {
			return this.stacks.of(stackKey({ locations }), () => ({ locations, shown: {} }));
		}

		set(labels) {
			const keys = labels.map(labelKey);
			return this.sets.of(keys.join("\x01"),
				() => labelSet(labels.map((l, i) => this.label(keys[i], l))));
		}

		label(key, l) {
			if (!this.labels.has(key)) this.labels.set(key, l);
			return this.labels.get(key);
		}

		/* ---- forgetting ------------------------------------------------------------------ */

		/*
		 * Forgets the files that KEEP is false for, and what only they had; the numbers in FRAMES
		 * are of frames that stay all the same. What stays has new numbers: returns that of each
		 * frame, -1 for those that are gone.
		 */
		forget(keep, frames = []) {
			for (const [path, file] of this.files) if (!keep(file)) this.files.delete(path);
			const files = [...this.files.values()];
			const stacks = marked(this.stacks.items.length, files.map((f) => f.stacks));
			const sets = marked(this.sets.items.length, files.map((f) => f.sets));
			const renumbered = this.sets.retain(sets);
			this.labels.clear();
			for (const set of this.sets.items) {
				delete set.frameBy;
				for (const l of set.labels) this.labels.set(labelKey(l), l);
			}
			for (const file of files) {
				delete file.frameBy;
				file.sets.forEach((set, i) => { file.sets[i] = renumbered[set]; });
			}
			return this.retainStacks(files, stacks, frames);
		}

		retainStacks(files, used, pinned) {
			const kept = this.stacks.items.filter((_, i) => used[i]);
			const locations = marked(this.locations.items.length, kept.map((s) => s.locations));
			const moved = this.retainLocations(locations, pinned);
			for (const stack of kept) {
				stack.locations = stack.locations.map((l) => moved.locations[l]);
				stack.shown = {};
			}
			const renumbered = this.stacks.retain(used, stackKey);
			for (const file of files)
				file.stacks.forEach((stack, i) => { file.stacks[i] = renumbered[stack]; });
			return moved.frames;
		}

		retainLocations(used, pinned) {
			const kept = this.locations.items.filter((_, i) => used[i]);
			const functions = this.functions.retain(marked(this.functions.items.length,
				kept.map((l) => l.lines.map((n) => n.function).filter((n) => n >= 0))));
			const mappings = this.mappings.retain(marked(this.mappings.items.length,
				[kept.map((l) => l.mapping).filter((m) => m >= 0)]));
			const frames = this.frames.retain(marked(this.frames.items.length,
				[pinned, ...kept.map((l) => l.frames)]));
			for (const l of kept) {
				if (l.mapping >= 0) l.mapping = mappings[l.mapping];
				for (const line of l.lines) if (line.function >= 0) line.function = functions[line.function];
				l.frames = l.frames.map((frame) => frames[frame]);
			}
			return { locations: this.locations.retain(used, locationKey), frames };
		}

		/* ---- stacks by side -------------------------------------------------------------- */

		/*
		 * A stack as CODE ("all", "user", "kernel") shows it: locations leaf first, frames and
		 * lines root first. What one asks not to see is left out; a stack of nothing else is null.
		 */
		shown(stack, code) {
			const item = this.stacks.items[stack];
			if (item.shown[code] === undefined) item.shown[code] = this.madeShown(item, code);
			return item.shown[code];
		}

		madeShown(item, code) {
			const locations = item.locations.filter((l) => code === "all" ||
				this.locations.items[l].kernel === (code === "kernel"));
			if (!locations.length && item.locations.length) return null;
			const frames = [];
			const lines = [];
			for (let i = locations.length - 1; i >= 0; i--) {
				const location = this.locations.items[locations[i]];
				frames.push(...location.frames);
				lines.push(...location.frameLines);
			}
			return { locations, frames, lines };
		}

		/* ---- filters --------------------------------------------------------------------- */

		/* For each label set the bits of the fields of FILTER that it does not fit. */
		misfits(filter) {
			return Uint8Array.from(this.sets.items, (set) => {
				let mask = 0;
				for (let bit = 1; bit < FIELDS.length; bit++) {
					const wanted = filter[FIELDS[bit]];
					if (wanted && set[FIELDS[bit]] !== wanted) mask |= 1 << bit;
				}
				return mask;
			});
		}

		/*
		 * Calls EACH(file, i, misfit) for the samples of FILES, misfit being the mask of filters
		 * that they do not fit.
		 */
		each(files, filter, each) {
			const misfits = this.misfits(filter);
			const code = filter.code || "all";
			for (const file of files) {
				const group = filter.group && file.group !== filter.group ? 1 : 0;
				for (let i = 0; i < file.size; i++) {
					if (this.shown(file.stacks[i], code)) each(file, i, misfits[file.sets[i]] | group);
				}
			}
		}

		/*
		 * What could be chosen for each field with the other filters as they are: field → Map from
		 * text to value. And `perFile`, the sum of what fits by path.
		 */
		facets(files, filter) {
			const choices = FIELDS.map(() => new Map());
			const perFile = new Map();
			const add = (map, key, value) => map.set(key, (map.get(key) || 0) + value);
			this.each(files, filter, (file, i, misfit) => {
				const set = this.sets.items[file.sets[i]];
				const value = file.values[i];
				if (!misfit) add(perFile, file.path, value);
				for (let bit = 0; bit < FIELDS.length; bit++) {
					if (misfit & ~(1 << bit)) continue;
					add(choices[bit], bit ? set[FIELDS[bit]] : file.group, value);
				}
			});
			return { choices: Object.fromEntries(FIELDS.map((f, i) => [f, choices[i]])), perFile };
		}

		/* ---- rows ------------------------------------------------------------------------ */

		/*
		 * Rows for a tree: one for each stack (and group, when BY names a field), with its value
		 * and count in FILES and in the files of BASELINE.
		 */
		rows({ files, baseline = [], filter = {}, by = "" }) {
			const rows = new Map();
			const code = filter.code || "all";
			const collect = (value, count) => (file, i, misfit) => {
				if (misfit) return;
				const group = this.groupOf(file, i, by);
				const stack = file.stacks[i];
				const key = stack * 0x1000000 + (group + 1);
				let row = rows.get(key);
				if (!row) {
					const shown = this.shown(stack, code);
					row = { stack, group, frames: shown.frames, lines: shown.lines,
						value: 0, count: 0, base: 0, baseCount: 0 };
					rows.set(key, row);
				}
				row[value] += file.values[i];
				row[count] += file.counts[i];
			};
			this.each(files, filter, collect("value", "count"));
			this.each(baseline, filter, collect("base", "baseCount"));
			return [...rows.values()];
		}

		/* The frame of the group of sample I, -1 without groups. */
		groupOf(file, i, by) {
			if (!by) return -1;
			const set = this.sets.items[file.sets[i]];
			const cache = by === "group" ? file : set;
			cache.frameBy = cache.frameBy || {};
			if (cache.frameBy[by] === undefined) {
				const text = by === "group" ? file.group : set[by];
				cache.frameBy[by] = this.labelFrame(text === WITHOUT ? "no " + by : text);
			}
			return cache.frameBy[by];
		}

		/* ---- one profile of them --------------------------------------------------------- */

		/*
		 * The samples of FILES that fit, as pprof.write() wants them. KEEP, when given, is a set of
		 * rows (of `rows()` with the same filter and BY): only their samples.
		 */
		profile({ files, filter = {}, by = "", keep = null }) {
			const code = filter.code || "all";
			const kept = keep && new Set([...keep].map((r) => r.stack + " " + r.group));
			const merged = new Map();
			this.each(files, filter, (file, i, misfit) => {
				if (misfit) return;
				if (kept && !kept.has(file.stacks[i] + " " + this.groupOf(file, i, by))) return;
				const locations = this.shown(file.stacks[i], code).locations;
				const key = locations.join(" ") + "/" + file.sets[i];
				const sample = merged.get(key) || { locations, set: file.sets[i], count: 0, value: 0 };
				sample.count += file.counts[i];
				sample.value += file.values[i];
				merged.set(key, sample);
			});
			return this.exported([...merged.values()], files);
		}

		exported(merged, files) {
			const locations = picker(this.locations.items);
			const mappings = picker(this.mappings.items);
			const functions = picker(this.functions.items);
			const list = merged.map((s) => ({
				locations: Array.from(s.locations, locations.of),
				values: [s.count, s.value],
				labels: this.sets.items[s.set].labels,
			}));
			const shown = locations.items.map((l) => ({
				address: l.address, folded: l.folded, mapping: l.mapping < 0 ? -1 : mappings.of(l.mapping),
				lines: l.lines.map((n) => ({ ...n, function: n.function < 0 ? -1 : functions.of(n.function) })),
			}));
			const windows = spans(files);
			const type = this.type || { type: "cpu", unit: "nanoseconds" };
			return {
				types: [{ type: "samples", unit: "count" }, type],
				defaultType: type.type,
				periodType: this.periodType || type,
				period: this.period || 0,
				timeNs: BigInt(Math.round(windows.start)) * 1000000n,
				durationNs: Math.round(windows.covered * 1e6),
				comments: [],
				samples: list, locations: shown, mappings: mappings.items, functions: functions.items,
			};
		}
	}

	function labelKey(l) {
		return [l.key, l.text, l.number, l.unit].join("\0");
	}

	function locationKey({ mapping, address, lines }) {
		return [mapping, address,
			...lines.map((n) => n.function + ":" + n.line + ":" + n.column)].join(" ");
	}

	function stackKey({ locations }) {
		return locations.join(" ");
	}

	/* SIZE flags, set for the numbers in LISTS. */
	function marked(size, lists) {
		const flags = new Uint8Array(size);
		for (const list of lists) for (const number of list) flags[number] = 1;
		return flags;
	}

	/* Numbers anew those items of LIST that are asked for. */
	function picker(list) {
		const numbers = new Map();
		const items = [];
		const of = (number) => {
			let found = numbers.get(number);
			if (found === undefined) {
				found = items.push(list[number]) - 1;
				numbers.set(number, found);
			}
			return found;
		};
		return { items, of };
	}

	function mainValue(profile) {
		const index = profile.types.findIndex((t) => t.type === profile.defaultType);
		return index >= 0 ? index : profile.types.length - 1;
	}

	/* Start and end of FILES in ms since 1970, and the time their windows cover together. */
	function spans(files) {
		const windows = [...files].map((f) => [f.timeMs, f.timeMs + f.durationMs]);
		windows.sort((a, b) => a[0] - b[0]);
		let covered = 0;
		let end = -Infinity;
		for (const [from, to] of windows) {
			covered += Math.max(0, to - Math.max(from, end));
			end = Math.max(end, to);
		}
		return { start: windows.length ? windows[0][0] : 0, end: windows.length ? end : 0, covered };
	}

	return { Samples, FIELDS, KINDS, KIND_NAMES, WITHOUT, baseName, spans };
})();

if (typeof module === "object") module.exports = samples;
