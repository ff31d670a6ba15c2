/* SPDX-License-Identifier: Apache-2.0 */
/* What is taken out of the page as text: the link to what is shown, a function's name, a stack. */
"use strict";

const share = (() => {
	/* Over plain HTTP from another machine browsers offer no clipboard, only this old command. */
	function copyByCommand(text) {
		const focused = document.activeElement;
		const area = document.createElement("textarea");
		area.value = text;
		area.className = "hidden-text";
		document.body.append(area);
		area.select();
		const done = document.execCommand("copy");
		area.remove();
		if (focused) focused.focus({ preventScroll: true });
		return done;
	}

	/* True: TEXT is in the clipboard. */
	async function copy(text) {
		try {
			await navigator.clipboard.writeText(text);
			return true;
		} catch (error) {
			return copyByCommand(text);
		}
	}

	/* The page's address with FRAGMENT, without a user, a password or a query. */
	function link(fragment) {
		const page = location.protocol === "file:" ? location.href.split("#")[0] : location.origin + location.pathname;
		return fragment ? page + "#" + fragment : page;
	}

	/* The frames from NODE to the outermost one, innermost first, a line each, as perf script has them. */
	function stack(shown, node) {
		const chain = shown.chain(node).filter((n) => shown.frameOf(n).kind !== samples.KINDS.label);
		if (!shown.inverted) chain.reverse();
		return chain.map((n) => {
			const { name, file, module } = shown.frameOf(n);
			const [first] = shown.lines(n).filter((l) => l.line);
			const place = file + (file && first ? ":" + first.line : "");
			return [name, place && `(${place})`, module && `[${module}]`].filter(Boolean).join(" ");
		}).join("\n");
	}

	return { copy, link, stack };
})();

if (typeof module === "object") module.exports = share;
