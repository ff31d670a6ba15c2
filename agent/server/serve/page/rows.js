/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for a call tree, as samples.js sums them up: a stack, the frame of its group (-1 = none), its
 * path and what it took. There are a hundred thousand of them in a page, and as many stacks. So their
 * sums are columns, and a path is made of the locations of its stack when it is asked for: kept as
 * lists, paths are most of the page's memory, which the browser goes through to collect garbage.
 */
"use strict";

const rows = (() => {
	const SUMS = ["value", "count", "base", "baseCount"]; /* now, and of the baseline */

	/*
	 * The frames of each location, outermost first, and their source lines: those of location l from
	 * first[l] to first[l + 1]. NAMELESS: the frames that stand in for those without a name; neighbours
	 * that are the same are shown as one.
	 */
	class Shown {
		constructor() {
			this.size = 0; /* locations */
			this.first = new Int32Array(1024);
			this.frames = new Int32Array(1024);
			this.lines = new Float64Array(1024); /* a broken profile may have any */
			this.nameless = new Set();
			this.scratch = new Int32Array(64);
		}

		/* Adds a location. */
		add(frames, lines) {
			const at = this.first[this.size++];
			if (this.size === this.first.length) this.first = grown(this.first);
			while (at + frames.length > this.frames.length) {
				this.frames = grown(this.frames);
				this.lines = grown(this.lines);
			}
			this.frames.set(frames, at);
			this.lines.set(lines.map(Number), at);
			this.first[this.size] = at + frames.length;
		}

		/*
		 * Writes the indices into `frames` of the stack LOCATIONS (leaf first) to the Int32Array INTO from
		 * AT on, root first. Returns their end.
		 */
		places(locations, into, at) {
			const { first, frames, nameless } = this;
			let before = -1;
			for (let i = locations.length - 1; i >= 0; i--) {
				const end = first[locations[i] + 1];
				for (let place = first[locations[i]]; place < end; place++) {
					const frame = frames[place];
					if (frame === before && nameless.has(frame)) continue;
					into[at++] = place;
					before = frame;
				}
			}
			return at;
		}

		/* Like places(), but writes the frames themselves. */
		put(locations, into, at) {
			const end = this.places(locations, into, at);
			for (; at < end; at++) into[at] = this.frames[into[at]];
		}

		/* Like places(), into `scratch`. */
		toScratch(locations) {
			while (this.upperLength(locations) > this.scratch.length) this.scratch = grown(this.scratch);
			return this.places(locations, this.scratch, 0);
		}

		/* A list of what COLUMN, `frames` or `lines`, has for LOCATIONS, root first. */
		list(locations, column) {
			const list = new Array(this.toScratch(locations));
			for (let i = 0; i < list.length; i++) list[i] = column[this.scratch[i]];
			return list;
		}

		/* How many frames LOCATIONS are shown as. */
		lengthOf(locations) {
			return this.nameless.size ? this.toScratch(locations) : this.upperLength(locations);
		}

		/* At least lengthOf(): nameless neighbours count one by one. */
		upperLength(locations) {
			let length = 0;
			for (let i = 0; i < locations.length; i++)
				length += this.first[locations[i] + 1] - this.first[locations[i]];
			return length;
		}

		/* The line in the frame that is number INDEX from the root. */
		lineAt(locations, index) {
			const { first, lines } = this;
			if (this.nameless.size) return index < this.toScratch(locations) ? this.lines[this.scratch[index]] : 0;
			let i = locations.length - 1;
			for (; first[locations[i]] + index >= first[locations[i] + 1]; i--)
				index -= first[locations[i] + 1] - first[locations[i]];
			return lines[first[locations[i]] + index];
		}
	}

	function grown(column) {
		const made = new column.constructor(column.length * 2);
		made.set(column);
		return made;
	}

	/* Rows of STACKS, the items of a table of samples.js, as SHOWN has their locations. */
	class Rows {
		constructor(stacks, shown) {
			Object.assign(this, { stacks, shown, list: [] });
			for (const sum of SUMS) this[sum] = new Float64Array(1024);
		}

		/* A new row, of nothing yet. */
		add(stack, group) {
			if (this.list.length === this.value.length) for (const sum of SUMS) this[sum] = grown(this[sum]);
			const row = new Row(this, this.list.length, stack, group);
			this.list.push(row);
			return row;
		}
	}

	class Row {
		constructor(table, number, stack, group) {
			this.table = table;
			this.number = number;
			this.stack = stack;
			this.group = group;
		}

		get value() {
			return this.table.value[this.number];
		}

		get count() {
			return this.table.count[this.number];
		}

		get base() {
			return this.table.base[this.number];
		}

		get baseCount() {
			return this.table.baseCount[this.number];
		}

		get locations() {
			return this.table.stacks[this.stack].locations;
		}

		/* How many frames its path has. */
		get length() {
			return this.table.shown.lengthOf(this.locations);
		}

		/* The frames of its path, root first: a new list each time. */
		get frames() {
			return this.table.shown.list(this.locations, this.table.shown.frames);
		}

		/* The source lines in them, 0 = unknown. */
		get lines() {
			return this.table.shown.list(this.locations, this.table.shown.lines);
		}

		/* Writes its frames to the Int32Array INTO from AT on. */
		put(into, at) {
			this.table.shown.put(this.locations, into, at);
		}

		/* The line in the frame that is number INDEX from the root. */
		lineAt(index) {
			return this.table.shown.lineAt(this.locations, index);
		}
	}

	/* What has a part of a row's path, and all that it took. */
	class Part {
		constructor({ value, count, base, baseCount }, frames, lines) {
			Object.assign(this, { group: -1, value, count, base, baseCount, frames, lines });
		}

		get length() {
			return this.frames.length;
		}

		put(into, at) {
			into.set(this.frames, at);
		}

		lineAt(index) {
			return this.lines[index];
		}
	}

	return { Rows, Shown, Part };
})();

if (typeof module === "object") module.exports = rows;
