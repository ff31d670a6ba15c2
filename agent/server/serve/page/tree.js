/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call tree from rows (samples.js): the rows are sorted by their paths, so one pass over them
 * makes the tree in the order of its drawing. A node is a number; its facts are columns. The nodes
 * of a subtree are [node, end[node]), its rows [rowFirst[node], rowEnd[node]): what a node weighs
 * is a difference of two running sums over the rows, and nothing is added up node by node. A large
 * profile has millions of nodes.
 *
 * Children stand in the order of their names, which does not change from one refresh to the next.
 */
"use strict";

const tree = (() => {
	const ROOT = 0;
	const MAX_SEARCHED = 1000; /* letters of a name that a regular expression sees */

	/* A row's path: root first, or leaf first when inverted; its group's frame before all. */
	function pathOf(row, inverted) {
		const frames = inverted ? row.frames.slice().reverse() : row.frames;
		return row.group < 0 ? frames : [row.group, ...frames];
	}

	/* The source line of the frame at PLACE of a row's path; 0 = unknown. */
	function lineAt(row, inverted, place) {
		const at = row.group < 0 ? place : place - 1;
		return row.lines[inverted ? row.lines.length - 1 - at : at] || 0;
	}

	/* For each frame in PATHS its place in the order of their names. */
	function ranksOf(paths, frames) {
		const used = new Uint8Array(frames.length);
		for (const path of paths) for (const frame of path) used[frame] = 1;
		const order = [...frames.keys()].filter((frame) => used[frame]).sort((a, b) => {
			const x = frames[a].name;
			const y = frames[b].name;
			return x < y ? -1 : x > y ? 1 : a - b;
		});
		const ranks = new Int32Array(frames.length);
		order.forEach((frame, place) => { ranks[frame] = place; });
		return ranks;
	}

	/* How many steps from the root A and B go together. */
	function shared(a, b) {
		const length = Math.min(a.length, b.length);
		let i = 0;
		while (i < length && a[i] === b[i]) i++;
		return i;
	}

	/* LIST's running sums of VALUE: sums[i] is that of the items before i. */
	function running(list, value) {
		const sums = new Float64Array(list.length + 1);
		list.forEach((item, i) => { sums[i + 1] = sums[i] + value(item); });
		return sums;
	}

	class Tree {
		/*
		 * SCALE: what a baseline value is multiplied with to compare it (the ranges may differ in
		 * length); 0 without a baseline. A node is as wide as both together.
		 */
		constructor(rows, frames, { inverted = false, scale = 0 } = {}) {
			this.frames = frames;
			this.inverted = inverted;
			this.scale = scale;
			const paths = this.sort(rows);
			this.sums = {
				value: running(this.rows, (row) => row.value),
				count: running(this.rows, (row) => row.count),
				base: running(this.rows, (row) => row.base),
				baseCount: running(this.rows, (row) => row.baseCount),
				x: running(this.rows, (row) => row.value + row.base * scale),
			};
			this.build(paths);
			this.levels = this.byLevel();
		}

		/* Puts the rows into the order of their paths, which are given back in that order. */
		sort(rows) {
			const paths = rows.map((row) => Int32Array.from(pathOf(row, this.inverted)));
			const ranks = ranksOf(paths, this.frames);
			const places = paths.map((path) => path.map((frame) => ranks[frame]));
			const order = Uint32Array.from(rows, (_, i) => i).sort((i, j) => {
				const [a, b] = [places[i], places[j]];
				const at = shared(a, b);
				return at < a.length && at < b.length ? a[at] - b[at] : a.length - b.length;
			});
			this.rows = Array.from(order, (i) => rows[i]);
			return Array.from(order, (i) => paths[i]);
		}

		build(paths) {
			const together = paths.map((path, i) => (i ? shared(paths[i - 1], path) : 0));
			const size = paths.reduce((sum, path, i) => sum + path.length - together[i], 1);
			for (const name of ["frame", "parent", "depth", "end", "rowFirst", "rowEnd"])
				this[name] = new Int32Array(size);
			this.frame[ROOT] = this.parent[ROOT] = -1;
			const open = [ROOT];
			let node = ROOT + 1;
			paths.forEach((path, row) => {
				while (open.length > together[row] + 1) this.close(open.pop(), node, row);
				for (let at = together[row]; at < path.length; at++) {
					this.frame[node] = path[at];
					this.parent[node] = open[at];
					this.depth[node] = at + 1;
					this.rowFirst[node] = row;
					open.push(node++);
				}
			});
			while (open.length) this.close(open.pop(), node, paths.length);
		}

		close(node, end, row) {
			this.end[node] = end;
			this.rowEnd[node] = row;
		}

		/* For each depth its nodes, in order. */
		byLevel() {
			const sizes = [];
			for (const depth of this.depth) sizes[depth] = (sizes[depth] || 0) + 1;
			const levels = sizes.map((size) => new Int32Array(size));
			const filled = new Int32Array(sizes.length);
			this.depth.forEach((depth, node) => { levels[depth][filled[depth]++] = node; });
			return levels;
		}

		/* ---- weights --------------------------------------------------------------------- */

		sum(sums, node) {
			return sums[this.rowEnd[node]] - sums[this.rowFirst[node]];
		}

		value(node) {
			return this.sum(this.sums.value, node);
		}

		base(node) {
			return this.sum(this.sums.base, node);
		}

		self(node) {
			return this.children(node).reduce((left, child) => left - this.value(child), this.value(node));
		}

		/* Where NODE begins and how wide it is, in values of now and of the scaled baseline. */
		x(node) {
			return this.sums.x[this.rowFirst[node]];
		}

		width(node) {
			return this.sum(this.sums.x, node);
		}

		/* ---- questions ------------------------------------------------------------------- */

		get size() {
			return this.frame.length;
		}

		frameOf(node) {
			return node === ROOT ? null : this.frames[this.frame[node]];
		}

		children(node) {
			const list = [];
			for (let child = node + 1; child < this.end[node]; child = this.end[child]) list.push(child);
			return list;
		}

		/* From the root's child down to NODE. */
		chain(node) {
			const list = [];
			for (; node > ROOT; node = this.parent[node]) list.push(node);
			return list.reverse();
		}

		/* The keys of the frames from the root's child down to NODE. */
		pathTo(node) {
			return this.chain(node).map((n) => this.frameOf(n).key);
		}

		/* The node at the end of PATH (of keys), or the last one on the way that is there. */
		find(path) {
			let node = ROOT;
			for (const key of path) {
				const next = this.children(node).find((child) => this.frameOf(child).key === key);
				if (next === undefined) break;
				node = next;
			}
			return node;
		}

		/* Depth of the deepest node below NODE, relative to it. */
		height(node) {
			let deepest = this.depth[node];
			for (let n = node; n < this.end[node]; n++) deepest = Math.max(deepest, this.depth[n]);
			return deepest - this.depth[node];
		}

		/* The frames that occur, each once. */
		used() {
			const flags = new Uint8Array(this.frames.length);
			for (let node = ROOT + 1; node < this.size; node++) flags[this.frame[node]] = 1;
			return this.frames.filter((_, frame) => flags[frame]);
		}

		/* The source lines of NODE with their values, heaviest first; 0 = unknown. */
		lines(node) {
			const sums = new Map();
			const place = this.depth[node] - 1;
			for (let r = this.rowFirst[node]; r < this.rowEnd[node] && place >= 0; r++) {
				const line = lineAt(this.rows[r], this.inverted, place);
				sums.set(line, (sums.get(line) || 0) + this.rows[r].value);
			}
			return [...sums].map(([line, value]) => ({ line, value })).sort((a, b) => b.value - a.value);
		}

		rowsOf(node) {
			return this.rows.slice(this.rowFirst[node], this.rowEnd[node]);
		}

		/* The value below NODE of what lies in a node whose frame is flagged; nothing counts twice. */
		matched(node, flags) {
			let sum = 0;
			for (let n = node; n < this.end[node];) {
				if (n !== ROOT && flags[this.frame[n]]) {
					sum += this.value(n);
					n = this.end[n];
				} else {
					n++;
				}
			}
			return sum;
		}

		change(node) {
			return change(this.value(node), this.base(node), this.scale,
				this.sum(this.sums.count, node), this.sum(this.sums.baseCount, node));
		}
	}

	/*
	 * How VALUE changed from BASE × SCALE: −1 (all gone) to 1 (all new), 0 where the difference is
	 * within what sampling alone gives (two standard deviations of the counts).
	 */
	function change(value, base, scale, count, baseCount) {
		const before = base * scale;
		const noise = 2 * Math.sqrt(count + baseCount * scale ** 2);
		if (!(value || before) || Math.abs(count - baseCount * scale) < noise) return 0;
		return (value - before) / Math.max(value, before);
	}

	/*
	 * Whether the regular expression TEXT may take time without bounds: it repeats a group that
	 * itself repeats or chooses, as (a+)+ and (a|a)*. Browsers' engines go back over all ways to
	 * match those, and a search cannot be stopped.
	 */
	function isCostly(text) {
		const plain = text.replace(/\\./gs, "_").replace(/\[[^\]]*\]/g, "_");
		const open = [false];
		for (let i = 0; i < plain.length; i++) {
			const varies = /[|*+{]/.test(plain[i]);
			if (varies) open[open.length - 1] = true;
			if (plain[i] === "(") open.push(false);
			if (plain[i] !== ")" || open.length < 2) continue;
			const inside = open.pop();
			if (inside && /[*+{]/.test(plain[i + 1] || "")) return true;
			open[open.length - 1] ||= inside;
		}
		return /\\[1-9k]/.test(text);
	}

	/* The test of a text for a search for TEXT, whatever the case; an Error says what is wrong with TEXT. */
	function matcher(text, isRegex) {
		const wanted = text.toLowerCase();
		if (!isRegex) return (given) => given.toLowerCase().includes(wanted);
		if (isCostly(text)) throw new Error("a group that repeats or has choices cannot be repeated");
		let expression;
		try {
			expression = new RegExp(text, "i");
		} catch (error) {
			throw new Error("this is no regular expression");
		}
		return (given) => expression.test(given.slice(0, MAX_SEARCHED));
	}

	/* 1 for each frame whose name, file or module fits TEXT (matcher()). */
	function search(frames, text, isRegex = false) {
		const fits = matcher(text, isRegex);
		return Uint8Array.from(frames, (f) => (text && [f.name, f.file, f.module].some(fits) ? 1 : 0));
	}

	/* The functions in ROWS, with self and total, their baselines and counts; recursion counts once. */
	function functions(rows, frames) {
		const entries = new Map();
		const keys = new Map();
		const entryOf = (frame) => {
			if (!keys.has(frame)) keys.set(frame, [frames[frame].name, frames[frame].module].join("\0"));
			const key = keys.get(frame);
			if (!entries.has(key))
				entries.set(key, { frame, self: 0, total: 0, baseSelf: 0, baseTotal: 0,
					count: 0, baseCount: 0, selfCount: 0, baseSelfCount: 0, row: -1 });
			return entries.get(key);
		};
		rows.forEach((row, number) => {
			for (const frame of row.frames) {
				const entry = entryOf(frame);
				if (entry.row === number) continue;
				entry.row = number;
				entry.total += row.value;
				entry.baseTotal += row.base;
				entry.count += row.count;
				entry.baseCount += row.baseCount;
			}
			if (!row.frames.length) return;
			const leaf = entryOf(row.frames[row.frames.length - 1]);
			leaf.self += row.value;
			leaf.baseSelf += row.base;
			leaf.selfCount += row.count;
			leaf.baseSelfCount += row.baseCount;
		});
		return [...entries.values()];
	}

	return { ROOT, Tree, search, functions, change };
})();

if (typeof module === "object") module.exports = tree;
