/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long functions take, as /api/latency has it: a table of those that probes measure, and of one
 * of them a picture over time: how many calls took how long, and the 50th, 90th and 99th percentile.
 * The functions above the class know no page.
 */
"use strict";

const latency = (() => {
	const MAX_ROWS = 400;
	const MAX_REASONS = 10;
	const LEFT = 64; /* room for the scale, CSS pixels */
	const TOP = 18;
	const BOTTOM = 18;
	const STEPS = 2; /* rows of the picture in a power of two */
	const QUANTILES = [
		{ name: "p50", key: "p50_ns", percent: 50, colour: "text" },
		{ name: "p90", key: "p90_ns", percent: 90, colour: "base" },
		{ name: "p99", key: "p99_ns", percent: 99, colour: "bad" },
	];

	/* ---- sums ---------------------------------------------------------------------------- */

	/* The windows of ANSWER that lie, by their middle, in RANGE; null: all. */
	function within(answer, range) {
		const middle = (w) => w.time_ms + w.duration_ms / 2;
		return range ? answer.windows.filter((w) => middle(w) >= range[0] && middle(w) < range[1]) : answer.windows;
	}

	/*
	 * The time within which PERCENT of the calls returned: the highest of the bucket that has that
	 * call, and at most the longest call.
	 */
	function percentile(entry, percent, starts) {
		const rank = Math.max(1, Math.ceil((entry.calls * percent) / 100));
		let seen = 0;
		for (const bucket of [...entry.buckets.keys()].sort((a, b) => a - b)) {
			seen += entry.buckets.get(bucket);
			if (seen < rank) continue;
			return bucket + 1 < starts.length ? Math.min(starts[bucket + 1] - 1, entry.max_ns) : entry.max_ns;
		}
		return 0;
	}

	/* What WINDOWS of ANSWER have, by function: that with the longest total time first. */
	function functions(answer, windows) {
		const sums = new Map();
		for (const window of windows) {
			for (const part of window.functions) {
				let sum = sums.get(part.function);
				if (!sum) {
					sum = { ...answer.functions[part.function], calls: 0, total_ns: 0, max_ns: 0, buckets: new Map() };
					sums.set(part.function, sum);
				}
				sum.calls += part.calls;
				sum.total_ns += part.total_ns;
				sum.max_ns = Math.max(sum.max_ns, part.max_ns);
				for (let i = 0; i < part.buckets.length; i += 2)
					sum.buckets.set(part.buckets[i], (sum.buckets.get(part.buckets[i]) || 0) + part.buckets[i + 1]);
			}
		}
		const list = [...sums.values()];
		for (const sum of list)
			for (const q of QUANTILES) sum[q.key] = percentile(sum, q.percent, answer.bucket_starts_ns);
		return list.sort((a, b) => b.total_ns - a.total_ns || b.calls - a.calls);
	}

	function isSame(a, b) {
		return a && b && a.probe === b.probe && a.function === b.function && a.binary === b.binary;
	}

	/* The part that FUNCTION ({ probe, function, binary }) has in each of WINDOWS; null: none. */
	function overTime(answer, windows, chosen) {
		const number = answer.functions.findIndex((f) => isSame(f, chosen));
		return windows.map((w) => ({
			timeMs: w.time_ms, durationMs: w.duration_ms,
			part: w.functions.find((f) => f.function === number) || null,
		}));
	}

	/* The row of the picture that NS is in. */
	function rowOf(ns) {
		return Math.floor(STEPS * Math.log2(Math.max(ns, 1)));
	}

	/* Rows of the picture to calls. */
	function heat(part, starts) {
		const rows = new Map();
		for (let i = 0; i < part.buckets.length; i += 2) {
			const row = rowOf(starts[part.buckets[i]]);
			rows.set(row, (rows.get(row) || 0) + part.buckets[i + 1]);
		}
		return rows;
	}

	function leftOut(windows) {
		return windows.reduce((sum, w) => sum + w.left_out_calls, 0);
	}

	/* Why probes do not measure all that they name, a sentence for each. */
	function reasons(answer) {
		const list = (answer.probes || []).filter((p) => p.reason);
		const lines = list.slice(0, MAX_REASONS).map((p) => `${p.name} (${p.state}): ${p.reason}.`);
		if (list.length > MAX_REASONS) lines.push(`${list.length - MAX_REASONS} further probes: see /status.`);
		return lines;
	}

	/* ---- page ---------------------------------------------------------------------------- */

	const COLUMNS = [
		{ title: "Calls", text: (f) => f.calls.toLocaleString("en") },
		{ title: "p50", text: (f) => format.duration(f.p50_ns) },
		{ title: "p90", text: (f) => format.duration(f.p90_ns) },
		{ title: "p99", text: (f) => format.duration(f.p99_ns) },
		{ title: "Max", text: (f) => format.duration(f.max_ns) },
		{ title: "Total", text: (f) => format.duration(f.total_ns) },
	];

	class LatencyView {
		/* BOX has the table, CANVAS the picture; EVENTS: choose(function). */
		constructor({ box, canvas, caption, events }) {
			Object.assign(this, { box, canvas, caption, events });
			this.context = canvas.getContext("2d");
			this.shown = null;
			new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
		}

		/*
		 * ANSWER of /api/latency, null while there is none; the time FROM to TO; RANGE, when not
		 * null, is the part of it that the table sums up; CHOSEN, when not null, a function.
		 */
		show({ answer, from, to, range, chosen }) {
			if (!answer) answer = { bucket_starts_ns: [], functions: [], windows: [] };
			const windows = within(answer, range);
			const list = functions(answer, windows);
			const drawn = list.find((f) => isSame(f, chosen)) || list[0] || null;
			this.shown = { answer, from, to, range, drawn };
			this.showTable(list, drawn, leftOut(windows), reasons(answer));
			this.draw();
		}

		/* ---- table ----------------------------------------------------------------------- */

		showTable(list, drawn, left, why) {
			const made = table.element("table");
			const body = table.element("tbody");
			for (const entry of list.slice(0, MAX_ROWS)) body.append(this.row(entry, isSame(entry, drawn)));
			made.append(this.head(), body);
			const notes = why.map(format.clean);
			if (list.length > MAX_ROWS) notes.push(`${list.length - MAX_ROWS} functions with shorter times are not listed.`);
			if (left) notes.push(`${left.toLocaleString("en")} calls of further functions are not kept; /metrics has them.`);
			if (notes.length) made.append(table.element("caption", notes.join(" ")));
			const focused = this.box.contains(document.activeElement) && document.activeElement.dataset.key;
			const top = this.box.scrollTop;
			this.box.replaceChildren(made);
			this.box.scrollTop = top;
			const again = focused && [...this.box.querySelectorAll("[data-key]")].find((e) => e.dataset.key === focused);
			if (again) again.focus({ preventScroll: true });
		}

		head() {
			const row = table.element("tr");
			for (const title of [...COLUMNS.map((c) => c.title), "Function"]) {
				const cell = table.element("th", title);
				cell.scope = "col";
				row.append(cell);
			}
			const head = table.element("thead");
			head.append(row);
			return head;
		}

		row(entry, isDrawn) {
			const row = table.element("tr");
			for (const column of COLUMNS) row.append(table.element("td", column.text(entry)));
			const cell = table.element("td");
			const button = table.element("button", format.clean(entry.function));
			button.type = "button";
			button.title = "Show over time";
			button.dataset.key = [entry.probe, entry.function, entry.binary].join("\n");
			button.setAttribute("aria-pressed", String(isDrawn));
			button.addEventListener("click", () => this.events.choose(entry));
			const where = [entry.probe, entry.binary].filter(Boolean).map(format.clean).join("  ·  ");
			cell.append(button, table.element("span", where, "module"));
			row.append(cell);
			return row;
		}

		/* ---- picture --------------------------------------------------------------------- */

		colour(name) {
			return getComputedStyle(this.canvas).getPropertyValue("--" + name);
		}

		draw() {
			const { canvas, context, shown } = this;
			const ratio = window.devicePixelRatio || 1;
			this.width = canvas.clientWidth;
			this.height = canvas.clientHeight;
			if (!shown || !this.width) return;
			canvas.width = Math.round(this.width * ratio);
			canvas.height = Math.round(this.height * ratio);
			context.setTransform(ratio, 0, 0, ratio, 0, 0);
			context.clearRect(0, 0, this.width, this.height);
			this.caption.textContent = this.captionText();
			if (!shown.drawn) return;
			const points = overTime(shown.answer, shown.answer.windows, shown.drawn);
			this.scale(points);
			this.drawHeat(points);
			for (const q of QUANTILES) this.drawLine(points, q);
			this.drawSelection();
			this.drawText();
		}

		captionText() {
			const { drawn } = this.shown;
			if (!drawn) return "No calls in this time.";
			return `${format.clean(drawn.function)}: ${drawn.calls.toLocaleString("en")} calls, ` +
				QUANTILES.map((q) => `${q.name} ${format.duration(drawn[q.key])}`).join(", ");
		}

		/* The rows that some window has, with one to spare. */
		scale(points) {
			const starts = this.shown.answer.bucket_starts_ns;
			this.rows = [Infinity, -Infinity];
			this.most = 1;
			for (const { part } of points) {
				if (!part) continue;
				for (const [row, calls] of heat(part, starts)) {
					this.rows = [Math.min(this.rows[0], row), Math.max(this.rows[1], row + 1)];
					this.most = Math.max(this.most, calls);
				}
			}
			this.rows = [this.rows[0] - 1, this.rows[1] + 1];
		}

		x(ms) {
			const { from, to } = this.shown;
			return LEFT + ((ms - from) / (to - from)) * (this.width - LEFT);
		}

		y(row) {
			const [low, high] = this.rows;
			return this.height - BOTTOM - ((row - low) / (high - low)) * (this.height - TOP - BOTTOM);
		}

		/* The colour of a cell is the number of its calls, as their root, so that few are seen. */
		drawHeat(points) {
			const { context } = this;
			context.fillStyle = this.colour("accent");
			for (const point of points) {
				if (!point.part) continue;
				const left = Math.max(this.x(point.timeMs), LEFT);
				const width = Math.max(this.x(point.timeMs + point.durationMs) - left, 1);
				for (const [row, calls] of heat(point.part, this.shown.answer.bucket_starts_ns)) {
					context.globalAlpha = 0.12 + 0.78 * Math.sqrt(calls / this.most);
					context.fillRect(left, this.y(row + 1), width, this.y(row) - this.y(row + 1));
				}
			}
			context.globalAlpha = 1;
		}

		/* A line has gaps where there were no calls. */
		drawLine(points, q) {
			const { context } = this;
			let open = false;
			context.strokeStyle = this.colour(q.colour);
			context.lineWidth = 1.5;
			context.beginPath();
			for (const { timeMs, durationMs, part } of points) {
				if (!part) {
					open = false;
					continue;
				}
				const y = this.y(STEPS * Math.log2(Math.max(part[q.key], 1)));
				const left = Math.max(this.x(timeMs), LEFT);
				if (open) context.lineTo(left, y);
				else context.moveTo(left, y);
				context.lineTo(this.x(timeMs + durationMs), y);
				open = true;
			}
			context.stroke();
		}

		drawSelection() {
			const { range } = this.shown;
			if (!range) return;
			const left = Math.max(this.x(range[0]), LEFT);
			this.context.strokeStyle = this.colour("accent");
			this.context.strokeRect(left, TOP, Math.max(this.x(range[1]) - left, 2), this.height - TOP - BOTTOM);
		}

		drawText() {
			const { context } = this;
			const { from, to } = this.shown;
			context.font = "11px system-ui, sans-serif";
			context.textBaseline = "middle";
			context.textAlign = "right";
			context.fillStyle = this.colour("muted");
			const step = Math.max(1, Math.ceil((this.rows[1] - this.rows[0]) / STEPS / 8)) * STEPS;
			for (let row = Math.ceil(this.rows[0] / STEPS) * STEPS; row <= this.rows[1]; row += step)
				context.fillText(format.duration(2 ** (row / STEPS)), LEFT - 6, this.y(row));
			context.textAlign = "center";
			for (const at of timeline.ticks(from, to, Math.max(1, this.width / 110)))
				if (this.x(at) > LEFT + 30 && this.x(at) < this.width - 30)
					context.fillText(format.clock(at).replace(/:00$/, ""), this.x(at), this.height - BOTTOM / 2);
			context.textAlign = "left";
			QUANTILES.forEach((q, i) => {
				context.fillStyle = this.colour(q.colour);
				context.fillText("— " + q.name, LEFT + 6 + i * 48, TOP / 2);
			});
		}
	}

	return { LatencyView, within, functions, overTime, heat, percentile, isSame, reasons };
})();

if (typeof module === "object") module.exports = latency;
