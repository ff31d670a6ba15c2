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
	const FIELDS = ["group", "container", "comm", "process", "thread", "goroutine", "label"];
	/* Labels with a field of their own, or that are different in each sample. */
	const KNOWN_LABELS = new Set(["pid", "tid", "goid", "cpu", "comm", "thread_comm", "container_id",
		"fathom_group", "fathom_minute"]);
	const FILE_LABEL = "fathom_file"; /* of a merge of files: the number of a sample's file */
	const GROUP_LABEL = "fathom_group"; /* the process group of a sample */
	const MINUTE_LABEL = "fathom_minute"; /* of a file of ten minutes: from 1 on */
	const MAX_LABEL_KEYS = 64; /* of other labels that stacks can be put under */
	const KINDS = { native: 0, go: 1, jit: 2, kernel: 3, unknown: 4, label: 5 };
	const KIND_NAMES = Object.keys(KINDS);
	const HIGH_HALF = 1n << 63n; /* addresses from here on are the kernel's */
	const WITHOUT = "(none)";
	const SIDES = { user: 1, kernel: 2, all: 3 };
	const { ITEMS, finish } = typeof module === "object" ? require("./slices.js") : slices;
	const { Rows, Shown } = typeof module === "object" ? require("./rows.js") : rows;

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

	/* Table of stacks, whose keys are lists of numbers: { locations, sides, frameBy }. */
	class StackTable {
		constructor() {
			this.items = [];
			this.hashes = []; /* of each item */
			this.slots = new Int32Array(1024); /* number + 1, at its hash or behind; 0 = free */
		}

		of(locations, make) {
			const hash = hashOf(locations);
			const slot = this.slotOf(hash, locations);
			const found = this.slots[slot] - 1;
			if (found < 0) this.push(make(), hash, slot);
			return found < 0 ? this.items.length - 1 : found;
		}

		/* Where the stack of LOCATIONS is, or would be. */
		slotOf(hash, locations) {
			const { items, hashes, slots } = this;
			const mask = slots.length - 1;
			let slot = hash & mask;
			for (let number; (number = slots[slot] - 1) >= 0; slot = (slot + 1) & mask)
				if (hashes[number] === hash && isSame(items[number].locations, locations)) break;
			return slot;
		}

		push(item, hash, slot) {
			this.items.push(item);
			this.hashes.push(hash);
			this.slots[slot] = this.items.length;
			if (this.items.length * 2 > this.slots.length) this.fill(new Int32Array(this.slots.length * 2));
		}

		/* Makes SLOTS, which are empty, those of the items, which are all different. */
		fill(slots) {
			const mask = slots.length - 1;
			this.hashes.forEach((hash, i) => {
				let slot = hash & mask;
				while (slots[slot]) slot = (slot + 1) & mask;
				slots[slot] = i + 1;
			});
			this.slots = slots;
		}

		/* As Table.retain(). RENEWED makes a new item with the new numbers of its locations: rows still use the old. */
		retain(used, renewed) {
			const renumbered = new Int32Array(this.items.length).fill(-1);
			let next = 0;
			used.forEach((isUsed, i) => { if (isUsed) renumbered[i] = next++; });
			this.items = this.items.filter((_, i) => used[i]).map(renewed);
			this.hashes = this.items.map((item) => hashOf(item.locations));
			this.fill(this.slots.fill(0));
			return renumbered;
		}
	}

	function hashOf(locations) {
		let hash = locations.length;
		for (let i = 0; i < locations.length; i++)
			hash = Math.imul((hash << 5) ^ (hash >>> 27) ^ locations[i], 0x9e3779b1);
		return (hash ^ (hash >>> 15)) & 0x3fffffff; /* a small integer */
	}

	function isSame(a, b) {
		if (a.length !== b.length) return false;
		for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
		return true;
	}

	/* A short name for TEXT: 53 bits of hash, in letters and digits. */
	function keyOf(text) {
		let high = 0xdeadbeef;
		let low = 0x41c6ce57;
		for (let i = 0; i < text.length; i++) {
			const code = text.charCodeAt(i);
			high = Math.imul(high ^ code, 2654435761);
			low = Math.imul(low ^ code, 1597334677);
		}
		high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
		low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
		return (4294967296 * (low & 0x1fffff) + (high >>> 0)).toString(36);
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
		return fn.file.endsWith(".go") || fn.file === "<autogenerated>" ||
			(fn.file.endsWith(".s") && /^[\w./]+\.\w+$/.test(fn.name));
	}

	/* FILE+0xADDRESS is what the agent calls a function that has no symbol, after its first byte. */
	function isNameless(mapping, fn) {
		return Boolean(mapping && mapping.file) && fn.name.startsWith(baseName(mapping.file) + "+0x");
	}

	function kindOf(mapping, address, fn) {
		if (!fn || isNameless(mapping, fn) || (!mapping && fn.name.startsWith("["))) return KINDS.unknown;
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

	/* The text of each label that has no field of its own, by key. */
	function otherLabels(labels) {
		const others = labels.filter((l) => !KNOWN_LABELS.has(l.key));
		return new Map(others.map((l) => [l.key, l.text === null ? (l.number + " " + l.unit).trim() : l.text]));
	}

	function named(name, number) {
		return number ? (name || "?") + " (" + number + ")" : name || WITHOUT;
	}

	/*
	 * A set of labels, with the texts that filters compare and choices show. GROUP: of samples that
	 * do not say it.
	 */
	function labelSet(labels, group) {
		const pid = labelNumber(labels, "pid");
		const comm = labelText(labels, "comm");
		const process = named(comm, pid);
		const goid = labelNumber(labels, "goid");
		return {
			labels,
			others: otherLabels(labels),
			group: labelText(labels, GROUP_LABEL) || group || WITHOUT,
			comm: comm || WITHOUT,
			process,
			container: labelText(labels, "container_id") || WITHOUT,
			thread: named(labelText(labels, "thread_comm"), labelNumber(labels, "tid")),
			goroutine: goid ? process + " goroutine " + goid : WITHOUT,
		};
	}

	/* What the filter "label" compares and its choices show: a text for each label. */
	function labelTexts(set) {
		return set.others.size ? [...set.others].map(([key, text]) => key + " = " + text) : [WITHOUT];
	}

	function fits(set, field, wanted) {
		return field === "label" ? labelTexts(set).includes(wanted) : set[field] === wanted;
	}

	/* What agent/daemon/windows.c says in a profile of the samples that it lost. */
	const LOST = /^samples lost since the window before: (\d{1,15})$/;

	function minuteOf(sample) {
		const label = sample.labels.find((l) => l.key === MINUTE_LABEL);
		return label ? Number(label.number) : 0;
	}

	function lostIn(comments) {
		const found = comments.map((text) => LOST.exec(text)).find(Boolean);
		return found ? Number(found[1]) : 0;
	}

	/* What is in a merge of files: each one's path, period, main type, comments and samples. */
	function* partsOf(profile) {
		const files = [];
		const unread = [];
		for (const text of profile.comments) {
			const [word, ...rest] = text.split(" ");
			if (word === "file")
				files.push({ period: Number(rest[0]), type: rest[1], path: rest.slice(2).join(" "),
					comments: [], samples: [] });
			else if (word === "comment" && files.length)
				files[files.length - 1].comments.push(text.slice(word.length + 1));
			else if (word === "unread")
				unread.push(rest.join(" "));
		}
		for (let i = 0; i < profile.samples.length; i++) {
			const { locations, values, labels } = profile.samples[i];
			const label = labels.find((l) => l.key === FILE_LABEL);
			const file = label && files[Number(label.number) - 1];
			if (file) file.samples.push({ locations, values, labels: labels.filter((l) => l !== label) });
			if (i % ITEMS === 0) yield;
		}
		return { files, unread };
	}

	/* How often a second samples were taken; 0 = not known, as of cycles. */
	function hertzOf({ periodType, period }) {
		return periodType.unit === "nanoseconds" && period > 0 ? Math.round(1e9 / Number(period)) : 0;
	}

	/* ---- the samples --------------------------------------------------------------------- */

	class Samples {
		/* WANTED: the type of the main value; "": the default of each profile. */
		constructor(wanted = "") {
			this.wanted = wanted;
			this.types = []; /* of the newest profile, to choose from */
			this.mappings = new Table();
			this.functions = new Table();
			this.locations = new Table();
			this.frames = new Table();
			this.stacks = new StackTable();
			this.sets = new Table();
			this.labels = new Map(); /* key → label: sets differ in few of theirs */
			this.files = new Map(); /* path → file */
			this.shownBy = new Map(); /* side and merge → rows.Shown of the locations */
			this.type = null; /* of the main value */
			this.epoch = 0; /* grows when things get new numbers */
		}

		/* ---- adding ---------------------------------------------------------------------- */

		/*
		 * PROFILE as pprof.read() gives it. False: its values are another kind, nothing is added.
		 * What ends in -ing is the same as work for slices.run().
		 */
		add(file, profile) {
			return finish(this.adding(file, profile));
		}

		addMerged(files, profile, isFull) {
			return finish(this.addingMerged(files, profile, isFull));
		}

		*adding(file, profile) {
			if (file.minute)
				profile = { ...profile, samples: profile.samples.filter((s) => minuteOf(s) === file.minute) };
			for (;;) {
				const columns = yield* this.columnsOf(profile);
				if (!columns) return false;
				if (yield* this.addFile(file, columns, profile)) return true;
			}
		}

		/*
		 * Adds those of FILES (path → file) whose samples are in PROFILE, which the agent merged of
		 * them (agent/server/merge/stored_merge.h): the newest first, until isFull() says so. Takes
		 * what it added, or can never add, out of FILES. Returns the paths of the latter: they are
		 * no profiles, or their values are another kind; and of slices those of stored profiles that
		 * they lack.
		 */
		*addingMerged(files, profile, isFull = () => false) {
			const parts = yield* partsOf(profile);
			let columns = yield* this.columnsOf(profile);
			const inSlices = [...files.values()].some((file) => file.slice);
			const bad = parts.unread.filter((path) => files.delete(path) || inSlices);
			for (const part of parts.files.reverse()) {
				const file = files.get(part.path);
				if (!file) continue;
				files.delete(part.path);
				if (!columns || (!this.wanted && part.type !== this.type.type)) {
					bad.push(file.path);
					continue;
				}
				while (!(yield* this.addFile(file, columns, { ...profile, ...part })))
					columns = yield* this.columnsOf(profile);
				if (isFull()) break;
			}
			return bad;
		}

		/*
		 * Where PROFILE's values and locations are in here, for as long as `epoch` stays; null if
		 * its values are another kind.
		 */
		*columnsOf(profile) {
			const main = mainValue(profile, this.wanted);
			const type = profile.types[main] || { type: "", unit: "" };
			this.types = profile.types;
			if (this.type && (this.type.type !== type.type || this.type.unit !== type.unit))
				return null;
			this.type = type;
			this.periodType = profile.periodType;
			this.period = profile.period;
			const counts = profile.types.findIndex((t) => t.unit === "count" && t.type === countsOf(type));
			for (;;) {
				const { epoch } = this;
				const locations = yield* this.locationsOf(profile);
				if (this.epoch === epoch) return { main, counts, locations, epoch };
			}
		}

		*locationsOf(profile) {
			const { epoch } = this;
			const mappings = profile.mappings.map((m) => this.mapping(m));
			const functions = [];
			for (let i = 0; i < profile.functions.length; i++) {
				functions.push(this.fn(profile.functions[i]));
				if (i % ITEMS === 0) yield;
			}
			const locations = [];
			for (let i = 0; i < profile.locations.length && this.epoch === epoch; i++) {
				locations.push(this.location(profile.locations[i], mappings, functions));
				if (i % ITEMS === 0) yield;
			}
			return locations;
		}

		/* False: COLUMNS are of an earlier epoch, and nothing is added. */
		*addFile(file, columns, profile) {
			const { main, counts, locations, epoch } = columns;
			/* Samples of other values only, as time off the CPU, are no samples of this one. */
			const samples = profile.samples.filter((s) =>
				Number(s.values[main]) || (counts >= 0 && Number(s.values[counts])));
			const size = samples.length;
			const added = {
				...file, size, lost: lostIn(profile.comments), hertz: hertzOf(profile),
				stacks: new Int32Array(size), sets: new Int32Array(size),
				values: new Float64Array(size), counts: new Float64Array(size),
			};
			const names = new Map(); /* of labels, as sets have them */
			for (let i = 0; i < size; i++) {
				if (i % ITEMS === 0) yield;
				if (this.epoch !== epoch) return false;
				const s = samples[i];
				added.stacks[i] = this.stack(s.locations.map((l) => locations[l]));
				added.sets[i] = this.set(s.labels, file.group, names);
				added.values[i] = Math.max(0, Number(s.values[main] || 0));
				added.counts[i] = counts < 0 ? 0 : Math.max(0, Number(s.values[counts]));
			}
			if (this.epoch !== epoch) return false;
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
				({ name, file, module, kind, inlined, start: fn ? Number(fn.startLine) : 0, key: keyOf(key) }));
		}

		/* The frame that stands for a group of stacks in a tree. */
		labelFrame(name) {
			const key = "\0" + name;
			return this.frames.of(key, () => ({ name, file: "", module: "", kind: KINDS.label,
				inlined: false, start: 0, key: keyOf(key) }));
		}

		stack(locations) {
			return this.stacks.of(locations, () => ({ locations, sides: this.sidesOf(locations), frameBy: null }));
		}

		/* Which sides have a part of a stack. Without locations it is shown with any. */
		sidesOf(locations) {
			let sides = locations.length ? 0 : SIDES.all;
			for (let i = 0; i < locations.length; i++)
				sides |= this.locations.items[locations[i]].kernel ? SIDES.kernel : SIDES.user;
			return sides;
		}

		/*
		 * GROUP: of samples that do not say it, as those in files of older agents. NAMES: label → its
		 * key, of those asked for before.
		 */
		set(labels, group, names) {
			const keys = labels.map((l) => {
				if (!names.has(l)) names.set(l, labelKey(l));
				return names.get(l);
			});
			return this.sets.of(keys.join("\x01") + "\x01\x01" + group,
				() => labelSet(labels.map((l, i) => this.label(keys[i], l)), group));
		}

		label(key, l) {
			if (!this.labels.has(key)) this.labels.set(key, l);
			return this.labels.get(key);
		}

		/* ---- forgetting ------------------------------------------------------------------ */

		/*
		 * Forgets the files that KEEP is false for, and what only they had. What stays has new
		 * numbers; frames keep their keys. Rows made before stay as they are.
		 */
		forget(keep) {
			this.epoch++;
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
				file.sets.forEach((set, i) => { file.sets[i] = renumbered[set]; });
			}
			this.retainStacks(files, stacks);
		}

		retainStacks(files, used) {
			const kept = this.stacks.items.filter((_, i) => used[i]);
			const locations = marked(this.locations.items.length, kept.map((s) => s.locations));
			const moved = this.retainLocations(locations);
			const renumbered = this.stacks.retain(used, ({ locations: old, sides }) =>
				({ locations: old.map((l) => moved[l]), sides, frameBy: null }));
			this.shownBy.clear();
			for (const file of files)
				file.stacks.forEach((stack, i) => { file.stacks[i] = renumbered[stack]; });
		}

		/* Returns the new number of each location. */
		retainLocations(used) {
			const kept = this.locations.items.filter((_, i) => used[i]);
			const functions = this.functions.retain(marked(this.functions.items.length,
				kept.map((l) => l.lines.map((n) => n.function).filter((n) => n >= 0))));
			const mappings = this.mappings.retain(marked(this.mappings.items.length,
				[kept.map((l) => l.mapping).filter((m) => m >= 0)]));
			const frames = this.frames.retain(marked(this.frames.items.length,
				kept.map((l) => l.frames)));
			for (const l of kept) {
				if (l.mapping >= 0) l.mapping = mappings[l.mapping];
				for (const line of l.lines) if (line.function >= 0) line.function = functions[line.function];
				l.frames = l.frames.map((frame) => frames[frame]);
			}
			return this.locations.retain(used, locationKey);
		}

		/* ---- stacks by side -------------------------------------------------------------- */

		/*
		 * All locations as CODE ("all", "user", "kernel") shows them: what one asks not to see is left out.
		 * MERGE: frames without a name are one per module.
		 */
		*showing(code, merge) {
			const key = merge ? code + " merged" : code;
			if (!this.shownBy.has(key)) this.shownBy.set(key, new Shown());
			const shown = this.shownBy.get(key);
			const { items } = this.locations;
			while (shown.size < items.length) {
				const location = items[shown.size];
				if (code !== "all" && location.kernel !== (code === "kernel")) shown.add([], []);
				else if (merge) this.showMerged(shown, location);
				else shown.add(location.frames, location.frameLines);
				if (shown.size % ITEMS === 0) yield;
			}
			return shown;
		}

		showMerged(shown, { frames, frameLines }) {
			const standIns = frames.map((number) => {
				const { kind, module } = this.frames.items[number];
				return kind === KINDS.unknown && module ? this.namelessFrame(module) : number;
			});
			standIns.forEach((number, i) => { if (number !== frames[i]) shown.nameless.add(number); });
			shown.add(standIns, frameLines.map((line, i) => (standIns[i] === frames[i] ? line : 0)));
		}

		/* The frames of a stack and their lines as in showing(), root first; null if all are left out. */
		shown(stack, code, merge = false) {
			const { locations, sides } = this.stacks.items[stack];
			const as = finish(this.showing(code, merge));
			return sides & SIDES[code]
				? { frames: as.list(locations, as.frames), lines: as.list(locations, as.lines) } : null;
		}

		/* The frame that stands for all of MODULE that has no name. */
		namelessFrame(module) {
			const key = "\0nameless " + module;
			return this.frames.of(key, () => ({ name: "(no name) " + baseName(module), file: "", module,
				kind: KINDS.unknown, inlined: false, start: 0, key: keyOf(key) }));
		}

		/* The locations of a stack that CODE shows, leaf first. */
		locationsIn(stack, code) {
			const { locations } = this.stacks.items[stack];
			return code === "all" ? locations
				: locations.filter((l) => this.locations.items[l].kernel === (code === "kernel"));
		}

		/* ---- filters --------------------------------------------------------------------- */

		/* For each label set the bits of the fields of FILTER that it does not fit. */
		misfits(filter) {
			return Uint8Array.from(this.sets.items, (set) => {
				let mask = 0;
				for (let bit = 0; bit < FIELDS.length; bit++) {
					const wanted = filter[FIELDS[bit]];
					if (wanted && !fits(set, FIELDS[bit], wanted)) mask |= 1 << bit;
				}
				return mask;
			});
		}

		/*
		 * Calls EACH(file, i, misfit) for the samples of FILES, misfit being the mask of filters
		 * that they do not fit.
		 */
		*each(files, filter, each) {
			const misfits = this.misfits(filter);
			const side = SIDES[filter.code || "all"];
			for (const file of files) {
				yield;
				for (let i = 0; i < file.size; i++) {
					const stack = this.stacks.items[file.stacks[i]];
					if (stack.sides & side) each(file, i, misfits[file.sets[i]]);
					if (i % ITEMS === ITEMS - 1) yield;
				}
			}
		}

		/*
		 * What could be chosen for each field with the other filters as they are: field → Map from
		 * text to value. And `perFile`, the sum of what fits by path.
		 */
		facets(files, filter) {
			return finish(this.finding(files, filter));
		}

		*finding(files, filter) {
			const choices = FIELDS.map(() => new Map());
			const perFile = new Map();
			const misfits = this.misfits(filter);
			const sums = new Float64Array(misfits.length); /* of one file, by set */
			for (const file of files) {
				const sets = new Set();
				yield* this.each([file], { code: filter.code }, (_, i) => {
					const set = file.sets[i];
					sets.add(set);
					sums[set] += file.values[i];
				});
				let count = 0;
				for (const set of sets) {
					this.addChoices(choices, perFile, { file, set, value: sums[set], misfit: misfits[set] });
					sums[set] = 0;
					if (++count % ITEMS === 0) yield;
				}
			}
			return { choices: Object.fromEntries(FIELDS.map((f, i) => [f, choices[i]])), perFile };
		}

		addChoices(choices, perFile, { file, set: number, value, misfit }) {
			const set = this.sets.items[number];
			const add = (map, key) => map.set(key, (map.get(key) || 0) + value);
			if (!misfit) add(perFile, file.path);
			for (let bit = 0; bit < FIELDS.length; bit++) {
				if (misfit & ~(1 << bit)) continue;
				if (FIELDS[bit] === "label") for (const text of labelTexts(set)) add(choices[bit], text);
				else add(choices[bit], set[FIELDS[bit]]);
			}
		}

		/* ---- rows ------------------------------------------------------------------------ */

		/*
		 * Rows for a tree: one for each stack (and group, when BY names a field), with its value
		 * and count in FILES and in the files of BASELINE. MERGE as in showing().
		 */
		rows(question) {
			return finish(this.collecting(question));
		}

		*collecting({ files, baseline = [], filter = {}, by = "", merge = false }) {
			const shown = yield* this.showing(filter.code || "all", merge);
			if (by === "started") yield* this.showing("all", false); /* for startedBy() */
			const table = new Rows(this.stacks.items, shown);
			const first = new Int32Array(this.stacks.items.length); /* row of a stack, + 1; 0 = none */
			const others = new Map(); /* a stack's rows of other groups */
			const rowOf = (stack, group) => {
				if (!first[stack]) {
					first[stack] = table.list.length + 1;
					return table.add(stack, group);
				}
				const row = table.list[first[stack] - 1];
				if (row.group === group) return row;
				const key = stack * 0x1000000 + (group + 1);
				if (!others.has(key)) others.set(key, table.add(stack, group));
				return others.get(key);
			};
			const collect = (value, count) => (file, i, misfit) => {
				if (misfit) return;
				const { number } = rowOf(file.stacks[i], this.groupOf(file, i, by));
				table[value][number] += file.values[i];
				table[count][number] += file.counts[i];
			};
			yield* this.each(files, filter, collect("value", "count"));
			yield* this.each(baseline, filter, collect("base", "baseCount"));
			return table.list;
		}

		/* The frame of the group of sample I, -1 without groups. */
		groupOf(file, i, by) {
			if (!by) return -1;
			const set = this.sets.items[file.sets[i]];
			const isStarted = by === "started" && set.goroutine !== WITHOUT;
			const cache = isStarted ? this.stacks.items[file.stacks[i]] : set;
			cache.frameBy = cache.frameBy || {};
			if (cache.frameBy[by] === undefined) {
				const text = isStarted ? this.startedBy(file.stacks[i]) : textBy(set, by);
				cache.frameBy[by] = this.labelFrame(text);
			}
			return cache.frameBy[by];
		}

		/* The function that the goroutine with STACK runs: ten thousand of them often share one. */
		startedBy(stack) {
			const { frames } = this.shown(stack, "all");
			const list = frames.map((number) => this.frames.items[number]);
			if (list.length && list[0].name.startsWith("[truncated")) return "goroutine, start not known";
			const first = list.find((f) => f.kind === KINDS.go && !/^runtime\.goexit/.test(f.name));
			return first ? "go " + first.name : "goroutine, start not known";
		}

		/* The keys of labels without a field of their own, in order. */
		labelKeys() {
			const keys = new Set();
			for (const set of this.sets.items) for (const key of set.others.keys()) keys.add(key);
			return [...keys].sort().slice(0, MAX_LABEL_KEYS);
		}

		/* ---- one profile of them --------------------------------------------------------- */

		/*
		 * The samples of FILES that fit, as pprof.write() wants them. KEEP, when given, is a set of
		 * rows (of `rows()` with the same filter and BY): only their samples.
		 */
		profile(question) {
			return finish(this.choosing(question));
		}

		*choosing({ files, filter = {}, by = "", keep = null }) {
			const code = filter.code || "all";
			const kept = keep && new Set([...keep].map((r) => r.stack + " " + r.group));
			const merged = new Map();
			yield* this.each(files, filter, (file, i, misfit) => {
				if (misfit) return;
				if (kept && !kept.has(file.stacks[i] + " " + this.groupOf(file, i, by))) return;
				const locations = this.locationsIn(file.stacks[i], code);
				const key = code === "all" ? file.stacks[i] * 0x1000000 + file.sets[i]
					: locations.join(" ") + "/" + file.sets[i];
				const sample = merged.get(key) || { locations, set: file.sets[i], count: 0, value: 0 };
				sample.count += file.counts[i];
				sample.value += file.values[i];
				merged.set(key, sample);
			});
			return yield* this.exported([...merged.values()], files);
		}

		*exported(merged, files) {
			const locations = picker(this.locations.items);
			const mappings = picker(this.mappings.items);
			const functions = picker(this.functions.items);
			const list = [];
			for (const s of merged) {
				list.push({ locations: s.locations.map(locations.of), values: [s.count, s.value],
					labels: this.sets.items[s.set].labels });
				if (list.length % ITEMS === 0) yield;
			}
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

	/* The go statement that created the goroutine of SET. */
	function createdBy(set) {
		if (set.goroutine === WITHOUT) return "no goroutine";
		const creator = set.others.get("go_created_by"), place = set.others.get("go_created_at");
		if (!creator) return "goroutine, creator not known";
		return "started by " + creator + (place ? " (" + place.replace(/^.*\//, "") + ")" : "");
	}

	/* The name of the group that label set SET is in. */
	function textBy(set, by) {
		if (by === "started") return "no goroutine";
		if (by === "created") return createdBy(set);
		const key = by.startsWith("label:") ? by.slice(6) : null;
		const text = key === null ? set[by] : set.others.get(key);
		if (text === undefined || text === WITHOUT) return "no " + (key === null ? by : key);
		return key === null ? text : key + " = " + text;
	}

	function labelKey(l) {
		return [l.key, l.text, l.number, l.unit].join("\0");
	}

	function locationKey({ mapping, address, lines }) {
		return [mapping, address,
			...lines.map((n) => n.function + ":" + n.line + ":" + n.column)].join(" ");
	}

	/* SIZE flags, set for the numbers in LISTS. */
	function marked(size, lists) {
		const flags = new Uint8Array(size);
		for (const list of lists) for (const number of list) flags[number] = 1;
		return flags;
	}

	/* Numbers anew those items of LIST that are asked for. */
	function picker(list) {
		const numbers = new Int32Array(list.length).fill(-1);
		const items = [];
		const of = (number) => {
			if (numbers[number] < 0) numbers[number] = items.push(list[number]) - 1;
			return numbers[number];
		};
		return { items, of };
	}

	/* The type that says how many samples there are behind a value of TYPE. */
	function countsOf(type) {
		return type.type === "off_cpu" ? "waits" : "samples";
	}

	function mainValue(profile, wanted) {
		const index = profile.types.findIndex((t) => t.type === (wanted || profile.defaultType));
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

	/*
	 * What is odd about the windows of FILES: `lost`, [{ timeMs, durationMs, count }] where samples
	 * were lost (all files of a window tell it), and `other`, [{ timeMs, durationMs, hertz }] where
	 * they were taken at another frequency than in most of the time, `hertz`.
	 */
	function oddities(files) {
		const windows = new Map();
		const hertz = new Map();
		for (const f of files) {
			const key = f.timeMs + " " + f.durationMs;
			const seen = windows.get(key) || { timeMs: f.timeMs, durationMs: f.durationMs, count: 0, hertz: f.hertz };
			seen.count = Math.max(seen.count, f.lost);
			windows.set(key, seen);
		}
		for (const w of windows.values())
			if (w.hertz) hertz.set(w.hertz, (hertz.get(w.hertz) || 0) + w.durationMs);
		const usual = [...hertz].reduce((a, b) => (b[1] > a[1] ? b : a), [0, 0])[0];
		const list = [...windows.values()];
		return { hertz: usual, lost: list.filter((w) => w.count),
			other: list.filter((w) => w.hertz && w.hertz !== usual) };
	}

	return { Samples, oddities, FIELDS, KINDS, KIND_NAMES, WITHOUT, baseName, spans };
})();

if (typeof module === "object") module.exports = samples;
