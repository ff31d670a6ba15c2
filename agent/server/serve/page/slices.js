/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long work in short tasks, so that the page answers while it goes on. Such work is a generator that
 * yields after every few hundred items; what is short is done at once, in the caller's task.
 *
 * A worker would need `worker-src blob:` in the policy of the page, and copies of what it makes:
 * rows and names are read by half of the page. Slices need neither, also in a page from a disk.
 */
"use strict";

const slices = (() => {
	const SLICE_MS = 15; /* besides, memory is collected, for up to 50 ms */
	const ITEMS = 256; /* between two yields, where an item takes microseconds */

	/* The value of WORK, all of it now. */
	function finish(work) {
		for (;;) {
			const { done, value } = work.next();
			if (done) return value;
		}
	}

	/* A promise of the next task. Unlike timers it is not held back where it is asked for often. */
	function pause() {
		return new Promise((resolve) => {
			const { port1, port2 } = new MessageChannel();
			port1.onmessage = () => {
				port1.close();
				resolve();
			};
			port2.postMessage(0);
		});
	}

	/* Goes on with WORK until it ends or the slice is over; what next() gave last. */
	function slice(work) {
		const end = performance.now() + SLICE_MS;
		let step;
		do step = work.next();
		while (!step.done && performance.now() < end);
		return step;
	}

	async function rest(work, isWanted) {
		for (;;) {
			await pause();
			if (!isWanted()) return undefined;
			const step = slice(work);
			if (!step.done) continue;
			await pause(); /* what is made of it is a task of its own */
			return step.value;
		}
	}

	/* The value of WORK if it ends within a slice, else a promise of it. It ends early once isWanted() is false. */
	function run(work, isWanted = () => true) {
		const step = slice(work);
		return step.done ? step.value : rest(work, isWanted);
	}

	/*
	 * The numbers 0 … SIZE - 1 in the order of COMPARE(i, j), as a Uint32Array. Runs of ITEMS numbers are
	 * sorted at once and then merged.
	 */
	function* sorted(size, compare) {
		let from = Uint32Array.from({ length: size }, (_, i) => i);
		for (let at = 0; at < size; at += ITEMS) {
			from.subarray(at, at + ITEMS).sort(compare);
			yield;
		}
		let to = new Uint32Array(size);
		for (let run = ITEMS; run < size; run *= 2) {
			for (let at = 0; at < size; at += 2 * run) yield* merge(from, to, at, run, compare);
			[from, to] = [to, from];
		}
		return from;
	}

	/* Merges the sorted runs of FROM at AT and at AT + RUN into TO. */
	function* merge(from, to, at, run, compare) {
		const middle = Math.min(at + run, from.length);
		const end = Math.min(middle + run, from.length);
		let left = at;
		let right = middle;
		for (let out = at; out < end; out++) {
			const isLeft = left < middle && (right >= end || compare(from[left], from[right]) <= 0);
			to[out] = isLeft ? from[left++] : from[right++];
			if (out % ITEMS === 0) yield;
		}
	}

	return { ITEMS, finish, pause, run, sorted };
})();

if (typeof module === "object") module.exports = slices;
