/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures and names as people read them. Names come from processes that may mean harm: what would
 * hide or turn around text is replaced, and all of it is set as text, never as HTML.
 */
"use strict";

const format = (() => {
	/* Controls, and the marks that change the direction of text or have no width. */
	const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
	const MAX_NAME = 400;

	function clean(text) {
		const shown = text.length > MAX_NAME ? text.slice(0, MAX_NAME) + "…" : text;
		return shown.replace(UNSAFE, "\ufffd");
	}

	function digits(value) {
		const size = Math.abs(value);
		return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
	}

	function duration(ns) {
		const size = Math.abs(ns);
		if (size >= 3600e9) return digits(ns / 3600e9) + " h";
		if (size >= 60e9) return digits(ns / 60e9) + " min";
		if (size >= 1e9) return digits(ns / 1e9) + " s";
		if (size >= 1e6) return digits(ns / 1e6) + " ms";
		if (size >= 1e3) return digits(ns / 1e3) + " µs";
		return ns ? Math.round(ns) + " ns" : "0 s";
	}

	function bytes(count) {
		const units = ["B", "KiB", "MiB", "GiB", "TiB"];
		let unit = 0;
		for (; count >= 1024 && unit + 1 < units.length; unit++) count /= 1024;
		return (unit ? digits(count) : String(count)) + " " + units[unit];
	}

	/* VALUE of TYPE ({ type, unit }) of a profile. */
	function value(number, type) {
		if (!type || type.unit === "nanoseconds") return duration(number);
		if (type.unit === "bytes") return bytes(number);
		return Math.round(number).toLocaleString("en") + " " + type.unit;
	}

	function percent(part, whole) {
		if (!whole) return "0 %";
		const share = (100 * part) / whole;
		if (share > 0 && share < 0.01) return "<0.01 %";
		return (share >= 99.95 || !share ? share.toFixed(0) : digits(share)) + " %";
	}

	function signedPercent(now, before) {
		if (!before) return now ? "new" : "0 %";
		if (!now) return "gone";
		const change = (100 * (now - before)) / before;
		if (Math.abs(change) < 0.005) return "0 %";
		return (change > 0 ? "+" : change < 0 ? "−" : "") + digits(Math.abs(change)) + " %";
	}

	function clock(ms) {
		return new Date(ms).toLocaleTimeString("en-GB");
	}

	/* FROM to TO, with the date where it is not today's. */
	function times(from, to, now) {
		const day = (ms) => new Date(ms).toDateString();
		const date = (ms) => new Date(ms).toLocaleDateString("en-CA") + " ";
		const first = day(from) === day(now) ? "" : date(from);
		const second = day(to) === day(from) ? "" : date(to);
		return first + clock(from) + " – " + second + clock(to);
	}

	/* NAME without its package's path (Go), parameters and template arguments (C++, Rust). */
	function short(name) {
		if (name.startsWith("[") || name.includes("+0x")) return name;
		if (/^[\w.~-]+(\/[\w.~%-]+)+\./.test(name)) return name.slice(name.lastIndexOf("/") + 1);
		const call = name.search(/[^(]\(/) + 1;
		const head = call > 0 && !/\(\*|\(anonymous|operator\(/.test(name) ? name.slice(0, call) : name;
		let plain = head;
		for (let before = ""; before !== plain;) {
			before = plain;
			plain = plain.replace(/(?:::|(?<=[\w>]))<[^<>]*>/g, ""); /* not Rust's `<Type as Trait>` */
		}
		return plain.trim() || name;
	}

	return { clean, duration, bytes, value, percent, signedPercent, times, clock, short };
})();

if (typeof module === "object") module.exports = format;
