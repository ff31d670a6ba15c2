/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call tree from rows (samples.js): the rows are sorted by their paths, so one pass over them
 * makes the tree in the order of its drawing. A node is a number; its facts are columns. The nodes
 * of a subtree are [node, end[node]), its rows [rowFirst[node], rowEnd[node]).
 *
 * Children stand in the order of their names, which does not change from one refresh to the next.
 */
"use strict";

const tree = (() => {
	const ROOT = 0;

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

	/* For each frame in the paths its place in the order of names. */
	function ranksOf(paths, frames) {
		const used = new Set();
		for (const path of paths) for (const frame of path) used.add(frame);
		const order = [...used].sort((a, b) => {
			const x = frames[a].name;
			const y = frames[b].name;
			return x < y ? -1 : x > y ? 1 : a - b;
		});
		const ranks = new Int32Array(frames.length);
		order.forEach((frame, place) => { ranks[frame] = place; });
		return ranks;
	}

	function comparePaths(a, b, ranks) {
		const length = Math.min(a.length, b.length);
		for (let i = 0; i < length; i++) {
			if (a[i] !== b[i]) return ranks[a[i]] - ranks[b[i]];
		}
		return a.length - b.length;
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
			const paths = new Map(rows.map((row) => [row, pathOf(row, inverted)]));
			const ranks = ranksOf(paths.values(), frames);
			this.rows = rows.slice().sort((a, b) => comparePaths(paths.get(a), paths.get(b), ranks));
			this.columns();
			this.build(paths);
			this.levels = this.byLevel();
		}

		columns() {
			for (const name of ["frame", "parent", "depth", "end", "rowFirst", "rowEnd", "x", "width",
				"value", "self", "count", "base", "baseSelf", "baseCount"])
				this[name] = [];
		}

		open(frame, parent, depth, row, x) {
			const node = this.frame.length;
			this.frame.push(frame);
			this.parent.push(parent);
			this.depth.push(depth);
			this.rowFirst.push(row);
			this.x.push(x);
			for (const column of [this.end, this.rowEnd, this.width, this.value, this.self,
				this.count, this.base, this.baseSelf, this.baseCount])
				column.push(0);
			return node;
		}

		close(node, row, x) {
			this.end[node] = this.frame.length;
			this.rowEnd[node] = row;
			this.width[node] = x - this.x[node];
		}

		account(node, row) {
			this.value[node] += row.value;
			this.count[node] += row.count;
			this.base[node] += row.base;
			this.baseCount[node] += row.baseCount;
		}

		build(paths) {
			const open = [this.open(-1, -1, 0, 0, 0)];
			let x = 0;
			this.rows.forEach((row, number) => {
				const path = paths.get(row);
				let depth = 0;
				while (depth < path.length && depth + 1 < open.length &&
					this.frame[open[depth + 1]] === path[depth])
					depth++;
				while (open.length > depth + 1) this.close(open.pop(), number, x);
				for (; depth < path.length; depth++)
					open.push(this.open(path[depth], open[depth], depth + 1, number, x));
				for (const node of open) this.account(node, row);
				const leaf = open[open.length - 1];
				this.self[leaf] += row.value;
				this.baseSelf[leaf] += row.base;
				x += row.value + row.base * this.scale;
			});
			while (open.length) this.close(open.pop(), this.rows.length, x);
		}

		byLevel() {
			const levels = [];
			this.depth.forEach((depth, node) => {
				if (!levels[depth]) levels[depth] = [];
				levels[depth].push(node);
			});
			return levels;
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

		pathTo(node) {
			return this.chain(node).map((n) => this.frame[n]);
		}

		/* The node at the end of PATH (of frames), or the last one on the way that is there. */
		find(path) {
			let node = ROOT;
			for (const frame of path) {
				const next = this.children(node).find((child) => this.frame[child] === frame);
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
					sum += this.value[n];
					n = this.end[n];
				} else {
					n++;
				}
			}
			return sum;
		}

		change(node) {
			return change(this.value[node], this.base[node], this.scale, this.count[node],
				this.baseCount[node]);
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

	/* 1 for each frame whose name, file or module contains TEXT, whatever the case. */
	function search(frames, text) {
		const wanted = text.toLowerCase();
		return Uint8Array.from(frames, (f) =>
			wanted && [f.name, f.file, f.module].some((t) => t.toLowerCase().includes(wanted)) ? 1 : 0);
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
