/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function wherever it is called: what it took, by source line, who calls it (a tree from it to
 * the outermost callers) and what it calls. A function is a name in a module, as in the table. Where
 * it calls itself, all below its outermost call counts as its own, once.
 *
 * The functions above the class know no page.
 */
"use strict";

const around = (() => {
	const MAX_LINES = 100;
	const { ITEMS, finish } = typeof module === "object" ? require("./slices.js") : slices;
	const { Part } = typeof module === "object" ? require("./rows.js") : rows;

	/*
	 * The ROWS (rows.js) that go through FN ({ name, module }), cut at its outermost call:
	 * `callers` end with it, `callees` begin with it. FRAME stands for all its frames, which
	 * differ in being inlined or not; -1: nothing goes through it. LINES: [{ file, line, self,
	 * total }], heaviest first, line 0 = unknown.
	 */
	function* cutting(rows, frames, fn) {
		const isIt = Uint8Array.from(frames, (f) => (f.name === fn.name && f.module === fn.module ? 1 : 0));
		const frame = isIt.indexOf(1);
		const found = { frame, callers: [], callees: [], lines: [], self: 0, total: 0 };
		const lines = new Map();
		let seen = 0;
		for (const row of frame < 0 ? [] : rows) {
			if (++seen % ITEMS === 0) yield;
			const path = row.frames;
			const first = path.findIndex((f) => isIt[f]);
			if (first < 0) continue;
			const { lines: places, value } = row;
			const part = (from, to) => new Part(row, path.slice(from, to), places.slice(from, to));
			const callers = part(0, first + 1);
			const callees = part(first, path.length);
			callers.frames[first] = callees.frames[0] = frame;
			found.callers.push(callers);
			found.callees.push(callees);
			found.total += value;
			if (isIt[path[path.length - 1]]) found.self += value;
			addLines(lines, { path, places, value }, isIt, frames);
		}
		found.lines = [...lines.values()].sort((a, b) => b.total - a.total || a.line - b.line);
		return found;
	}

	function cut(rows, frames, fn) {
		return finish(cutting(rows, frames, fn));
	}

	/* A line counts once in a stack, however often its function is in it. */
	function addLines(lines, { path, places, value }, isIt, frames) {
		const last = path.length - 1;
		const seen = new Set();
		path.forEach((f, i) => {
			if (!isIt[f]) return;
			const { file } = frames[f];
			const line = places[i];
			const key = file + "\0" + line;
			if (!lines.has(key)) lines.set(key, { file, line, self: 0, total: 0 });
			const entry = lines.get(key);
			if (!seen.has(key)) entry.total += value;
			if (i === last) entry.self += value;
			seen.add(key);
		});
	}

	/* ---- page ---------------------------------------------------------------------------- */

	const element = (...facts) => table.element(...facts);

	class AroundView {
		/*
		 * BOX has the elements; EVENTS: choose({ name, module }), and those of flame.Flame with a
		 * tree before a node: hover(), select(tree, node, x, y), point(tree, node, x, y).
		 */
		constructor({ box, events }) {
			Object.assign(this, { box, events });
			const part = (name) => box.querySelector("." + name);
			Object.assign(this, { title: part("title"), figures: part("figures"), source: part("source") });
			this.flames = ["callers", "callees"].map((name) => this.makeFlame(part(name)));
		}

		makeFlame(scroller) {
			const made = new flame.Flame({
				scroller, canvas: scroller.querySelector("canvas"), spacer: scroller.querySelector("div"),
				events: {
					zoom: (node) => this.choose(made.tree, node),
					select: (node) => this.events.select(made.tree, node, ...made.cornerOf(node)),
					hover: () => this.events.hover(),
					point: (node, x, y) => this.events.point(made.tree, node, x, y),
					back() {},
				},
			});
			scroller.addEventListener("focusout", () => {
				made.selected = -1;
				made.later();
			});
			return made;
		}

		choose(shown, node) {
			const frame = node > tree.ROOT ? shown.frameOf(node) : null;
			if (frame) this.events.choose({ name: frame.name, module: frame.module });
		}

		/* What show() takes of ROWS, FRAMES and FN, as cut() takes them, as work for slices.run(). */
		*making({ rows, frames, fn, scale }) {
			const found = yield* cutting(rows, frames, fn);
			return { found, trees: [yield* tree.Tree.making(found.callers, frames, { inverted: true, scale }),
				yield* tree.Tree.making(found.callees, frames, { scale })] };
		}

		/* WHOLE: the value of all rows; SCALE and FLAGS as in a Tree and a Flame. */
		show({ found, trees }, { fn, whole, type, scale, flags }) {
			this.title.textContent = format.clean(fn.name);
			const part = (value) => `${format.value(value, type)} (${format.percent(value, whole)})`;
			this.figures.textContent = found.frame < 0 ? "not in what is shown" :
				[fn.module && format.clean(fn.module), "total " + part(found.total), "self " + part(found.self)]
					.filter(Boolean).join("  ·  ");
			this.flames.forEach((view, i) => {
				trees[i].wholeText = "of " + format.short(fn.name);
				const held = view.selected >= 0 && view.tree ? view.tree.pathTo(view.selected) : null;
				view.show(trees[i], { zoom: trees[i].children(tree.ROOT)[0] || tree.ROOT, flags, diff: Boolean(scale),
					selected: held ? trees[i].find(held) : -1 });
			});
			this.showLines(found, type);
		}

		showLines(found, type) {
			const made = element("table");
			made.append(element("caption", "Source lines"));
			const head = element("tr");
			for (const title of ["Self", "Total", "%", "Line"]) {
				const cell = element("th", title);
				cell.scope = "col";
				head.append(cell);
			}
			made.createTHead().append(head);
			const body = made.createTBody();
			for (const { file, line, self, total } of found.lines.slice(0, MAX_LINES)) {
				const row = body.insertRow();
				const place = line ? `${file || "line "}${file ? ":" : ""}${line}` : `${file} (line unknown)`.trim();
				for (const text of [format.value(self, type), format.value(total, type),
					format.percent(total, found.total)])
					row.append(element("td", text));
				const cell = element("td"); /* the end of a path is what stays of it where it is too long */
				cell.append(element("bdi", format.clean(place)));
				row.append(cell);
			}
			this.source.replaceChildren(made);
		}

		/* The tree and the node that the pointer or the keyboard is at; null without one. */
		at() {
			for (const which of ["hovered", "selected"])
				for (const view of this.flames) if (view[which] > tree.ROOT) return [view.tree, view[which]];
			const callees = this.flames[1].tree;
			return callees && callees.size > 1 ? [callees, 1] : null;
		}

		focus() {
			this.flames[1].scroller.focus();
		}

		setTheme(dark) {
			for (const view of this.flames) view.setTheme(dark);
		}
	}

	return { AroundView, cut };
})();

if (typeof module === "object") module.exports = around;
