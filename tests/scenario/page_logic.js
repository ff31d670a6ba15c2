/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page's modules without a page. Reads one question as JSON from standard input, writes one
 * answer as JSON: { file: PATH, ask: NAME, ... } with the fields that the function NAME below takes.
 */
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");
const page = path.join(__dirname, "../../agent/server/serve/page");
const [slices, pprof, samples, tree, format, latency, address, timeline, around, textProfile] =
	["slices", "pprof", "samples", "tree", "format", "latency", "address", "timeline", "around", "text_profile"]
	.map((name) => require(path.join(page, name + ".js")));

/* FILES: [{ path, group, timeMs, durationMs }] → Samples of all of them except the paths in FORGET. */
async function load({ files, forget }) {
	const all = new samples.Samples();
	for (const file of files)
		if (!all.add(file, await pprof.decode(fs.readFileSync(file.path)))) throw new Error("other values");
	if (forget) all.forget((file) => !forget.includes(file.path));
	return all;
}

/* What ALL has of the file PATH: its facts, and its samples by frames, lines and labels. */
function contentOf(all, path) {
	const f = all.files.get(path);
	const sums = new Map();
	for (let i = 0; f && i < f.size; i++) {
		const { frames, lines } = all.shown(f.stacks[i], "all");
		const texts = all.sets.items[f.sets[i]].labels.map((l) => [l.key, l.text, l.number, l.unit].join(" ")).sort();
		const key = JSON.stringify([frames.map((n) => all.frames.items[n].key), lines, texts]);
		const [value, count] = sums.get(key) || [0, 0];
		sums.set(key, [value + f.values[i], count + f.counts[i]]);
	}
	return f && JSON.stringify([f.timeMs, f.durationMs, f.group, f.lost, f.hertz, [...sums].sort()]);
}

/* The paths of FILES of which A and B do not have the same; each has all of them. */
function differences(files, a, b) {
	return files.map((f) => f.path).filter((path) => !b.files.has(path) || contentOf(a, path) !== contentOf(b, path));
}

function pick(all, paths) {
	return (paths || [...all.files.keys()]).map((p) => all.files.get(p));
}

/* The tree for a question, and its inputs. */
async function shown(q) {
	const all = await load(q);
	const files = pick(all, q.now);
	const filter = q.filter || {};
	const rows = all.rows({ files, baseline: q.base ? pick(all, q.base) : [], filter, by: q.by || "" });
	const made = new tree.Tree(rows, all.frames.items, { inverted: q.inverted, scale: q.base ? 1 : 0 });
	return { all, files, filter, rows, made };
}

/* ---- the page's App, without its drawing -------------------------------------------------- */

/* Accepts every call, has every member. */
const anything = new Proxy(function () {}, {
	get: (_, key) => (key === "children" ? [] : key === Symbol.toPrimitive ? () => "" :
		key === Symbol.iterator ? undefined : anything),
	apply: () => anything, construct: () => anything, set: () => true,
});

/* app.js as the browser runs it, on CLIENT; it is not started and shows nothing. */
function makePage(client) {
	class View { show() {} draw() {} setTheme() {} }
	const context = {
		console, performance, setTimeout: () => 0, clearTimeout() {}, matchMedia: () => anything,
		document: anything, window: anything, location: anything, history: anything, slices, samples, format, tree, address, pprof: {},
		flame: { Flame: View }, timeline: { Timeline: View },
		table: { FunctionTable: View }, tip: { Tip: View }, around: { AroundView: View }, latency: { LatencyView: View },
		controls: { byId: () => anything, press() {} }, fileSource: { embedded: () => null, listen() {} },
		client: { Client: function () { return client; }, Unauthorized: class extends Error {},
			Away: class extends Error {}, each: async (items, work) => { for (const i of items) await work(i); } },
	};
	const text = fs.readFileSync(path.join(page, "app.js"), "utf8");
	vm.createContext(context);
	vm.runInContext(text.replace("page.start();", "globalThis.made = page;"), context);
	context.made.show = context.made.showButtons = () => {};
	context.made.fail = (error) => { throw error; };
	return context.made;
}

/* client.js's Client, whose requests GET answers; an answer's `made` is a profile. */
function realClient(get) {
	const context = { URLSearchParams, Math, Number, String, Promise, location: anything, AbortSignal: anything, fetch: anything,
		pprof: { decode: (made) => made }, Uint8Array: function (made) { return made; } };
	const text = fs.readFileSync(path.join(page, "client.js"), "utf8");
	vm.createContext(context);
	vm.runInContext(text + "\nglobalThis.made = new client.Client();", context);
	context.made.get = async (asked) => {
		const answer = await get(asked);
		return { ...answer, arrayBuffer: async () => answer.made };
	};
	return context.made;
}

/* Window NUMBER: SIZE samples of 1 each, in functions that all share, in its own stacks or goroutines. */
function madeWindow(number, size, { stacks, goroutines }) {
	const label = (key, value) => ({ key, text: null, number: value, unit: "id" });
	const names = ["main", "work", "window" + number];
	const own = (i) => number * size + i + 1;
	return {
		types: [{ type: "samples", unit: "count" }, { type: "cpu", unit: "nanoseconds" }],
		defaultType: "cpu", periodType: { type: "cpu", unit: "nanoseconds" }, period: 1, mappings: [], comments: [],
		functions: names.map((name) => ({ name, systemName: name, file: "a.go", startLine: 1 })),
		locations: [0, 1, 2].map((fn) => ({ mapping: -1, address: fn + 1, folded: 0,
			lines: [{ function: fn, line: fn + 1, column: 0 }] })).concat(Array.from({ length: size }, (_, i) =>
			({ mapping: -1, address: 10 + (stacks ? own(i) : 0), folded: 0, lines: [] }))),
		samples: Array.from({ length: size }, (_, i) => ({ locations: [3 + i, 2, 1, 0], values: [1, 1],
			labels: [label("pid", 7), label("goid", goroutines ? own(i) : 1)] })),
	};
}

const questions = {
	/*
	 * The page in Live mode over WINDOWS windows of ten seconds, with SIZE samples each. For each
	 * refresh: what was fetched, what is in memory, which windows the tree has, and the zoom.
	 */
	async live(q) {
		let now = 0;
		let fetched = 0;
		const range = q.minutes * 60000;
		const page = makePage({
			now: () => now,
			status: async () => ({ window_seconds: 10 }),
			list: async () => Array.from({ length: now / 10000 }, (_, i) => i)
				.filter((i) => i * 10000 >= now - range).map((i) =>
					({ path: "w" + i, group: "g", bytes: 100, timeMs: i * 10000, durationMs: 10000 })),
			profile: async (file) => { fetched++; return madeWindow(file.timeMs / 10000, q.size, q); },
		});
		page.state.minutes = q.minutes;
		Object.assign(page.limits || {}, q.limits);
		const answers = [];
		const names = (keys) => keys.map((key) => page.samples.frames.items.find((f) => f.key === key).name);
		for (let window = q.first || 1; window <= q.windows; window++) {
			now = window * 10000;
			fetched = 0;
			await page.refresh();
			if (!page.state.zoom.length) page.state.zoom = page.tree.pathTo(3);
			const shown = page.tree.used().map((frame) => frame.name).filter((n) => n.startsWith("window"));
			answers.push({ fetched, sets: page.samples.sets.items.length, stacks: page.samples.stacks.items.length,
				frames: page.samples.frames.items.length, locations: page.samples.locations.items.length,
				value: page.tree.value(0), shown: shown.map((n) => Number(n.slice(6))).sort((a, b) => a - b),
				dropped: page.dropped, zoom: names(page.state.zoom),
				zoomed: page.tree.find(page.state.zoom) > 0 });
		}
		return answers;
	},

	/*
	 * What is different between the files of q.files and the same from q.merged, which the agent
	 * merged of them: texts. The files in q.bad cannot be read.
	 */
	async merged(q) {
		const apart = await load(q);
		const together = new samples.Samples();
		const left = new Map(q.files.concat(q.bad).map((f) => [f.path, f]));
		const merged = await pprof.decode(fs.readFileSync(q.merged));
		const bad = together.addMerged(left, merged);
		const different = differences(q.files, apart, together);
		return { different, bad, left: [...left.keys()],
			stacks: [apart.stacks.items.length, together.stacks.items.length] };
	},

	/*
	 * Forgets the first of q.files while the last but one is added, and then while the last is half added. Returns
	 * whether that was refused, what is different from files of which the first was never there, and how many
	 * things of each kind there are, beside those.
	 */
	async meanwhile(q) {
		const [first, ...others] = q.files;
		const [added, half] = q.files.slice(-2);
		const profileOf = async ({ path: name }) => pprof.decode(fs.readFileSync(name));
		const all = await load({ files: q.files.slice(0, -2) });
		const isKept = (file) => file.path !== first.path;
		const refused = [];
		let work = all.forgetting(isKept);
		work.next();
		all.add(added, await profileOf(added));
		refused.push(!all.replace(slices.finish(work)));
		work = all.forgetting(isKept);
		work.next();
		const stacks = all.stacks.items.length;
		const adding = all.adding(half, await profileOf(half));
		while (all.stacks.items.length === stacks && !adding.next().done) { /* until it has added some */ }
		refused.push(!all.replace(slices.finish(work)));
		const isAdded = slices.finish(adding);
		const never = await load({ files: others });
		const sizes = ["mappings", "functions", "locations", "frames", "stacks", "sets"]
			.map((name) => [all[name].items.length, never[name].items.length]);
		return { refused, isAdded, different: differences(others, never, all), files: all.files.size, sizes };
	},

	/*
	 * A page that has no room for all of an hour's windows. The user chooses another range while two callers
	 * have it forget some.
	 */
	async hurried(q) {
		const now = 3600000;
		const page = makePage({
			now: () => now,
			status: async () => ({ window_seconds: 10 }),
			list: async (from) => Array.from({ length: now / 10000 }, (_, i) => i).filter((i) => i * 10000 >= from)
				.map((i) => ({ path: "w" + i, group: "g", bytes: 100, timeMs: i * 10000, durationMs: 10000 })),
			profile: async (file) => madeWindow(file.timeMs / 10000, q.size, { stacks: true }),
		});
		const told = () => ({ floor: page.floorMs, dropped: page.dropped, listed: page.listed.length, value: page.tree.value(0) });
		page.state.minutes = 60;
		page.limits.stacks = q.limits[0];
		await page.refresh();
		const before = told();
		page.limits.stacks = q.limits[1];
		const both = [page.forget(page.generation), page.forget(page.generation)];
		page.setMinutes(5);
		await Promise.all(both);
		while (page.refreshing) await slices.pause();
		return { before, after: told(), stacks: page.samples.stacks.items.length };
	},

	/* In a page with little room: which of q.files are there after their merge was loaded. */
	async crowded(q) {
		const merged = await pprof.decode(fs.readFileSync(q.merged));
		let asked = 0;
		const list = q.files.map((f, i) => ({ ...f, bytes: 100, timeMs: 10000 * i, durationMs: 10000 }));
		const page = makePage({
			now: () => 10000 * q.files.length, status: async () => ({ window_seconds: 10 }),
			list: async () => list, merged: async () => { asked++; return merged; },
			profile: async () => { throw new Error("one by one"); },
		});
		Object.assign(page.limits, q.limits);
		await page.refresh();
		return { asked, stacks: page.samples.stacks.items.length, dropped: page.dropped,
			files: [...page.samples.files.keys()].sort() };
	},

	/*
	 * A page that shows a day of q.slices slices of 20 minutes, 10 samples each, and is refreshed while the
	 * last one grows; half way it ends. The agent has nothing of the slices q.empty, could not read
	 * q.unread, and sends at most q.large slices at once. Numbers are those of slices.
	 */
	async day(q) {
		const LENGTH = 1200000;
		let now = q.slices * LENGTH - 300000;
		let asked = [];
		let wanted = 0;
		const sizeOf = (slice) => (Math.floor(now / LENGTH) === slice ? 10 + growth : 10);
		let growth = 0;
		const listed = (from) => {
			const list = [];
			for (let i = Math.max(0, Math.floor(from / LENGTH)); i * LENGTH < now; i++)
				list.push({ path: "slice/" + i * LENGTH, name: "", time_ms: i * LENGTH, duration_ms: LENGTH,
					bytes: sizeOf(i), slice_ms: LENGTH });
			return list;
		};
		const mergedOf = (first, last) => {
			const made = madeWindow(0, 100, {});
			made.comments = q.unread && first === 0 ? q.unread.map((path) => "unread " + path) : [];
			made.samples = [];
			for (let i = first, number = 0; i < last; i++) {
				if (q.empty && q.empty.includes(i)) continue;
				made.comments.push(`file 1 cpu slice/${i * LENGTH}`);
				const { samples: mine } = madeWindow(0, sizeOf(i), {});
				number++;
				for (const s of mine)
					made.samples.push({ ...s, labels: [...s.labels, { key: "fathom_file", text: null, number, unit: "id" }] });
			}
			return made;
		};
		const real = realClient(async (path) => {
			const query = new URLSearchParams(path.split("?")[1]);
			const [from, to] = [Number(query.get("from")), Number(query.get("to"))];
			if (path.startsWith("/api/profiles")) {
				wanted = Number(query.get("slices"));
				return { status: 200, ok: true, json: async () => listed(from) };
			}
			if (Number(query.get("slice_ms")) !== LENGTH) throw new Error("slices of " + query.get("slice_ms"));
			asked.push([from / LENGTH, to / LENGTH]);
			if (q.large && (to - from) / LENGTH > q.large) return { status: 413, ok: false };
			return { status: 200, ok: true, made: mergedOf(from / LENGTH, to / LENGTH) };
		});
		real.now = () => now;
		real.status = async () => ({ window_seconds: 10 });
		real.profile = async () => { throw new Error("one by one"); };
		const page = makePage(real);
		page.state.minutes = 1440;
		const refreshes = [];
		for (let i = 0; i < q.refreshes; i++) {
			asked = [];
			await page.refresh();
			const files = page.listed.map((f) => page.samples.files.get(f.path)).filter(Boolean);
			refreshes.push({ asked, slices: wanted, shown: files.length, bad: [...page.bad], lacking: [...page.lacking],
				pause: page.pause(), value: files.reduce((sum, f) => sum + f.counts.reduce((a, b) => a + b, 0), 0) });
			growth++;
			now += i === 2 ? 600000 : 60000;
		}
		return refreshes;
	},

	/* Every node as [path of names, value, base, self], in the order of drawing. */
	async nodes(q) {
		const { made } = await shown(q);
		const list = [];
		for (let node = 0; node < made.size; node++) {
			const names = made.chain(node).map((n) => made.frameOf(n).name);
			list.push([names, made.value(node), made.base(node), made.self(node), made.change(node)]);
		}
		return { nodes: list, width: made.width(0), levels: made.levels.map((level) => level.length) };
	},

	async functions(q) {
		const { rows, all } = await shown(q);
		return tree.functions(rows, all.frames.items).map((e) =>
			[all.frames.items[e.frame].name, all.frames.items[e.frame].module, e.self, e.total]);
	},

	/* Callers, callees and lines of the function q.name, from stacks of [name, line] pairs, root first. */
	async around(q) {
		const names = [...new Set(q.stacks.flatMap((s) => s.frames.map(([name]) => name)))];
		const frames = names.map((name) => ({ name, file: "a.c", module: "m" }));
		const rows = q.stacks.map(({ frames: stack, value }) => ({ group: 3, value, count: 1, base: 0, baseCount: 0,
			frames: stack.map(([name]) => names.indexOf(name)), lines: stack.map(([, line]) => line) }));
		const found = around.cut(rows, frames, { name: q.name, module: q.module || "m" });
		const told = (list) => list.map((row) => [row.frames.map((f) => names[f]).join(" "), row.value]);
		return { callers: told(found.callers), callees: told(found.callees), self: found.self, total: found.total,
			lines: found.lines.map((l) => [l.line, l.self, l.total]) };
	},

	/* What functions took in the windows of q.range, and how the picture has the first one's calls. */
	async latency(q) {
		const windows = latency.within(q.answer, q.range || null);
		const list = latency.functions(q.answer, windows);
		const points = list.length ? latency.overTime(q.answer, q.answer.windows, list[0]) : [];
		return {
			functions: list.map(({ buckets, ...f }) => f),
			reasons: latency.reasons(q.answer),
			heat: points.map(({ part }) => (part ? [...latency.heat(part, q.answer.bucket_starts_ns)] : null)),
		};
	},

	async search(q) {
		const { made, all } = await shown(q);
		return made.matched(0, tree.search(all.frames.items, q.text, q.regex));
	},

	/* For each text: why it is not accepted as a regular expression, or which of NAMES it finds. */
	async regexes(q) {
		const frames = q.names.map((name) => ({ name, file: "", module: "" }));
		return q.texts.map((text) => {
			try {
				const flags = tree.search(frames, text, true);
				return q.names.filter((_, i) => flags[i]);
			} catch (error) {
				return error.message;
			}
		});
	},

	/* The scale of a timeline for each of its highest values. */
	async scales(q) {
		return q.values.map((v) => timeline.niceAbove(v)).map((most) => [most, timeline.coresText(most)]);
	},

	async choices(q) {
		const { all, files, filter } = await shown(q);
		const { choices } = all.facets(files, filter);
		return Object.fromEntries(Object.entries(choices).map(([field, map]) => [field, [...map]]));
	},

	/* Writes the file of the download button; with ZOOM, a path of names, only what is below it. */
	async download(q) {
		const { all, files, filter, made } = await shown(q);
		let keep = null;
		if (q.zoom) {
			const step = (node, name) => made.children(node).find((n) => made.frameOf(n).name === name);
			keep = made.rowsOf(q.zoom.reduce(step, tree.ROOT));
		}
		const bytes = await pprof.encode(all.profile({ files, filter, by: q.by || "", keep }));
		fs.writeFileSync(q.out, bytes);
		return bytes.length;
	},

	/* What is in a text of another tool: its types, and each sample with labels and frames. */
	async text(q) {
		const bytes = await pprof.unzipped(fs.readFileSync(q.files[0].path));
		if (!textProfile.isText(bytes)) return "no text";
		const p = slices.finish(textProfile.reading(bytes));
		const told = (frame) => [p.locations[frame].lines.map((l) => p.functions[l.function].name)[0] || "",
			p.locations[frame].mapping < 0 ? "" : p.mappings[p.locations[frame].mapping].file, String(p.locations[frame].address)];
		return { types: p.types.map((t) => [t.type, t.unit]), durationNs: p.durationNs, samples: p.samples.map((s) => [s.values,
			Object.fromEntries(s.labels.map((l) => [l.key, l.text === null ? l.number : l.text])), s.locations.map(told)]) };
	},

	/* For each file the class of the error when reading it, "" for none. */
	async decode(q) {
		const results = [];
		for (const file of q.files) {
			try {
				await pprof.decode(fs.readFileSync(file.path));
				results.push("");
			} catch (error) {
				results.push(error.constructor.name);
			}
		}
		return results;
	},

	/* Reads COUNT versions of a message with some bytes changed: returns errors other than BadProfile. */
	async mutate(q) {
		const bytes = fs.readFileSync(q.files[0].path);
		let seed = q.seed;
		const random = (below) => {
			seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
			return Math.floor((seed / 2 ** 32) * below);
		};
		const others = new Set();
		let read = 0;
		for (let i = 0; i < q.count; i++) {
			const changed = Uint8Array.from(bytes);
			for (let k = 1 + random(4); k > 0; k--) changed[random(changed.length)] = random(256);
			try {
				const all = new samples.Samples();
				all.add({ path: "p", group: "g", timeMs: 0, durationMs: 1 }, pprof.read(changed));
				const rows = all.rows({ files: [...all.files.values()], by: "process" });
				new tree.Tree(rows, all.frames.items, { inverted: i % 2 === 0 });
				read++;
			} catch (error) {
				if (!(error instanceof pprof.BadProfile)) others.add(String(error.stack));
			}
		}
		return { read, others: [...others].slice(0, 3) };
	},

	/* Each of FRAGMENTS as the page reads it, and that written again. */
	async address(q) {
		return q.fragments.map((f) => address.read(f)).map((state) => ({ state, again: address.write(state) }));
	},

	/* Whether Back undoes a change from one fragment to another. */
	async steps(q) {
		return q.pairs.map(([before, after]) => address.isStep(before, after));
	},

	async texts(q) {
		return q.calls.map(([name, ...args]) => format[name](...args));
	},
};

(async () => {
	const question = JSON.parse(fs.readFileSync(0, "utf8"));
	process.stdout.write(JSON.stringify(await questions[question.ask](question)));
})();
