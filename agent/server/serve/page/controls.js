/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the page around the graph: choices, breadcrumb, legend, the facts of a frame. */
"use strict";

const controls = (() => {
	const MAX_CHOICES = 300;
	const MAX_CRUMBS = 6;
	const { element } = table;
	const byId = (id) => document.getElementById(id);

	const ON_FRAME = ["copy-name", "copy-stack", "to-function"]; /* buttons that need a frame */
	const KIND_TEXTS = ["native", "Go", "JIT", "kernel", "no name", "group"];

	/* ---- choices ------------------------------------------------------------------------- */

	/* The heaviest of CHOICES, in order. There may be one for each goroutine. */
	function heaviest(choices) {
		const values = Float64Array.from(choices.values()).sort();
		const least = values[values.length - MAX_CHOICES] || 0;
		return [...choices].filter(([, value]) => value >= least)
			.sort((a, b) => b[1] - a[1]).slice(0, MAX_CHOICES);
	}

	/* CHOICES: Map from text to value. The chosen one stays even where nothing has it any more. */
	function fillSelect(select, choices, chosen) {
		if (document.activeElement === select) return; /* perhaps open */
		const whole = [...choices.values()].reduce((a, b) => a + b, 0);
		const listed = heaviest(choices);
		if (chosen && !listed.some(([text]) => text === chosen))
			listed.push([chosen, choices.get(chosen) || 0]);
		const options = [new Option(`all (${choices.size.toLocaleString("en")})`, "")];
		for (const [text, value] of listed)
			options.push(new Option(`${format.clean(text)}  ·  ${format.percent(value, whole)}`, text));
		if (choices.size > MAX_CHOICES) {
			const more = new Option(`${choices.size - MAX_CHOICES} more, lighter ones`, "");
			more.disabled = true;
			options.push(more);
		}
		select.replaceChildren(...options);
		select.value = chosen;
		select.classList.toggle("set", Boolean(chosen));
		select.disabled = !chosen && choices.size <= 1 && (!choices.size || choices.has(samples.WITHOUT));
	}

	/* What stacks can be put under: the choices of the page, and KEYS of labels. */
	function fillGroups(select, keys, chosen) {
		if (document.activeElement === select) return;
		if (chosen.startsWith("label:") && !keys.includes(chosen.slice(6))) keys = [...keys, chosen.slice(6)];
		const listed = [...select.options].filter((o) => o.value.startsWith("label:"));
		if (listed.map((o) => o.value.slice(6)).join("\0") !== keys.join("\0")) {
			for (const option of listed) option.remove();
			for (const key of keys) select.add(new Option("label " + format.clean(key), "label:" + key));
		}
		select.value = chosen;
	}

	/* TYPES of values that the profiles have, of which SHOWN is shown. */
	function typeChoice(select, types, shown) {
		types = types.filter((t) => t.type !== "samples" || t === types[types.length - 1]);
		select.parentElement.hidden = types.length < 2;
		if (document.activeElement === select || !shown) return;
		select.replaceChildren(...types.map((t) => new Option(`${format.clean(t.type)} (${format.clean(t.unit)})`, t.type)));
		select.value = shown.type;
	}

	function press(button, on) {
		button.setAttribute("aria-pressed", String(on));
	}

	/* BUTTON says TEXT for a moment. */
	function flash(button, text) {
		if (!button.dataset.text) button.dataset.text = button.textContent;
		button.textContent = text;
		clearTimeout(button.flashing);
		button.flashing = setTimeout(() => { button.textContent = button.dataset.text; }, 1500);
	}

	/* ---- breadcrumb ---------------------------------------------------------------------- */

	/* ZOOM(node) is called for what is chosen. */
	function crumbs(box, shown, zoom, choose) {
		const chain = [0, ...shown.chain(zoom)];
		const hidden = Math.max(0, chain.length - MAX_CRUMBS);
		const listed = hidden ? [chain[0], ...chain.slice(hidden + 1)] : chain;
		const parts = [];
		listed.forEach((node, i) => {
			if (i) parts.push(element("span", hidden && i === 1 ? `› … ${hidden} … ›` : "›"));
			const frame = shown.frameOf(node);
			const name = frame ? format.clean(format.short(frame.name)) : "all";
			const button = element("button", name);
			button.type = "button";
			if (frame) button.title = format.clean(frame.name);
			if (node === zoom) button.setAttribute("aria-current", "true");
			button.addEventListener("click", () => choose(node));
			parts.push(button);
		});
		box.replaceChildren(...parts);
	}

	/* ---- legend -------------------------------------------------------------------------- */

	function swatch(colour, text, className = "") {
		const item = element("i", undefined, className);
		const box = element("span", undefined, "swatch");
		box.style.background = colour;
		item.append(box, text);
		return item;
	}

	function legend(box, { dark, diff, kinds, inlined }) {
		const palette = dark ? flame.PALETTES.dark : flame.PALETTES.light;
		const change = (by) => flame.changeColour(palette, by);
		if (diff) {
			box.replaceChildren(swatch(change(-1), "shrank"), swatch(change(0), "within noise"),
				swatch(change(1), "grew"));
			return;
		}
		const items = KIND_TEXTS.map((text, kind) => [kind, text])
			.filter(([kind]) => kinds.has(kind) && kind !== samples.KINDS.label)
			.map(([kind, text]) => swatch(flame.hsl(palette.kinds[kind]), text));
		if (inlined) items.push(element("i", "inlined", "inlined"));
		box.replaceChildren(...items);
	}

	/* Below the timeline, what its marks mean; each has the colour of its mark. */
	function odd(box, found) {
		const parts = [["lost", { ...found, other: [] }], ["other", { ...found, lost: [] }]]
			.map(([name, one]) => [name, timeline.oddText(one)]).filter(([, text]) => text);
		const text = parts.map((part) => part[1]).join();
		if (box.dataset.text === text) return;
		box.dataset.text = text;
		box.hidden = !text;
		box.replaceChildren(...parts.map(([name, one]) => element("span", one, name)));
	}

	/* ---- one frame ----------------------------------------------------------------------- */

	function place(shown, node, frame) {
		if (frame.kind === samples.KINDS.label) return "";
		const lines = shown.lines(node).filter((l) => l.line);
		const more = lines.length > 1 ? ` (and ${lines.length - 1} more ${lines.length > 2 ? "lines" : "line"})` : "";
		const file = frame.file && frame.file + (lines.length ? ":" + lines[0].line + more : "");
		return [file, frame.module].filter(Boolean).map(format.clean).join("  ·  ");
	}

	function figures(shown, node, type) {
		const parent = shown.parent(node);
		const value = shown.value(node);
		const parts = [`${format.value(value, type)}  ·  ${format.percent(value, shown.value(0))} ${shown.wholeText || "of all"}`];
		if (parent > 0) parts[0] += `  ·  ${format.percent(value, shown.value(parent))} of parent`;
		if (shown.scale) {
			const before = shown.base(node) * shown.scale;
			const noise = before !== value && !shown.change(node) ? ", within noise" : "";
			const span = shown.scale === 1 ? "" : " in the same time";
			parts.push(`baseline ${format.value(before, type)}${span}  ·  ` +
				format.signedPercent(value, before) + noise);
		} else if (!shown.inverted && node) {
			parts.push(`self ${format.value(shown.self(node), type)}`);
		}
		return parts;
	}

	/* What is told of NODE: texts, `marks` and `figures` lists of them. */
	/* What would name FRAME, as the agent found out for its program; "" if it has a name. */
	function advice(frame, status) {
		if (frame.kind !== samples.KINDS.unknown) return "";
		const isJit = frame.module === "[anon]";
		const told = (status.unnamed_programs || [])
			.filter((p) => isJit ? !p.file : p.file === frame.module);
		if (told.length) return told.map((p) => `${p.program}: ${p.to_do}`).join("; ");
		if (isJit)
			return "JIT code without a perf map: its compiler has to write /tmp/perf-PID.map " +
				"(java: jcmd PID Compiler.perfmap, node: --perf-basic-prof)";
		if (frame.module.startsWith("/"))
			return `no symbols in ${frame.module}: install its debug symbols, or set --debuginfod-urls`;
		return "";
	}

	/* STATUS is the agent's. */
	function facts(shown, node, type, status) {
		const frame = shown.frameOf(node);
		const marks = [];
		if (frame && frame.inlined) marks.push("inlined");
		if (frame && frame.kind) marks.push(KIND_TEXTS[frame.kind]);
		return { name: frame ? format.clean(frame.name) : "all", marks,
			where: frame ? [place(shown, node, frame), format.clean(advice(frame, status || {}))]
				.filter(Boolean).join("  ·  ") : "", figures: figures(shown, node, type) };
	}

	function details(shown, node, type, status) {
		const { name, marks, where, figures: lines } = facts(shown, node, type, status);
		byId("d-name").textContent = name;
		byId("d-name").title = name;
		byId("d-marks").replaceChildren(...marks.map((text) => element("span", text, "mark")));
		byId("d-where").textContent = where;
		byId("d-where").title = where;
		byId("d-figures").textContent = lines.join("\n");
		for (const id of ON_FRAME) byId(id).disabled = node === tree.ROOT;
	}

	function noDetails() {
		for (const id of ["d-name", "d-where", "d-figures"]) byId(id).textContent = "";
		byId("d-marks").replaceChildren();
		for (const id of ON_FRAME) byId(id).disabled = true;
	}

	/* What a screen reader says of NODE. */
	function spoken(shown, node) {
		const frame = shown.frameOf(node);
		const share = format.percent(shown.value(node), shown.value(0));
		if (!frame) return "all, " + share;
		const marks = (frame.inlined ? ", inlined" : "") + (frame.kind ? ", " + KIND_TEXTS[frame.kind] : "");
		return `${format.clean(frame.name)}${marks}, ${share}, depth ${shown.depth[node]}`;
	}

	/* ---- texts of the agent's state ------------------------------------------------------ */

	function statusText(status) {
		const parts = [];
		if (status.frequency_hertz) parts.push(status.frequency_hertz.effective + " Hz");
		if (status.cpu) parts.push("agent: " + Number(status.cpu.recent_percent ?? status.cpu.used_percent).toFixed(2) + " % CPU");
		if (status.memory) parts.push(format.bytes(status.memory.resident_bytes) + " memory");
		if (status.store)
			parts.push(`store: ${Number(status.store.files).toLocaleString("en")} files, ${format.bytes(status.store.bytes)}`);
		if (status.samples && status.samples.lost)
			parts.push(status.samples.lost.toLocaleString("en") + " samples lost");
		return parts.join("  ·  ");
	}

	/* [title, text] for a stage without a graph. */
	function emptyText({ status, loading, listed, selected, filtered }) {
		const window = status.window_seconds || 10;
		const wait = window < 120 ? `${Math.ceil(window)} s` : `${Math.ceil(window / 60)} min`;
		if (loading) return ["Loading profiles…", ""];
		if (filtered) return ["No samples match these filters", "Reset them, or choose a longer time range."];
		if (selected) return ["No samples in the selected time", "Clear the selection, or select where the timeline shows CPU use."];
		if (listed) return ["These profiles have no samples", "The machine was idle. Choose a longer time range."];
		if (status.ready === false)
			return ["The agent is not sampling yet", "If this persists, fathom check shows what is missing on this machine."];
		if (status.store === null)
			return ["This agent keeps no profiles", "Start it with --local-store-directory=DIR to see recent profiles here.\n" +
				`For a current profile: go tool pprof ${location.origin}/debug/pprof/profile?seconds=5`];
		if (status.store && !status.store.files)
			return ["No profiles yet", `The first one is stored when the first window ends, after ${wait}. It will appear here.`];
		return ["Nothing was stored in this time", "Choose a longer time range."];
	}

	return { byId, fillSelect, fillGroups, typeChoice, press, flash, odd, crumbs, legend, details, noDetails, facts, spoken, statusText, emptyText };
})();
