/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by their own and their total value, as a table that can be sorted. */
"use strict";

const table = (() => {
	const MAX_ROWS = 400;
	const COLUMNS = [
		{ key: "self", title: "Self", value: (e) => e.self },
		{ key: "total", title: "Total", value: (e) => e.total },
	];
	const DIFF_COLUMNS = [
		{ key: "self", title: "Self", value: (e) => e.self, before: (e) => e.baseSelf,
			change: (e, scale) => tree.change(e.self, e.baseSelf, scale, e.selfCount, e.baseSelfCount) },
		{ key: "total", title: "Total", value: (e) => e.total, before: (e) => e.baseTotal,
			change: (e, scale) => tree.change(e.total, e.baseTotal, scale, e.count, e.baseCount) },
	];

	function element(name, text, className) {
		const made = document.createElement(name);
		if (text !== undefined) made.textContent = text;
		if (className) made.className = className;
		return made;
	}

	class FunctionTable {
		/* EVENTS: choose(name), around({ name, module }). */
		constructor({ box, events }) {
			Object.assign(this, { box, events });
			this.sort = "self";
		}

		/*
		 * ENTRIES of tree.functions(); WHOLE the value of all; TYPE its unit; SCALE, when not 0,
		 * makes baseline values comparable; FLAGS, when not null, says which frames to keep.
		 */
		show({ entries, frames, whole, type, scale, flags }) {
			this.last = { entries, frames, whole, type, scale, flags };
			const kept = flags ? entries.filter((e) => flags[e.frame]) : entries;
			const columns = scale ? DIFF_COLUMNS : COLUMNS;
			const sorted = kept.slice().sort((a, b) => this.weight(b) - this.weight(a) ||
				b.total - a.total || (frames[a.frame].name < frames[b.frame].name ? -1 : 1));
			const made = element("table", undefined, scale ? "diff" : "");
			made.append(this.head(columns));
			const body = element("tbody");
			for (const entry of sorted.slice(0, MAX_ROWS)) body.append(this.row(entry, columns));
			made.append(body);
			const left = sorted.length - MAX_ROWS;
			if (left > 0)
				made.append(element("caption", `${left.toLocaleString("en")} lighter functions are not listed; search for them.`));
			const top = this.box.scrollTop;
			const focused = this.box.contains(document.activeElement) && document.activeElement.dataset.key;
			this.box.replaceChildren(made);
			this.box.scrollTop = top;
			const again = focused && [...this.box.querySelectorAll("[data-key]")].find((e) => e.dataset.key === focused);
			if (again) again.focus({ preventScroll: true });
		}

		/* Puts the keyboard onto the row of FRAME's function, where there is one. */
		focus(frame) {
			const { entries, frames } = this.last;
			const entry = frame && entries.find((e) =>
				frames[e.frame].name === frame.name && frames[e.frame].module === frame.module);
			const row = entry && this.box.querySelector(`[data-key="find ${entry.frame}"]`);
			(row || this.box).focus();
		}

		weight(entry) {
			const { scale } = this.last;
			if (this.sort === "change") return Math.abs(entry.total - entry.baseTotal * scale);
			return this.sort === "self" ? entry.self : entry.total;
		}

		head(columns) {
			const row = element("tr");
			const add = (key, title) => {
				const cell = element("th");
				cell.scope = "col";
				const button = element("button", title);
				button.type = "button";
				button.dataset.key = "sort " + key;
				button.addEventListener("click", () => {
					this.sort = key;
					this.show(this.last);
				});
				if (this.sort === key) cell.setAttribute("aria-sort", "descending");
				cell.append(button);
				row.append(cell);
			};
			for (const column of columns) {
				add(column.key, column.title);
				row.append(element("th", "%", "share"));
				if (column.change && column.key === "self") row.append(element("th", "vs baseline", "share"));
				else if (column.change) add("change", "vs baseline");
			}
			row.append(element("th", "Function"));
			const head = element("thead");
			head.append(row);
			return head;
		}

		row(entry, columns) {
			const { frames, whole, type, scale } = this.last;
			const frame = frames[entry.frame];
			const row = element("tr");
			for (const column of columns) {
				const value = column.value(entry);
				row.append(element("td", format.value(value, type)));
				row.append(element("td", format.percent(value, whole), "share"));
				if (!column.change) continue;
				const change = column.change(entry, scale);
				const way = change > 0 ? "grew" : change < 0 ? "shrank" : "noise";
				row.append(element("td", format.signedPercent(value, column.before(entry) * scale),
					column.key === "self" ? way + " share" : way));
			}
			const cell = element("td");
			const button = element("button", format.clean(frame.name), frame.kind === 4 ? "unknown" : "");
			button.type = "button";
			button.title = "Find in the graph";
			button.dataset.key = "find " + entry.frame;
			button.addEventListener("click", () => this.events.choose(frame.name));
			const around = element("button", "⇅", "around");
			around.type = "button";
			around.title = "Callers and callees";
			around.ariaLabel = "Callers and callees of " + format.clean(frame.name);
			around.dataset.key = "around " + entry.frame;
			around.addEventListener("click", () => this.events.around({ name: frame.name, module: frame.module }));
			const line = element("div");
			line.append(around, button, element("span", format.clean(frame.module), "module"));
			cell.append(line);
			row.append(cell);
			return row;
		}
	}

	return { FunctionTable, element };
})();
