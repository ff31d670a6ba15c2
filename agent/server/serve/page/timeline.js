/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU use over time, in cores: grey what there is, coloured what the filters let through, as high as
 * that needs. A part of the time is selected by dragging or with the keys; it snaps to the windows of the profiles.
 */
"use strict";

const timeline = (() => {
	const TOP = 14; /* room for the text, CSS pixels */
	const MARK = 4; /* height of a mark */
	const MIN_DRAG = 4;
	const DAY_MS = 86400000;
	const STEPS_MS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400]
		.map((s) => s * 1000);
	const NICE = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];

	/*
	 * The value of FILES (in ns, by VALUE(file)) spread over COLUMNS of the time from FROM to TO,
	 * as cores: ns of CPU per ns.
	 */
	function spread(files, from, to, columns, value) {
		const sums = new Float64Array(columns);
		const step = (to - from) / columns;
		for (const file of files) {
			const end = file.timeMs + file.durationMs;
			const rate = value(file) / 1e6 / Math.max(file.durationMs, 1);
			const first = Math.max(0, Math.floor((file.timeMs - from) / step));
			for (let c = first; c < columns && from + c * step < end; c++) {
				const low = Math.max(file.timeMs, from + c * step);
				const high = Math.min(end, from + (c + 1) * step);
				if (high > low) sums[c] += (rate * (high - low)) / step;
			}
		}
		return sums;
	}

	/* The whole steps of the clock between FROM and TO, at most MOST of them. */
	function ticks(from, to, most) {
		const step = STEPS_MS.find((s) => (to - from) / s <= most) || DAY_MS * Math.ceil((to - from) / DAY_MS / most);
		const zone = new Date(to).getTimezoneOffset() * 60000;
		const list = [];
		for (let at = Math.ceil((from - zone) / step) * step + zone; at < to; at += step) list.push(at);
		return list;
	}

	/* A number of one digit, or 1.5, times a power of ten, that is more than VALUE. */
	function niceAbove(value) {
		const wanted = Math.max(value, 1e-9) * 1.05;
		const power = Math.floor(Math.log10(wanted));
		const size = 10 ** Math.abs(power);
		return NICE.map((n) => (power < 0 ? n / size : n * size)).find((n) => n >= wanted) || wanted;
	}

	function coresText(most) {
		return most.toLocaleString("en", { maximumSignificantDigits: 2 }) + (most === 1 ? " core" : " cores");
	}

	class Timeline {
		/* EVENTS: select([from, to] or null). The range is in ms since 1970. */
		constructor({ box, canvas, events }) {
			Object.assign(this, { box, canvas, events });
			this.context = canvas.getContext("2d");
			this.shown = { from: 0, to: 0, files: [], total: () => 0, part: () => 0,
				selection: null, baseline: null, cores: true, odd: { lost: [], other: [] } };
			this.drag = null;
			this.listen();
		}

		show(shown) {
			this.shown = shown;
			this.draw();
		}

		/* ---- drawing --------------------------------------------------------------------- */

		x(ms) {
			const { from, to } = this.shown;
			return ((ms - from) / (to - from)) * this.width;
		}

		ms(x) {
			const { from, to } = this.shown;
			return from + (Math.min(Math.max(x, 0), this.width) / this.width) * (to - from);
		}

		colour(name) {
			return getComputedStyle(this.box).getPropertyValue("--" + name);
		}

		draw() {
			const ratio = window.devicePixelRatio || 1;
			this.width = this.box.clientWidth;
			this.height = this.box.clientHeight;
			if (!this.width || !this.shown.to) return; /* nothing is shown yet */
			this.canvas.width = Math.round(this.width * ratio);
			this.canvas.height = Math.round(this.height * ratio);
			this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
			const { files, from, to, total, part } = this.shown;
			const columns = Math.max(1, Math.floor(this.width));
			const all = spread(files, from, to, columns, total);
			const some = spread(files, from, to, columns, part);
			const highest = (list) => list.reduce((a, b) => Math.max(a, b), 0);
			this.most = niceAbove(highest(some) || highest(all));
			this.bars(all, this.colour("line"));
			this.bars(some, this.colour("accent"), 0.75);
			this.range(this.shown.baseline, this.colour("base"), "baseline");
			this.range(this.drag && this.drag.range || this.shown.selection, this.colour("accent"),
				this.shown.baseline ? "now" : "");
			this.marks();
			this.scaleText();
		}

		/* At the lower edge: where samples were lost, and where they were taken at another frequency. */
		marks() {
			const { lost, other } = this.shown.odd;
			for (const [windows, name, row] of [[other, "base", 2], [lost, "bad", 1]]) {
				this.context.fillStyle = this.colour(name);
				for (const { timeMs, durationMs } of windows) {
					const x = this.x(timeMs);
					this.context.fillRect(x, this.height - row * MARK, Math.max(this.x(timeMs + durationMs) - x, 3), MARK - 1);
				}
			}
		}

		bars(columns, colour, alpha = 1) {
			const context = this.context;
			const room = this.height - TOP;
			context.fillStyle = colour;
			context.globalAlpha = alpha;
			context.beginPath();
			columns.forEach((cores, c) => {
				const height = Math.min(cores / this.most, 1) * room;
				if (height > 0) context.rect(c, this.height - height, 1, height);
			});
			context.fill();
			context.globalAlpha = 1;
		}

		range(range, colour, text) {
			if (!range) return;
			const context = this.context;
			const x = this.x(range[0]);
			const width = Math.max(this.x(range[1]) - x, 2);
			context.globalAlpha = 0.16;
			context.fillStyle = colour;
			context.fillRect(x, 0, width, this.height);
			context.globalAlpha = 1;
			context.strokeStyle = colour;
			context.lineWidth = 1.5;
			context.strokeRect(x + 0.75, 0.75, width - 1.5, this.height - 1.5);
			if (!text) return;
			context.font = "600 11px system-ui, sans-serif";
			context.fillStyle = colour;
			context.textBaseline = "top";
			if (context.measureText(text).width + 8 < width) context.fillText(text, x + 4, TOP + 2);
		}

		scaleText() {
			const context = this.context;
			const { from, to, cores } = this.shown;
			context.font = "11px system-ui, sans-serif";
			context.fillStyle = this.colour("muted");
			context.textBaseline = "top";
			const top = cores ? coresText(this.most) : "";
			context.textAlign = "left";
			context.fillText(top, 4, 2);
			context.textAlign = "center";
			for (const at of ticks(from, to, Math.max(1, this.width / 110))) {
				const x = this.x(at);
				if (x < 110 || x > this.width - 30) continue;
				context.fillText(format.clock(at).replace(/:00$/, ""), x, 2);
			}
			context.textAlign = "left";
		}

		/* ---- selecting ------------------------------------------------------------------- */

		listen() {
			const { box } = this;
			box.addEventListener("pointerdown", (e) => this.press(e));
			box.addEventListener("pointermove", (e) => this.dragTo(e));
			box.addEventListener("pointerup", () => this.release());
			box.addEventListener("pointercancel", () => { this.drag = null; this.draw(); });
			box.addEventListener("keydown", (e) => this.key(e));
			new ResizeObserver(() => this.draw()).observe(box);
		}

		press(event) {
			if (event.button !== 0) return;
			this.box.setPointerCapture(event.pointerId);
			this.drag = { x: event.clientX - this.box.getBoundingClientRect().left, range: null };
		}

		dragTo(event) {
			if (!this.drag) return;
			const x = event.clientX - this.box.getBoundingClientRect().left;
			if (Math.abs(x - this.drag.x) < MIN_DRAG && !this.drag.range) return;
			const ends = [this.ms(this.drag.x), this.ms(x)].sort((a, b) => a - b);
			this.drag.range = ends;
			this.draw();
		}

		release() {
			const range = this.drag && this.drag.range;
			const was = this.drag;
			this.drag = null;
			if (was) this.events.select(range);
		}

		/* Arrows move the selection by a window, with Shift they move its end. */
		key(event) {
			const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
			const { files, selection } = this.shown;
			if (event.key === "Escape" && selection) {
				event.stopPropagation();
				this.events.select(null);
			}
			if (!step || !files.length) return;
			event.preventDefault();
			const newest = files.reduce((a, b) => (b.timeMs > a.timeMs ? b : a));
			const window = newest.durationMs;
			if (!selection) {
				this.events.select([newest.timeMs, newest.timeMs + window]);
				return;
			}
			const [from, to] = selection;
			const moved = event.shiftKey ? [from, Math.max(to + step * window, from + window)] :
				[from + step * window, to + step * window];
			this.events.select(moved);
		}
	}

	/* What the marks of ODD (samples.oddities()) mean, in words; "" without marks. */
	function oddText({ hertz, lost, other }) {
		const parts = [];
		const count = lost.reduce((sum, w) => sum + w.count, 0);
		const windows = (list) => list.length.toLocaleString("en") + (list.length > 1 ? " windows" : " window");
		if (count) parts.push(`${count.toLocaleString("en")} samples lost in ${windows(lost)}`);
		const found = [...new Set(other.map((w) => w.hertz))].sort((a, b) => a - b);
		const shown = found.slice(0, 3).join(", ") + (found.length > 3 ? ", …" : "");
		if (other.length) parts.push(`${windows(other)} at ${shown} Hz instead of ${hertz} Hz`);
		return parts.join("  ·  ");
	}

	return { Timeline, oddText, spread, ticks, niceAbove, coresText };
})();

if (typeof module === "object") module.exports = timeline;
