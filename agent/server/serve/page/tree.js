/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call tree from rows (rows.js): the rows are sorted by their paths, so one pass over them
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
	const NODES = 16384; /* between two yields, where each takes nanoseconds */
	const { ITEMS, finish, sorted } = typeof module === "object" ? require("./slices.js") : slices;

	/* The source line of the frame at PLACE of a row's path; 0 = unknown. */
	function lineAt(row, inverted, place) {
		const at = row.group < 0 ? place : place - 1;
		return at < 0 ? 0 : row.lineAt(inverted ? row.length - 1 - at : at);
	}

	/* A column of SIZE numbers that are at most MOST. */
	function numbers(most, size) {
		return most < 1 << 16 ? new Uint16Array(size) : new Int32Array(size);
	}

	/*
	 * The frames of the paths of ROWS one after the other, those of row i from first[i] to first[i + 1]:
	 * root first, or leaf first when INVERTED; the frame of its group before all.
	 */
	function* pathsOf(rows, inverted) {
		const first = new Uint32Array(rows.length + 1);
		for (let i = 0; i < rows.length; i++) {
			first[i + 1] = first[i] + rows[i].length + (rows[i].group < 0 ? 0 : 1);
			if (i % ITEMS === 0) yield;
		}
		const steps = new Int32Array(first[rows.length]);
		for (let i = 0; i < rows.length; i++) {
			let at = first[i];
			if (rows[i].group >= 0) steps[at++] = rows[i].group;
			rows[i].put(steps, at);
			for (let end = first[i + 1] - 1; inverted && at < end; at++, end--) {
				const step = steps[at];
				steps[at] = steps[end];
				steps[end] = step;
			}
			if (i % ITEMS === 0) yield;
		}
		return { first, steps };
	}

	/*
	 * Puts ranks in place of the frames that STEPS has: their places in the order of the names of FRAMES.
	 * Returns the frame of each rank.
	 */
	function* ranking(steps, frames) {
		const used = new Uint8Array(frames.length);
		const { length } = steps;
		for (let i = 0; i < length; i++) used[steps[i]] = 1;
		const list = [...frames.keys()].filter((frame) => used[frame]);
		yield;
		const order = yield* sorted(list.length, (i, j) => {
			const x = frames[list[i]].name;
			const y = frames[list[j]].name;
			return x < y ? -1 : x > y ? 1 : list[i] - list[j];
		});
		const ranked = Int32Array.from(order, (at) => list[at]);
		const ranks = new Int32Array(frames.length);
		ranked.forEach((frame, rank) => { ranks[frame] = rank; });
		for (let i = 0; i < length; i++) {
			steps[i] = ranks[steps[i]];
			if (i % NODES === 0) yield;
		}
		return ranked;
	}

	/* How many steps from the root rows I and J go together. */
	function shared({ first, steps }, i, j) {
		const a = first[i];
		const b = first[j];
		const length = Math.min(first[i + 1] - a, first[j + 1] - b);
		let at = 0;
		while (at < length && steps[a + at] === steps[b + at]) at++;
		return at;
	}

	/*
	 * The running sums of ROWS: those at i are of the rows before i. X: what a row is wide. Sums
	 * that are equal share an array, as most are without a baseline.
	 */
	function* running(rows, scale) {
		const made = () => new Float64Array(rows.length + 1);
		const [value, count, base] = [made(), made(), made()];
		const baseCount = rows.some((row) => row.base || row.baseCount) ? made() : base;
		const x = scale ? made() : value;
		for (let i = 0; i < rows.length; i++) {
			const row = rows[i];
			value[i + 1] = value[i] + row.value;
			count[i + 1] = count[i] + row.count;
			base[i + 1] = base[i] + row.base;
			baseCount[i + 1] = baseCount[i] + row.baseCount;
			x[i + 1] = x[i] + row.value + row.base * scale;
			if (i % ITEMS === 0) yield;
		}
		return { value, count, base, baseCount, x };
	}

	/*
	 * The numbers of the SIZE paths (of ranks) in their order, a shorter one before what continues it.
	 * Sorted by one step at a time, in three parts (multikey quicksort), so that paths that go together
	 * for long are not compared from their beginning again and again.
	 */
	function* orderOf({ first, steps }, size) {
		const order = Uint32Array.from({ length: size }, (_, i) => i);
		const at = (i, depth) => (first[i] + depth < first[i + 1] ? steps[first[i] + depth] : -1);
		const open = size > 1 ? [0, size, 0] : [];
		for (let done = 0; open.length;) {
			const depth = open.pop();
			const end = open.pop();
			const begin = open.pop();
			const pivot = at(order[begin + ((end - begin) >> 1)], depth);
			let less = begin;
			let more = end;
			for (let i = begin; i < more;) {
				const number = order[i];
				const rank = at(number, depth);
				if (rank < pivot) {
					order[i++] = order[less];
					order[less++] = number;
				} else if (rank > pivot) {
					order[i] = order[--more];
					order[more] = number;
				} else {
					i++;
				}
				if (++done % NODES === 0) yield;
			}
			if (less - begin > 1) open.push(begin, less, depth);
			if (end - more > 1) open.push(more, end, depth);
			if (more - less > 1 && pivot >= 0) open.push(less, more, depth + 1);
		}
		return order;
	}

	/*
	 * The first of LIST from LOW on that is not below: BELOW(item) is true for those before it. It is
	 * near LOW where boxes are wide.
	 */
	function lowerBound(list, below, low = 0) {
		let high = low;
		for (let step = 1; high < list.length && below(list[high]); step *= 2) {
			low = high + 1;
			high += step;
		}
		high = Math.min(high, list.length);
		while (low < high) {
			const middle = (low + high) >> 1;
			if (below(list[middle])) low = middle + 1;
			else high = middle;
		}
		return low;
	}

	class Tree {
		/*
		 * SCALE: what a baseline value is multiplied with to compare it (the ranges may differ in
		 * length); 0 without a baseline. A node is as wide as both together.
		 */
		constructor(rows, frames, options = {}) {
			finish(this.make(rows, frames, options));
		}

		/* The same, as work for slices.run(). */
		static *making(rows, frames, options) {
			const made = Object.create(Tree.prototype);
			yield* made.make(rows, frames, options);
			return made;
		}

		*make(rows, frames, { inverted = false, scale = 0 }) {
			this.frames = frames;
			this.inverted = inverted;
			this.scale = scale;
			const paths = yield* pathsOf(rows, inverted);
			const ranked = yield* ranking(paths.steps, frames);
			const order = yield* orderOf(paths, rows.length);
			this.rows = Array.from(order, (i) => rows[i]);
			yield;
			this.sums = yield* running(this.rows, scale);
			yield* this.build(paths, order, ranked);
		}

		/* RANKED: the frame of each rank. */
		*build(paths, order, ranked) {
			const together = yield* this.measure(paths, order);
			/* The LENGTH nodes of the last row's path, and the number of the next node. */
			const at = { open: new Int32Array(this.levels.length), length: 1, filled: new Int32Array(this.levels.length),
				node: ROOT + 1 };
			at.filled[0] = 1;
			for (let row = 0; row < order.length; row += ITEMS) {
				const end = Math.min(row + ITEMS, order.length);
				this.addRows({ paths, order, ranked, together, at }, row, end);
				yield;
			}
			for (let depth = 0; depth < at.length; depth++) {
				this.end[at.open[depth]] = this.size;
				this.rowEnd[at.open[depth]] = order.length;
			}
		}

		/* Not a generator, whose variables browsers keep on the heap: this is the hot loop. */
		addRows({ paths, order, ranked, together, at }, row, endRow) {
			const { first, steps } = paths;
			const { frame, depth, end, rowFirst, rowEnd, levels } = this;
			const { open, filled } = at;
			let { node, length } = at;
			for (; row < endRow; row++) {
				const begin = first[order[row]];
				const size = first[order[row] + 1] - begin;
				while (length > together[row] + 1) {
					end[open[--length]] = node;
					rowEnd[open[length]] = row;
				}
				for (let step = length - 1; step < size; step++) {
					frame[node] = ranked[steps[begin + step]];
					depth[node] = step + 1;
					rowFirst[node] = row;
					levels[step + 1][filled[step + 1]++] = node;
					open[step + 1] = node++;
				}
				length = size + 1;
			}
			at.node = node;
			at.length = length;
		}

		/* Makes the columns and, for each depth, `levels`. Returns how far each row goes with that before. */
		*measure({ first, steps }, order) {
			const together = new Uint32Array(order.length);
			const added = [1]; /* nodes: what a depth has more than the one above it */
			let size = 1;
			for (let row = 0; row < order.length; row++) {
				const length = first[order[row] + 1] - first[order[row]];
				const from = row ? shared({ first, steps }, order[row - 1], order[row]) : 0;
				together[row] = from;
				size += length - from;
				added[from + 1] = (added[from + 1] || 0) + 1;
				added[length + 1] = (added[length + 1] || 0) - 1;
				if (row % ITEMS === 0) yield;
			}
			this.levels = [new Int32Array(1)];
			for (let at = 1, count = 0; (count += added[at] || 0) > 0; at++) this.levels.push(new Int32Array(count));
			this.frame = numbers(this.frames.length, size); /* that of the root means nothing */
			this.depth = numbers(this.levels.length, size);
			for (const name of ["end", "rowFirst", "rowEnd"]) this[name] = new Int32Array(size);
			return together;
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

		/* The last node before NODE that is a level above it; -1 for the root. */
		parent(node) {
			const level = this.levels[this.depth[node] - 1];
			return level ? level[lowerBound(level, (n) => n < node) - 1] : -1;
		}

		/* From the root's child down to NODE. */
		chain(node) {
			const list = [];
			for (; node > ROOT; node = this.parent(node)) list.push(node);
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
			let depth = this.depth[node];
			const isIn = (level) => level && level[lowerBound(level, (n) => n < node)] < this.end[node];
			while (isIn(this.levels[depth + 1])) depth++;
			return depth - this.depth[node];
		}

		/* The frames that occur, each once. */
		used() {
			const flags = new Uint8Array(this.frames.length);
			for (let node = ROOT + 1; node < this.size; node++) flags[this.frame[node]] = 1;
			return this.frames.filter((_, frame) => flags[frame]);
		}

		/* The source lines of NODE with their values, heaviest first; 0 = unknown. */
		lines(node) {
			if (this.lastLines && this.lastLines.node === node) return this.lastLines.list;
			const sums = new Map();
			const place = this.depth[node] - 1;
			for (let r = this.rowFirst[node]; r < this.rowEnd[node] && place >= 0; r++) {
				const line = lineAt(this.rows[r], this.inverted, place);
				sums.set(line, (sums.get(line) || 0) + this.rows[r].value);
			}
			const list = [...sums].map(([line, value]) => ({ line, value })).sort((a, b) => b.value - a.value);
			this.lastLines = { node, list };
			return list;
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
		return finish(summing(rows, frames));
	}

	/* The same, as work for slices.run(). */
	function* summing(rows, frames) {
		const entries = [];
		const byKey = new Map();
		const byFrame = [];
		const entryOf = (frame) => {
			const key = frames[frame].name + "\0" + frames[frame].module;
			if (!byKey.has(key)) {
				byKey.set(key, { frame, self: 0, total: 0, baseSelf: 0, baseTotal: 0,
					count: 0, baseCount: 0, selfCount: 0, baseSelfCount: 0, row: -1 });
				entries.push(byKey.get(key));
			}
			return (byFrame[frame] = byKey.get(key));
		};
		let path = new Int32Array(1024); /* frames of a row */
		for (let number = 0; number < rows.length; number++) {
			const row = rows[number];
			const { length, value, base, count, baseCount } = row;
			if (length > path.length) path = new Int32Array(2 * length);
			row.put(path, 0);
			for (let i = 0; i < length; i++) {
				const entry = byFrame[path[i]] || entryOf(path[i]);
				if (entry.row === number) continue;
				entry.row = number;
				entry.total += value;
				entry.baseTotal += base;
				entry.count += count;
				entry.baseCount += baseCount;
			}
			if (length) addSelf(byFrame[path[length - 1]], row);
			if (number % ITEMS === 0) yield;
		}
		return entries;
	}

	function addSelf(entry, row) {
		entry.self += row.value;
		entry.baseSelf += row.base;
		entry.selfCount += row.count;
		entry.baseSelfCount += row.baseCount;
	}

	return { ROOT, Tree, lowerBound, search, functions, summing, change };
})();

if (typeof module === "object") module.exports = tree;
