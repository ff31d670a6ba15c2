/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page's modules without a page. Reads one question as JSON from standard input, writes one
 * answer as JSON: { file: PATH, ask: NAME, ... } with the fields that the function NAME below takes.
 */
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const page = path.join(__dirname, "../../agent/serve/page");
const [pprof, samples, tree, format] = ["pprof", "samples", "tree", "format"]
	.map((name) => require(path.join(page, name + ".js")));

/* FILES: [{ path, group, timeMs, durationMs }] → Samples of all of them. */
async function load(files) {
	const all = new samples.Samples();
	for (const file of files)
		if (!all.add(file, await pprof.decode(fs.readFileSync(file.path)))) throw new Error("other values");
	return all;
}

function pick(all, paths) {
	return (paths || [...all.files.keys()]).map((p) => all.files.get(p));
}

/* The tree of a question, and what it is made from. */
async function shown(q) {
	const all = await load(q.files);
	const files = pick(all, q.now);
	const filter = q.filter || {};
	const rows = all.rows({ files, baseline: q.base ? pick(all, q.base) : [], filter, by: q.by || "" });
	const made = new tree.Tree(rows, all.frames.items, { inverted: q.inverted, scale: q.base ? 1 : 0 });
	return { all, files, filter, rows, made };
}

const questions = {
	/* Every node as [path of names, value, base, self], in the order of drawing. */
	async nodes(q) {
		const { made } = await shown(q);
		const list = [];
		for (let node = 0; node < made.size; node++) {
			const names = made.pathTo(node).map((frame) => made.frames[frame].name);
			list.push([names, made.value(node), made.base(node), made.self(node), made.change(node)]);
		}
		return { nodes: list, width: made.width(0), levels: made.levels.map((level) => level.length) };
	},

	async functions(q) {
		const { rows, all } = await shown(q);
		return tree.functions(rows, all.frames.items).map((e) =>
			[all.frames.items[e.frame].name, all.frames.items[e.frame].module, e.self, e.total]);
	},

	async search(q) {
		const { made, all } = await shown(q);
		return made.matched(0, tree.search(all.frames.items, q.text));
	},

	async choices(q) {
		const { all, files, filter } = await shown(q);
		const { choices } = all.facets(files, filter);
		return Object.fromEntries(Object.entries(choices).map(([field, map]) => [field, [...map]]));
	},

	/* Writes what the download button gives; ZOOM is a path of names to save only what is below. */
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

	/* For each file the class of the error that reading it gives, "" for none. */
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

	/* COUNT versions of a message with some bytes changed: the errors that are no BadProfile. */
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

	async texts(q) {
		return q.calls.map(([name, ...args]) => format[name](...args));
	},
};

(async () => {
	const question = JSON.parse(fs.readFileSync(0, "utf8"));
	process.stdout.write(JSON.stringify(await questions[question.ask](question)));
})();
