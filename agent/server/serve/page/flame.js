/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws a tree on a canvas as big as what is seen of it, and turns pointer and keys into "zoom" and
 * "select". The canvas sticks to the top of a box that scrolls; of a level only the nodes inside
 * the zoom and wider than a fraction of a pixel are touched, so the cost of a frame follows the
 * screen and not the profile.
 */
"use strict";

const flame = (() => {
	const ROW = 20; /* CSS pixels */
	const FONT = "12px ui-monospace, 'SF Mono', 'DejaVu Sans Mono', Menlo, Consolas, monospace";
	const MIN_TEXT = 28;
	const MIN_GAP = 3; /* narrower boxes stand without a gap */
	const THIN = 2; /* narrower boxes have the colour of their kind */
	const JITTER = 3; /* neighbours of a kind differ by at most this much lightness */

	/* Hue, saturation, lightness of each kind of frame, in the order of samples.KINDS. */
	const PALETTES = {
		light: {
			kinds: [[37, 78, 77], [172, 42, 74], [288, 44, 85], [214, 62, 84], [220, 8, 89], [222, 16, 81]],
			text: "#16181d", muted: "#565d6b", edge: "#16181d", stripes: ["rgb(0 0 0 / 7%)", "rgb(255 255 255 / 30%)"], match: [330, 82, 80],
			neutral: [228, 230, 234], grew: [219, 110, 88], shrank: [92, 156, 210],
		},
		dark: {
			kinds: [[32, 42, 31], [174, 42, 24], [288, 26, 36], [214, 36, 35], [220, 7, 23], [222, 14, 28]],
			text: "#f1f2f5", muted: "#b3b9c5", edge: "#f1f2f5", stripes: ["rgb(0 0 0 / 25%)", "rgb(255 255 255 / 7%)"], match: [330, 52, 38],
			neutral: [58, 61, 68], grew: [158, 52, 38], shrank: [28, 92, 150],
		},
	};

	function hashOf(text) {
		let hash = 2166136261;
		for (let i = 0; i < text.length && i < 64; i++)
			hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
		return (hash >>> 0) / 2 ** 32;
	}

	function hsl([hue, saturation, lightness], shift = 0) {
		return `hsl(${hue} ${saturation}% ${lightness + shift}%)`;
	}

	/* The colour of a change from −1 to 1, in steps that no eye tells apart. */
	function changeColour(palette, change) {
		const step = Math.round(change * 100);
		palette.changes = palette.changes || new Map();
		if (!palette.changes.has(step)) palette.changes.set(step, mixed(palette, step / 100));
		return palette.changes.get(step);
	}

	function mixed(palette, change) {
		const goal = change > 0 ? palette.grew : palette.shrank;
		const way = change ? 0.25 + 0.75 * Math.min(1, Math.abs(change)) : 0;
		const colour = palette.neutral.map((from, i) => Math.round(from + (goal[i] - from) * way));
		return `rgb(${colour.join(" ")})`;
	}

	class Flame {
		/* EVENTS: zoom(node), select(node), hover(node or -1), point(node or -1, x, y in the window), back(). */
		constructor({ scroller, canvas, spacer, events }) {
			Object.assign(this, { scroller, canvas, spacer, events });
			this.context = canvas.getContext("2d");
			this.tree = null;
			this.total = 0; /* pixels of all rows */
			this.zoom = 0;
			this.selected = -1;
			this.hovered = -1;
			this.flags = null; /* of frames that a search found */
			this.diff = false;
			this.palette = PALETTES.light;
			this.labels = new Map(); /* frame → texts, longest first */
			this.colours = new Map();
			this.pending = false;
			this.box = null; /* not painted yet, as the next one may look the same and be joined to it */
			this.listen();
		}

		/* ---- what is shown --------------------------------------------------------------- */

		show(shown, { zoom = 0, selected = -1, flags = null, diff = false }) {
			if (!this.tree || this.tree.frames !== shown.frames) {
				this.labels.clear();
				this.colours.clear();
			}
			Object.assign(this, { tree: shown, zoom, selected, flags, diff, hovered: -1 });
			this.total = (shown.height(zoom) + 1) * ROW;
			this.measure();
			this.later(); /* apart from what else there is to show */
		}

		setFlags(flags) {
			this.flags = flags;
			this.later();
		}

		select(node) {
			this.selected = node;
			this.reveal(node);
			this.later();
		}

		setTheme(dark) {
			this.palette = dark ? PALETTES.dark : PALETTES.light;
			this.colours.clear();
			this.later();
		}

		reveal(node) {
			if (node < 0 || !this.tree) return;
			const top = this.rowOf(node) * ROW;
			const { scrollTop, clientHeight } = this.scroller;
			if (top < scrollTop) this.scroller.scrollTop = top;
			else if (top + ROW > scrollTop + clientHeight)
				this.scroller.scrollTop = top + ROW - clientHeight;
		}

		rowOf(node) {
			return this.tree.depth[node] - this.tree.depth[this.zoom];
		}

		/* Gives the box its height and the canvas its size. True: that cleared the canvas, so draw it before it is seen. */
		measure() {
			const { clientWidth: width, clientHeight: height } = this.scroller;
			const ratio = window.devicePixelRatio || 1;
			this.width = width;
			this.height = height;
			this.ratio = ratio;
			this.spacer.style.height = Math.max(0, this.total - height) + "px";
			this.canvas.style.width = width + "px";
			this.canvas.style.height = height + "px";
			this.scale = this.tree && this.tree.width(this.zoom) ? width / this.tree.width(this.zoom) : 0;
			const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
			if (this.canvas.width === w && this.canvas.height === h) return false;
			this.canvas.width = w;
			this.canvas.height = h;
			return true;
		}

		later() {
			if (this.pending) return;
			this.pending = true;
			requestAnimationFrame(() => {
				if (!this.pending) return; /* drawn since */
				this.measure(); /* what else was shown may have moved it */
				this.draw();
			});
		}

		/* ---- drawing --------------------------------------------------------------------- */

		draw() {
			this.pending = false;
			this.box = null;
			const context = this.context;
			context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
			context.clearRect(0, 0, this.width, this.height);
			if (!this.tree || !this.tree.width(this.zoom)) return;
			context.font = FONT;
			context.textBaseline = "middle";
			this.letter = this.letter || context.measureText("m").width;
			const top = this.scroller.scrollTop;
			const first = Math.floor(top / ROW);
			const last = Math.ceil((top + this.height) / ROW);
			for (let row = first; row < last; row++) this.drawRow(row, row * ROW - top);
			this.drawRing(this.hovered, top, 1);
			this.drawRing(this.selected, top, 2);
		}

		drawRow(row, y) {
			const { tree: t, zoom } = this;
			const level = t.levels[t.depth[zoom] + row];
			if (!level) return;
			const end = t.end[zoom];
			const left = t.x(zoom);
			let drawn = -1; /* right edge, in pixels of the device */
			const { rowEnd, sums: { x: right } } = t;
			const pixel = this.scale * this.ratio;
			const hidden = (n) => (right[rowEnd[n]] - left) * pixel < drawn + 1;
			let i = tree.lowerBound(level, (n) => n < zoom);
			for (; i < level.length && level[i] < end; i = tree.lowerBound(level, hidden, i + 1)) {
				const node = level[i];
				const x = (t.x(node) - left) * this.scale;
				const width = t.width(node) * this.scale;
				/* What was skipped before it leaves no gap. */
				const gap = x - drawn / this.ratio;
				const skipped = drawn >= 0 && gap > 0 && gap < 1 ? gap : 0;
				this.drawBox(node, x - skipped, y, width + skipped);
				drawn = (x + width) * this.ratio;
			}
			this.fill();
		}

		drawBox(node, x, y, width) {
			const frame = this.tree.frameOf(node);
			const found = this.flags && frame && this.flags[this.tree.frame[node]];
			const colour = this.colourOf(node, frame, { found, isThin: width < THIN });
			const gap = width > MIN_GAP ? 1 : 0;
			const alpha = this.flags && !found ? 0.4 : 1;
			const box = { x, y, end: x + Math.max(width - gap, 0.5), colour, alpha, isOne: true };
			const { box: before } = this;
			if (!gap && before && x < before.end + 0.01 && colour === before.colour && alpha === before.alpha) {
				before.end = box.end;
				before.isOne = false;
				return;
			}
			this.fill();
			this.box = box;
			if (!gap) return;
			this.fill();
			const { context } = this;
			if (frame && frame.inlined && width > 6) {
				context.globalAlpha = 0.45;
				context.fillStyle = this.palette.edge;
				for (let dash = y + 2; dash < y + ROW - 3; dash += 5) context.fillRect(x, dash, 2, 3);
				context.globalAlpha = 1;
			}
			if (width >= MIN_TEXT) this.drawText(node, frame, x + 5, y, width - 9);
		}

		/* Paints the box that is held back: it grows while what follows it looks the same. */
		fill() {
			const { box, context } = this;
			this.box = null;
			if (!box) return;
			context.globalAlpha = box.alpha;
			context.fillStyle = box.colour;
			context.fillRect(box.x, box.y, box.end - box.x, ROW - 1);
			if (!box.isOne) {
				context.fillStyle = this.stripes();
				context.fillRect(box.x, box.y, box.end - box.x, ROW - 1);
			}
			context.globalAlpha = 1;
		}

		/* A pattern that tells a run of boxes without gaps from one wide box. */
		stripes() {
			const { palette } = this;
			if (!palette.pattern) {
				const canvas = document.createElement("canvas");
				[canvas.width, canvas.height] = [palette.stripes.length, 1];
				const context = canvas.getContext("2d");
				palette.stripes.forEach((colour, i) => {
					context.fillStyle = colour;
					context.fillRect(i, 0, 1, 1);
				});
				palette.pattern = context.createPattern(canvas, "repeat");
			}
			return palette.pattern;
		}

		/* ISTHIN: too narrow to be told from its neighbours of the same kind. */
		colourOf(node, frame, { found, isThin }) {
			if (found) return hsl(this.palette.match);
			if (this.diff) return changeColour(this.palette, this.tree.change(node));
			const kind = frame ? frame.kind : 5;
			const key = isThin || kind === 5 ? -1 - kind : this.tree.frame[node];
			let colour = this.colours.get(key);
			if (!colour) {
				const shift = key < 0 ? 0 : Math.round((hashOf(frame.name) - 0.5) * 2 * JITTER);
				colour = hsl(this.palette.kinds[kind], shift);
				this.colours.set(key, colour);
			}
			return colour;
		}

		textsOf(node, frame) {
			const key = frame ? this.tree.frame[node] : -1;
			let texts = this.labels.get(key);
			if (!texts) {
				const name = frame ? format.clean(frame.name) : "all";
				texts = { full: name, short: format.clean(format.short(name)),
					ascii: /^[\x20-\x7e…]*$/.test(name) };
				this.labels.set(key, texts);
			}
			return texts;
		}

		drawText(node, frame, x, y, room) {
			const context = this.context;
			const texts = this.textsOf(node, frame);
			const letters = Math.floor(room / this.letter);
			let text = texts.full.length <= letters ? texts.full : texts.short;
			if (text.length > letters) text = text.slice(0, Math.max(letters - 1, 1)) + "…";
			context.fillStyle = frame && frame.kind === 4 && !this.diff ? this.palette.muted : this.palette.text;
			context.font = frame && frame.inlined ? "italic " + FONT : FONT;
			/* Letters of other scripts may be wider than an m: the last argument squeezes them. */
			if (texts.ascii) context.fillText(text, x, y + ROW / 2);
			else context.fillText(text, x, y + ROW / 2, room);
		}

		drawRing(node, top, thick) {
			if (node < this.zoom || node >= this.tree.end[this.zoom]) return;
			const context = this.context;
			const x = (this.tree.x(node) - this.tree.x(this.zoom)) * this.scale;
			const width = Math.max(this.tree.width(node) * this.scale - 1, 3);
			context.strokeStyle = this.palette.edge;
			context.lineWidth = thick;
			context.strokeRect(x + thick / 2, this.rowOf(node) * ROW - top + thick / 2,
				Math.max(width - thick, 1), ROW - 1 - thick);
		}

		/* ---- pointer --------------------------------------------------------------------- */

		nodeAt(event) {
			if (!this.tree || !this.tree.width(this.zoom)) return -1;
			const box = this.canvas.getBoundingClientRect();
			const t = this.tree;
			const row = Math.floor((event.clientY - box.top + this.scroller.scrollTop) / ROW);
			const level = t.levels[t.depth[this.zoom] + row];
			const at = t.x(this.zoom) + (event.clientX - box.left) / this.scale;
			if (!level || row < 0) return -1;
			const node = level[tree.lowerBound(level, (n) => t.x(n) <= at) - 1];
			const inside = node !== undefined && node >= this.zoom && node < t.end[this.zoom];
			return inside && at < t.x(node) + t.width(node) ? node : -1;
		}

		/* The lower left corner of what is seen of NODE, in the window. */
		cornerOf(node) {
			const box = this.canvas.getBoundingClientRect();
			const x = (this.tree.x(node) - this.tree.x(this.zoom)) * this.scale;
			const y = (this.rowOf(node) + 1) * ROW - this.scroller.scrollTop;
			return [box.left + Math.max(x, 0), box.top + y];
		}

		listen() {
			const { canvas, scroller } = this;
			canvas.addEventListener("pointermove", (e) => {
				this.hover(this.nodeAt(e));
				if (e.pointerType !== "touch") this.events.point(this.hovered, e.clientX, e.clientY);
			});
			canvas.addEventListener("pointerleave", () => {
				this.hover(-1);
				this.events.point(-1);
			});
			canvas.addEventListener("click", (e) => {
				const node = this.nodeAt(e);
				if (node >= 0) this.events.zoom(node);
			});
			scroller.addEventListener("scroll", () => this.later(), { passive: true });
			scroller.addEventListener("keydown", (e) => this.key(e));
			new ResizeObserver(() => this.measure() && this.draw()).observe(scroller);
		}

		hover(node) {
			if (node === this.hovered) return;
			this.hovered = node;
			this.later();
			this.events.hover(node);
		}

		/* ---- keys ------------------------------------------------------------------------ */

		key(event) {
			if (!this.tree || event.ctrlKey || event.metaKey || event.altKey) return;
			const from = this.selected < this.zoom || this.selected >= this.tree.end[this.zoom]
				? this.zoom : this.selected;
			if (event.key === "Enter") this.events.zoom(from);
			else if (event.key === "Home") this.events.zoom(0);
			else if (event.key.startsWith("Arrow")) this.move(event.key.slice(5), from);
			else return;
			event.preventDefault();
		}

		move(way, from) {
			const t = this.tree;
			let goal = from;
			if (this.selected < 0) goal = this.zoom;
			else if (way === "Up" && from === this.zoom) return this.events.back();
			else if (way === "Up") goal = t.parent(from);
			else if (way === "Down") goal = this.widest(t.children(from), from);
			else goal = this.beside(from, way === "Left" ? -1 : 1);
			this.select(goal);
			this.events.select(goal);
			return undefined;
		}

		widest(nodes, otherwise) {
			return nodes.reduce((best, n) =>
				best === otherwise || this.tree.width(n) > this.tree.width(best) ? n : best, otherwise);
		}

		/* The next box of the same level that is wide enough to be seen. */
		beside(node, step) {
			const t = this.tree;
			const level = t.levels[t.depth[node]];
			const inside = (n) => n >= this.zoom && n < t.end[this.zoom];
			for (let i = level.indexOf(node) + step; inside(level[i]); i += step) {
				if (t.width(level[i]) * this.scale >= 1) return level[i];
			}
			return node;
		}
	}

	return { Flame, PALETTES, hsl, changeColour };
})();
