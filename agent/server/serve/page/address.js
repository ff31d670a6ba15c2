/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the page shows, as the fragment of its address: `#last=15&view=table&comm=nginx`. Only what
 * differs from INITIAL is written. A fragment may come from anybody: what is not understood in it,
 * is too long or is no possible value is left out, and the rest counts.
 */
"use strict";

const address = (() => {
	const MAX_FRAGMENT = 1 << 16;
	const MAX_TEXT = 1000;
	const MAX_DEPTH = 1024;
	const { FIELDS } = typeof module === "object" ? require("./samples.js") : samples;
	const KEY = /^[0-9a-z]{1,12}$/; /* of a frame: samples.js */

	const INITIAL = {
		minutes: 5, live: true, heldAt: 0, /* the end of the range, ms since 1970, when not live */
		now: null, base: null, diff: false,
		filter: { ...Object.fromEntries(FIELDS.map((f) => [f, ""])), code: "all" },
		type: "", /* of the values shown; "": the profiles' default */
		by: "group", /* also "started", "created", "label:KEY" */ unnamed: "function", inverted: false, view: "flame",
		search: "", regex: false,
		zoom: [], /* keys of the frames from the root */
		fn: null, /* whose callers and callees are shown: { name, module } */
		measured: null, /* the function whose latency is drawn: { probe, function, binary } */
	};

	/* ---- values and their texts; a reader gives undefined for what it does not accept -------- */

	const readMs = (text) => {
		const ms = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text) ? Date.parse(text) : NaN;
		return ms > 0 ? ms : undefined;
	};
	const writeMs = (ms) => new Date(Math.round(ms)).toISOString();

	const flag = { read: (text) => (text === "1" ? true : undefined), write: () => "1" };
	const text = { read: (given) => given.slice(0, MAX_TEXT), write: (value) => value };
	const time = { read: readMs, write: writeMs };
	const span = {
		read: (given) => {
			const [from, to] = given.split("/").map(readMs);
			return from < to ? [from, to] : undefined;
		},
		write: (range) => range.map(writeMs).join("/"),
	};
	const oneOf = (...values) => ({
		read: (given) => (values.includes(given) ? given : undefined), write: (value) => value,
	});
	const groups = oneOf(...FIELDS.filter((f) => f !== "label"), "started", "created", "");
	const minutes = {
		read: (given) => (given === "all" ? 0 : [1, 5, 15, 60, 1440].find((m) => String(m) === given)),
		write: (value) => (value ? String(value) : "all"),
	};
	const path = {
		read: (given) => {
			const keys = given.split(".");
			return keys.length <= MAX_DEPTH && keys.every((key) => KEY.test(key)) ? keys : undefined;
		},
		write: (keys) => keys.join("."),
	};
	/* NAMES: the members of an object of texts, the first ones must not be empty. */
	const texts = (...names) => ({
		read: (given) => {
			const parts = given.split("\n");
			if (parts.length !== names.length || !parts[0]) return undefined;
			return Object.fromEntries(names.map((name, i) => [name, parts[i].slice(0, MAX_TEXT)]));
		},
		write: (value) => names.map((name) => value[name].replaceAll("\n", " ")).join("\n"),
	});

	/* Key in the fragment → member of the state, and how it is told. */
	const PARTS = {
		last: ["minutes", minutes],
		to: ["heldAt", time],
		now: ["now", span],
		base: ["base", span],
		compare: ["diff", flag],
		value: ["type", text],
		by: ["by", { read: (given) => (/^label:./.test(given) ? given.slice(0, MAX_TEXT) : groups.read(given)),
			write: groups.write }],
		unnamed: ["unnamed", oneOf("function", "module")],
		inverted: ["inverted", flag],
		view: ["view", oneOf("flame", "table", "function", "latency")],
		search: ["search", text],
		regex: ["regex", flag],
		zoom: ["zoom", path],
		function: ["fn", texts("name", "module")],
		measured: ["measured", texts("function", "probe", "binary")],
	};

	function same(a, b) {
		return JSON.stringify(a) === JSON.stringify(b);
	}

	/* STATE as a fragment, without the "#". */
	function write(state) {
		const parts = new URLSearchParams();
		for (const [key, [member, kind]] of Object.entries(PARTS))
			if (!same(state[member], INITIAL[member])) parts.set(key, kind.write(state[member]));
		if (state.live) parts.delete("to");
		for (const field of FIELDS) if (state.filter[field]) parts.set(field, state.filter[field]);
		if (state.filter.code !== "all") parts.set("code", state.filter.code);
		return String(parts);
	}

	/* The state that FRAGMENT (without the "#") tells, with all members. */
	function read(fragment) {
		const state = structuredClone(INITIAL);
		const parts = new URLSearchParams(fragment.length > MAX_FRAGMENT ? "" : fragment);
		for (const [key, [member, kind]] of Object.entries(PARTS)) {
			const value = parts.has(key) ? kind.read(parts.get(key)) : undefined;
			if (value !== undefined) state[member] = value;
		}
		state.live = !state.heldAt;
		for (const field of FIELDS) state.filter[field] = (parts.get(field) || "").slice(0, MAX_TEXT);
		const code = parts.get("code");
		if (["user", "kernel"].includes(code)) state.filter.code = code;
		return state;
	}

	/* Whether a step from fragment BEFORE to AFTER is one that Back undoes: not each letter of a search. */
	function isStep(before, after) {
		const [a, b] = [before, after].map((fragment) => new URLSearchParams(fragment));
		if (!a.get("search") || !b.get("search")) return true;
		b.set("search", a.get("search"));
		a.sort();
		b.sort();
		return String(a) !== String(b);
	}

	return { INITIAL, write, read, isStep };
})();

if (typeof module === "object") module.exports = address;
