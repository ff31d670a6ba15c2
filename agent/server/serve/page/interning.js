/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that keep each distinct thing once, under a number. */
"use strict";

const interning = (() => {
	const { ITEMS } = typeof module === "object" ? require("./slices.js") : slices;
	const same = (thing) => thing;

	/* Numbers for distinct keys, from 0 in order of first use, and the thing of each. */
	class Table {
		constructor() {
			this.numbers = new Map();
			this.items = [];
		}

		of(key, make) {
			let number = this.numbers.get(key);
			if (number === undefined) {
				number = this.items.length;
				this.numbers.set(key, number);
				this.items.push(make(number));
			}
			return number;
		}

		/*
		 * A table of the items whose flag in USED is set, in their order, and the new number of each
		 * old one, -1 for none, as work for slices.run(). This table stays as it is. RENEWED makes an item
		 * whose parts have new numbers, REKEY its key.
		 */
		*keeping(used, renewed = same, rekey = null) {
			const table = new Table();
			const numbers = new Int32Array(this.items.length).fill(-1);
			let seen = 0;
			for (const [key, number] of this.numbers) {
				if (++seen % ITEMS === 0) yield;
				if (!used[number]) continue;
				const item = renewed(this.items[number]);
				numbers[number] = table.of(rekey ? rekey(item) : key, () => item);
			}
			return { table, numbers };
		}
	}

	/* Table of stacks, whose keys are lists of numbers: { locations, sides, frameBy }. */
	class StackTable {
		constructor() {
			this.items = [];
			this.hashes = []; /* of each item */
			this.slots = new Int32Array(1024); /* number + 1, at its hash or behind; 0 = free */
		}

		of(locations, make) {
			const hash = hashOf(locations);
			const slot = this.slotOf(hash, locations);
			const found = this.slots[slot] - 1;
			if (found < 0) this.push(make(), hash, slot);
			return found < 0 ? this.items.length - 1 : found;
		}

		/* Where the stack of LOCATIONS is, or would be. */
		slotOf(hash, locations) {
			const { items, hashes, slots } = this;
			const mask = slots.length - 1;
			let slot = hash & mask;
			for (let number; (number = slots[slot] - 1) >= 0; slot = (slot + 1) & mask)
				if (hashes[number] === hash && isSame(items[number].locations, locations)) break;
			return slot;
		}

		push(item, hash, slot) {
			this.items.push(item);
			this.hashes.push(hash);
			this.slots[slot] = this.items.length;
			if (this.items.length * 2 > this.slots.length) this.grow();
		}

		grow() {
			const slots = new Int32Array(this.slots.length * 2);
			const mask = slots.length - 1;
			this.hashes.forEach((hash, i) => { /* all different */
				let slot = hash & mask;
				while (slots[slot]) slot = (slot + 1) & mask;
				slots[slot] = i + 1;
			});
			this.slots = slots;
		}

		/* As Table.keeping(). */
		*keeping(used, renewed) {
			const table = new StackTable();
			const numbers = new Int32Array(this.items.length).fill(-1);
			for (let i = 0; i < numbers.length; i++) {
				if (i % ITEMS === 0) yield;
				if (!used[i]) continue;
				const item = renewed(this.items[i]);
				numbers[i] = table.of(item.locations, () => item);
			}
			return { table, numbers };
		}
	}

	function hashOf(locations) {
		let hash = locations.length;
		for (let i = 0; i < locations.length; i++)
			hash = Math.imul((hash << 5) ^ (hash >>> 27) ^ locations[i], 0x9e3779b1);
		return (hash ^ (hash >>> 15)) & 0x3fffffff; /* a small integer */
	}

	function isSame(a, b) {
		if (a.length !== b.length) return false;
		for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
		return true;
	}

	/* SIZE flags, set for the numbers in LISTS. */
	function* marked(size, lists) {
		const flags = new Uint8Array(size);
		let seen = 0;
		for (const list of lists) {
			for (let i = 0; i < list.length; i++) flags[list[i]] = 1;
			if (++seen % ITEMS === 0) yield;
		}
		return flags;
	}

	return { Table, StackTable, marked };
})();

if (typeof module === "object") module.exports = interning;
