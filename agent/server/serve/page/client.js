/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's answers: status, the list of stored profiles, the profiles. The token stays in this
 * object, that is in memory.
 */
"use strict";

const client = (() => {
	const PARALLEL = 6;
	const TIMEOUT_MS = 20000;
	const MERGE_TIMEOUT_MS = 90000;
	const SETTLED_MS = 120000; /* so long after its end the last window of a slice is stored */
	/* Why the agent merges nothing: nothing is there, too much was asked for, it is busy, it cannot. */
	const UNMERGED = [404, 413, 429, 500];

	class Unauthorized extends Error {}
	class Away extends Error {}

	class Client {
		constructor() {
			this.token = null;
			this.skewMs = 0; /* what to add to this machine's clock to have the agent's */
		}

		/* A refused answer is an error, unless its status is EXPECTED. */
		async get(path, expected = [404], timeoutMs = TIMEOUT_MS) {
			const headers = this.token ? { Authorization: "Bearer " + this.token } : {};
			let response;
			try {
				/* Not relative: the page's own address may hold a user and a password. */
				response = await fetch(location.origin + path, {
					headers, cache: "no-store", credentials: "same-origin",
					signal: AbortSignal.timeout(timeoutMs),
				});
			} catch (error) {
				throw new Away("no response from " + location.host);
			}
			if (response.status === 401) throw new Unauthorized(this.token ? "wrong" : "wanted");
			if (!response.ok && !expected.includes(response.status))
				throw new Away(location.host + " answered " + response.status + " to " + path.split("?")[0]);
			this.clock(response);
			return response;
		}

		clock(response) {
			const date = Date.parse(response.headers.get("Date"));
			if (Number.isNaN(date)) return;
			const skew = date - Date.now();
			this.skewMs = Math.abs(skew) > 2000 ? skew : 0;
		}

		now() {
			return Date.now() + this.skewMs;
		}

		async status() {
			const response = await this.get("/status");
			return (response.ok && await response.json()) || {};
		}

		/*
		 * Files between FROM and TO (ms since 1970), oldest first; where SLICES is not 0 and that is
		 * long, the sums over about so many slices of it, each of which is like a file.
		 */
		async list(from, to, slices = 0) {
			const range = `from=${Math.floor(from)}&to=${Math.ceil(to)}` + (slices ? `&slices=${slices}` : "");
			const response = await this.get("/api/profiles?" + range);
			if (!response.ok) return [];
			const files = await response.json();
			return files.map((f) => (f.slice_ms ? sliceOf(f, to) : {
				path: String(f.path) + (f.minute ? "#" + Number(f.minute) : ""),
				group: String(f.name), bytes: Number(f.bytes), minute: Number(f.minute || 0),
				timeMs: Number(f.time_ms), durationMs: Number(f.duration_ms),
			}));
		}

		/* What functions took between FROM and TO; null when the agent does not measure any. */
		async latency(from, to) {
			const response = await this.get(`/api/latency?from=${Math.floor(from)}&to=${Math.ceil(to)}`);
			return response.ok ? response.json() : null;
		}

		/*
		 * One profile with the samples of all FILES and perhaps of more, for Samples.addMerged(). Null
		 * when the agent does not make it; `tooLarge` when fewer files would do.
		 */
		async merged(files) {
			const begins = files.map((f) => (f.slice ? f.slice.beginMs : f.timeMs));
			const ends = files.map((f) => (f.slice ? f.slice.beginMs + f.slice.lengthMs : f.timeMs + f.durationMs));
			const range = `from=${Math.floor(Math.min(...begins))}&to=${Math.ceil(Math.max(...ends))}` +
				(files[0].slice ? `&slice_ms=${files[0].slice.lengthMs}` : "");
			const response = await this.get("/api/merged?" + range, UNMERGED, MERGE_TIMEOUT_MS);
			if (response.status === 413) return { tooLarge: true };
			return response.ok ? pprof.decode(new Uint8Array(await response.arrayBuffer())) : null;
		}

		/* The profile of FILE; null when the agent has it no more. */
		async profile(file) {
			const path = file.path.split("#")[0].split("/").map(encodeURIComponent).join("/");
			const response = await this.get("/api/profiles/" + path);
			if (!response.ok) return null;
			return pprof.decode(new Uint8Array(await response.arrayBuffer()));
		}
	}

	/* A slice of time that the agent lists at TO. While it may still grow, it is another file each time. */
	function sliceOf(f, to) {
		const lengthMs = Number(f.slice_ms);
		const beginMs = Math.floor(Number(f.time_ms) / lengthMs) * lengthMs;
		const isDone = beginMs + lengthMs + SETTLED_MS < to;
		return {
			path: String(f.path) + (isDone ? "/" + lengthMs : `/${lengthMs}/${Number(f.bytes)}`),
			group: "", bytes: Number(f.bytes), minute: 0,
			timeMs: Number(f.time_ms), durationMs: Number(f.duration_ms),
			slice: { path: String(f.path), beginMs, lengthMs },
		};
	}

	/* Runs WORK on each of ITEMS, some at a time; the first error ends it. */
	async function each(items, work, parallel = PARALLEL) {
		let next = 0;
		const worker = async () => {
			while (next < items.length) await work(items[next++]);
		};
		await Promise.all(Array.from({ length: Math.min(parallel, items.length) }, worker));
	}

	return { Client, Unauthorized, Away, each };
})();
