/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles without an agent: files that the page itself contains (`fathom record --html`, `fathom
 * view`), or that were dropped on it. A FileSource answers what client.Client answers; `isFiles`
 * tells them apart. One file may be the baseline that the others are compared with.
 */
"use strict";

const fileSource = (() => {
	const MAX_FILES = 100;
	const MAX_BYTES = 128 << 20; /* of one file, as it is stored */
	const EMBEDDED = "script[type='application/x-fathom-profile']";

	class FileSource {
		/* PROFILES: [{ name, base, read }]; read() gives the file's bytes or a promise of them. */
		constructor(profiles) {
			this.isFiles = true;
			this.profiles = profiles.slice(0, MAX_FILES)
				.map((p, i) => ({ ...p, path: i + "/" + p.name, bytes: 0, timeMs: 0, durationMs: 0 }));
			this.left = profiles.length - this.profiles.length;
			this.opened = null;
		}

		/* Reads all files once, and finds out which one is the baseline. */
		open() {
			this.opened = this.opened || this.readAll();
			return this.opened;
		}

		async readAll() {
			for (const p of this.profiles) await this.readOne(p);
			const good = this.profiles.filter((p) => p.profile);
			good.sort((a, b) => a.timeMs - b.timeMs);
			if (this.profiles.length === 2 && good.length === 2 && !good.some((p) => p.base))
				good[0].base = true; /* the older one */
		}

		async readOne(p) {
			try {
				const bytes = await p.read();
				if (bytes.length > MAX_BYTES) throw new pprof.BadProfile("too large");
				p.bytes = bytes.length;
				p.profile = await decoded(bytes);
				p.timeMs = Number(p.profile.timeNs) / 1e6;
				p.durationMs = Math.max(0, Number(p.profile.durationNs) / 1e6);
			} catch (error) {
				p.why = error instanceof pprof.BadProfile ? "not a valid profile: " + error.message
					: "not a profile";
			}
		}

		async status() {
			await this.open();
			return { node: this.profiles.map((p) => p.name + (p.base ? " (baseline)" : "")).join(", ") };
		}

		async list() {
			await this.open();
			const listed = this.profiles.map(({ path, bytes, timeMs, durationMs, base }) =>
				({ path, group: samples.WITHOUT, bytes, timeMs, durationMs, base: Boolean(base) }));
			return listed.sort((a, b) => a.timeMs - b.timeMs);
		}

		async latency() {
			return null;
		}

		/* The decoded profile is handed out again and again: whoever takes it changes nothing in it. */
		async profile(file) {
			const { profile, why } = this.profiles.find((p) => p.path === file.path);
			if (!profile) throw new pprof.BadProfile(why);
			return profile;
		}

		/* What cannot be shown, as a text for people; "" = nothing. */
		trouble() {
			const texts = this.profiles.filter((p) => p.why).map((p) => `${format.clean(p.name)} is ${p.why}.`);
			if (this.left) texts.push(`${this.left} more files were not opened.`);
			return texts.join(" ");
		}

		hasBase() {
			return this.profiles.some((p) => p.base && p.profile);
		}

		/* The samples of all files have the comm of their thread, as fathom writes it. */
		hasLabel(key) {
			return this.profiles.some((p) => p.profile &&
				p.profile.samples.some((s) => s.labels.some((l) => l.key === key)));
		}

		now() {
			return Date.now();
		}
	}

	/* The profile in BYTES: pprof, or a text that other tools make. */
	async function decoded(bytes) {
		const plain = await pprof.unzipped(bytes);
		const { isText, reading } = textProfile.isText(plain) ? textProfile : pprof;
		return slices.run(reading(plain));
	}

	/* The bytes of TEXT, which is base64. */
	function bytesOf(text) {
		const raw = atob(text);
		const bytes = new Uint8Array(raw.length);
		for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
		return bytes;
	}

	/* The profiles that the page contains; null when it contains none. */
	function embedded() {
		const found = [...document.querySelectorAll(EMBEDDED)];
		if (!found.length) return null;
		return new FileSource(found.map((e) => ({
			name: e.dataset.name || "profile", base: e.dataset.side === "base",
			read: () => bytesOf(e.textContent),
		})));
	}

	/* FILES as a browser gives them for a drop or a choice. */
	function chosen(files, base = false) {
		return [...files].map((file) => ({ name: file.name, base, read: () => contents(file) }));
	}

	async function contents(file) {
		if (file.size > MAX_BYTES) throw new pprof.BadProfile("too large");
		return new Uint8Array(await file.arrayBuffer());
	}

	/*
	 * Calls OPEN(profiles) for files that are dropped on the page or chosen in INPUT. While files
	 * are dragged over it, the page has the class `dropping`.
	 */
	function listen(input, open) {
		const marks = document.documentElement.classList;
		const hasFiles = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
		document.addEventListener("dragover", (event) => {
			if (!hasFiles(event)) return;
			event.preventDefault();
			marks.add("dropping");
		});
		document.addEventListener("dragleave", (event) => {
			if (!event.relatedTarget) marks.remove("dropping");
		});
		document.addEventListener("drop", (event) => {
			marks.remove("dropping");
			if (!hasFiles(event)) return;
			event.preventDefault();
			open(chosen(event.dataTransfer.files));
		});
		input.addEventListener("change", () => {
			if (input.files.length) open(chosen(input.files, input.dataset.base === "1"));
			input.value = "";
		});
	}

	return { FileSource, embedded, listen };
})();
