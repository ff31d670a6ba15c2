/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts of a frame beside the pointer, or beside the frame that the keyboard selected. They also
 * stand below the graph, where a screen reader finds them: this is for the eye only. It never takes
 * the pointer from what is below it.
 */
"use strict";

const tip = (() => {
	const GAP = 14; /* CSS pixels to the pointer */
	const { element } = table;

	class Tip {
		constructor(box) {
			this.box = box;
		}

		/* FACTS as controls.facts() has them; X and Y in the window. */
		show({ name, marks, where, figures }, x, y) {
			const { box } = this;
			const head = element("div", name, "name");
			for (const text of marks) head.append(element("span", text, "mark"));
			box.replaceChildren(head, ...[where, ...figures].filter(Boolean).map((line) => element("div", line)));
			box.hidden = false;
			box.style.left = box.style.top = "0"; /* its width depends on where it is */
			const { innerWidth, innerHeight } = window;
			const { width, height } = box.getBoundingClientRect();
			const right = x + GAP + width <= innerWidth;
			const below = y + GAP + height <= innerHeight;
			box.style.left = Math.max(4, right ? x + GAP : Math.min(x - GAP - width, innerWidth - width - 4)) + "px";
			box.style.top = Math.max(4, below ? y + GAP : y - GAP - height) + "px";
		}

		hide() {
			this.box.hidden = true;
		}

		get shown() {
			return !this.box.hidden;
		}
	}

	return { Tip };
})();
