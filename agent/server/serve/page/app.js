/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page itself: fetches profiles, keeps what the user chose, and brings both into the graph. One
 * way only: an event changes `state`, then update() makes all of the page from it.
 */
"use strict";

const app = (() => {
	/* The newest profiles up to these limits are loaded; the notice says when there are more. */
	const MAX_FILES = 4000;
	const MAX_BYTES = 128 << 20;
	/*
	 * Distinct stacks and label sets in memory, and samples of profiles that are no longer shown
	 * beyond as many as are shown. A label set with a new goroutine ID takes some 600 bytes.
	 */
	const LIMITS = { stacks: 500000, sets: 500000, spare: 100000 };
	const MERGED_BYTES = 16 << 20; /* of stored files that are asked for at once */
	const SLICES = 96; /* of more time than MINUTES_BY_FILE: it is summed over about so many */
	const SLICES_BYTES = 128 << 20; /* as MERGED_BYTES */
	const SLICES_PAUSE_MS = 60000;
	const MINUTES_BY_FILE = 60;
	const PROGRESS_MS = 600; /* the page is drawn this often while it loads, */
	const PROGRESS_SHARE = 4; /* or less often, so that drawing takes a fourth of the time */
	const RETRY_MS = 3000;
	const MIN_SHOWN_MS = 60000; /* of the timeline, where the store is younger than the range */
	const VIEWS = { flame: "graph", table: "table", latency: "latency-table" }; /* what has the focus in each */
	const { byId, press } = controls;

	class App {
		constructor() {
			this.agent = new client.Client();
			this.client = fileSource.embedded() || this.agent;
			this.samples = new samples.Samples();
			this.state = { ...address.read(""), dragSets: "now", selected: null };
			this.fragment = ""; /* of the state that is shown */
			this.filesBy = "comm"; /* what stacks of files stand under, unless the user says */
			this.back = []; /* earlier zooms */
			this.status = {};
			this.listed = []; /* of the range, as the agent lists them */
			this.measured = null; /* what functions took, as the agent answered */
			this.bad = new Set(); /* paths that could not be read */
			this.lacking = new Set(); /* and those of which slices lack the samples */
			this.dropped = 0;
			this.mostMerged = Infinity; /* files of one answer; less once more were too large */
			this.limits = { ...LIMITS };
			this.floorMs = 0; /* profiles from before this time do not fit and are not loaded */
			this.generation = 0;
			this.refreshing = false; /* something is on its way */
			this.forgetting = null; /* while profiles are being forgotten: a promise that this ends */
			this.works = new Map(); /* name → work in slices that goes on */
			this.last = {}; /* name → sums that were made last */
			this.loading = true;
			this.away = "";
			this.fault = "";
			this.dark = matchMedia("(prefers-color-scheme: dark)");
			this.views();
		}

		views() {
			this.flame = new flame.Flame({
				scroller: byId("graph"), canvas: byId("flame"), spacer: byId("spacer"),
				events: {
					zoom: (node) => this.zoomTo(node),
					select: (node) => this.select(node),
					hover: () => this.showDetails(),
					point: (node, x, y) => this.showTip(this.tree, node, x, y),
					back: () => this.zoomTo(this.tree.parent(this.node)),
				},
			});
			this.timeline = new timeline.Timeline({
				box: byId("timeline"), canvas: byId("timeline-canvas"),
				events: { select: (range) => this.selectTime(range) },
			});
			this.table = new table.FunctionTable({
				box: byId("table"),
				events: { choose: (name) => this.findInGraph(name), around: (fn) => this.setFunction(fn) },
			});
			this.around = new around.AroundView({
				box: byId("around"),
				events: {
					choose: (fn) => this.setFunction(fn),
					hover: () => this.showDetails(),
					select: (shown, node, x, y) => this.tell(shown, node, x, y),
					point: (shown, node, x, y) => this.showTip(shown, node, x, y),
				},
			});
			this.tip = new tip.Tip(byId("tip"));
			this.latency = new latency.LatencyView({
				box: byId("latency-table"), canvas: byId("latency-canvas"), caption: byId("latency-caption"),
				events: { choose: (chosen) => this.chooseFunction(chosen) },
			});
		}

		/* ---- fetching -------------------------------------------------------------------- */

		range() {
			if (this.client.isFiles) {
				const { start, end } = samples.spans(this.client.profiles);
				return { from: start, to: end };
			}
			const to = this.state.live ? this.client.now() : this.state.heldAt;
			const from = this.state.minutes ? to - this.state.minutes * 60000 : 0;
			return { from, to };
		}

		/* Fetches what is new; a later call takes over from an earlier one. */
		async refresh() {
			const mine = ++this.generation;
			clearTimeout(this.timer);
			this.refreshing = true;
			await this.fetchAndShow(mine);
			if (mine === this.generation) this.refreshing = false;
		}

		async fetchAndShow(mine) {
			let pause = RETRY_MS;
			try {
				this.status = await this.client.status();
				if (this.client.isFiles) this.suitFiles(mine);
				const { from, to } = this.range();
				const { minutes } = this.state;
				const files = await this.client.list(from, to, !minutes || minutes > MINUTES_BY_FILE ? SLICES : 0);
				if (mine !== this.generation) return;
				await this.load(files, mine);
				await this.loadLatency(from, to);
				if (mine !== this.generation) return;
				this.away = "";
				this.loading = false;
				pause = this.pause();
			} catch (error) {
				if (mine !== this.generation) return;
				if (error instanceof client.Unauthorized) return void this.askToken(error.message === "wrong");
				this.away = error.message;
				this.loading = false;
			}
			this.update();
			await this.settled();
			if (mine !== this.generation) return;
			if (this.state.live && !this.client.isFiles && !document.hidden)
				this.timer = setTimeout(() => this.refresh(), pause);
		}

		/* Once the files are read: what fits their content. */
		suitFiles(mine) {
			if (mine !== this.generation || this.suited === this.client) return;
			this.suited = this.client;
			this.filesBy = this.client.hasLabel("comm") ? "comm" : "";
			if (this.client.hasBase()) this.state.diff = true;
		}

		/* What stacks stand under. Files are of no group. */
		by() {
			return this.client.isFiles && this.state.by === "group" ? this.filesBy : this.state.by;
		}

		/* Shows what SOURCE has instead of what was shown. */
		use(source) {
			this.client = source;
			Object.assign(this.state, structuredClone(address.INITIAL), { dragSets: "now" });
			byId("search").value = "";
			byId("f-code").value = "all";
			this.restart();
		}

		/* Loads all anew: from another source, or for another type of value. */
		restart() {
			clearTimeout(this.timer);
			Object.assign(this.state, { zoom: [], selected: null });
			this.samples = new samples.Samples(this.state.type);
			Object.assign(this, { back: [], listed: [], dropped: 0, floorMs: 0, loading: true, away: "", status: {} });
			this.bad.clear();
			this.lacking.clear();
			this.update();
			this.refresh();
		}

		openFiles(profiles) {
			const shown = this.client.isFiles && profiles[0].base
				? this.client.profiles.filter((p) => !p.base) : [];
			this.use(new fileSource.FileSource(shown.concat(profiles)));
		}

		setType(type) {
			this.state.type = type;
			this.restart();
		}

		/* Only while it is shown: it is as large as many profiles. */
		async loadLatency(from, to) {
			if (this.state.view === "latency") this.measured = await this.client.latency(from, to);
		}

		pause() {
			if (this.listed.some((f) => f.slice)) return SLICES_PAUSE_MS;
			const window = (this.status.window_seconds || 10) * 1000;
			return Math.min(Math.max(window, 2000), 30000);
		}

		async load(files, mine) {
			this.listed = this.bounded(files);
			await this.forget(mine);
			if (mine !== this.generation) return;
			const wanted = this.listed.filter((f) => !this.samples.files.has(f.path) && !this.bad.has(f.path));
			wanted.reverse(); /* the newest first */
			await this.loadEach(await this.loadMerged(wanted, mine), mine);
		}

		/* Loads files by few requests. Returns those that are to be loaded one by one. */
		async loadMerged(wanted, mine) {
			const inSlices = wanted.some((f) => f.slice);
			if (!this.client.merged || (wanted.length < 2 && !inSlices)) return wanted;
			const left = [];
			this.mostMerged = Infinity;
			for (const files of inSlices ? this.sliceRuns(wanted) : portions(wanted, MERGED_BYTES)) {
				if (mine !== this.generation) return [];
				left.push(...await this.loadPortion(files, mine));
				if (mine === this.generation && files.length < wanted.length) this.update();
			}
			return left;
		}

		/* Slices that follow each other: what is between two others is not asked for again. */
		sliceRuns(wanted) {
			const numbers = new Map(this.listed.map((f, i) => [f, i]));
			const runs = [];
			wanted.forEach((file, i) => {
				if (i && numbers.get(wanted[i - 1]) - numbers.get(file) === 1) runs[runs.length - 1].push(file);
				else runs.push([file]);
			});
			return runs.flatMap((files) => portions(files, SLICES_BYTES));
		}

		async loadPortion(wanted, mine) {
			let merged = null;
			const files = wanted.filter((f) => f.timeMs >= this.floorMs);
			if (files.length > this.mostMerged) return this.loadHalves(files, mine);
			if (!files.length) return [];
			try {
				merged = await this.client.merged(files);
			} catch (error) {
				if (!(error instanceof pprof.BadProfile)) throw error;
			}
			if (mine !== this.generation) return [];
			if (merged && merged.tooLarge) {
				this.mostMerged = Math.ceil(files.length / 2);
				return this.loadHalves(files, mine);
			}
			if (!merged) return files[0].slice ? [] : files;
			await this.addMerged(files, merged, mine);
			return [];
		}

		/* As many of FILES as there is room for; what is beyond the limits makes room for newer ones. */
		async addMerged(files, merged, mine) {
			const left = new Map(files.map((f) => [f.slice ? f.slice.path : f.path, f]));
			const isFull = () => this.isFull() || mine !== this.generation;
			for (;;) {
				for (const [path, file] of left) if (file.timeMs < this.floorMs) left.delete(path);
				if (!left.size) return;
				const { size } = left;
				const bad = await slices.run(this.samples.addingMerged(left, merged, isFull));
				if (mine !== this.generation) return;
				const known = new Set(files.map((f) => f.path));
				for (const path of bad) (known.has(path) ? this.bad : this.lacking).add(path);
				if (!this.isFull() || left.size === size) {
					/* Nothing of them could be read. */
					for (const file of left.values()) if (file.slice) this.bad.add(file.path);
					return;
				}
				await this.forget(mine);
				if (mine !== this.generation) return;
			}
		}

		async loadHalves(files, mine) {
			if (files.length < 2) {
				if (!files[0].slice) return files;
				this.bad.add(files[0].path);
				return [];
			}
			const half = Math.ceil(files.length / 2);
			return [...await this.loadPortion(files.slice(0, half), mine),
				...await this.loadPortion(files.slice(half), mine)];
		}

		async loadEach(wanted, mine) {
			let drawn = performance.now();
			let pause = PROGRESS_MS;
			let loaded = 0;
			await client.each(wanted, async (file) => {
				if (mine !== this.generation) return;
				await this.loadOne(file, mine);
				loaded++;
				const start = performance.now();
				if (mine !== this.generation || start - drawn < pause || loaded === wanted.length) return;
				drawn = Infinity; /* nobody else begins to draw */
				this.update();
				await this.settled();
				drawn = performance.now();
				pause = Math.max(PROGRESS_MS, PROGRESS_SHARE * (drawn - start));
			});
		}

		async loadOne(file, mine) {
			if (file.timeMs < this.floorMs) return;
			try {
				const profile = await this.client.profile(file);
				if (!profile || file.timeMs < this.floorMs) return;
				const isAdded = await slices.run(this.samples.adding(file, profile));
				if (mine !== this.generation) return;
				if (!isAdded) this.bad.add(file.path);
			} catch (error) {
				if (error instanceof client.Away || error instanceof client.Unauthorized) throw error;
				this.bad.add(file.path); /* broken gzip or a broken message; told in the notice */
			}
			if (this.isFull()) await this.forget(mine);
		}

		/* The newest files within the limits, oldest first. */
		bounded(files) {
			let bytes = 0;
			let first = files.length;
			const fits = (file, count) => file.timeMs >= this.floorMs && count < MAX_FILES &&
				(file.slice || bytes + file.bytes <= MAX_BYTES);
			while (first > 0 && fits(files[first - 1], files.length - first))
				bytes += files[--first].bytes;
			this.dropped = first;
			return files.slice(first);
		}

		isFull() {
			const { limits, samples: { stacks, sets } } = this;
			return stacks.items.length > limits.stacks || sets.items.length > limits.sets;
		}

		/*
		 * Keeps memory within the limits: first goes what is not shown, then the oldest of what is. Things have
		 * new numbers afterwards, so the page is made anew. MINE: the generation that asks; a newer one may
		 * show another range, for which its own limits count.
		 */
		async forget(mine) {
			while (this.forgetting) await this.forgetting.catch(() => {}); /* one at a time */
			if (mine !== this.generation) return;
			this.forgetting = this.forgetMuch(mine);
			try {
				await this.forgetting;
			} finally {
				this.forgetting = null;
			}
		}

		async forgetMuch(mine) {
			const listed = new Set(this.listed.map((f) => f.path));
			for (const path of this.bad) if (!listed.has(path)) this.bad.delete(path);
			if (this.isMuch(listed)) await this.keepOnly((file) => listed.has(file.path));
			while (mine === this.generation && this.isFull() && this.raiseFloor()) {
				const { floorMs } = this;
				await this.keepOnly((file) => file.timeMs >= floorMs);
			}
		}

		/* Whether there is more in memory than there should be beside the files that are LISTED. */
		isMuch(listed) {
			let shown = 0;
			let spare = 0;
			for (const file of this.samples.files.values())
				if (listed.has(file.path)) shown += file.size;
				else spare += file.size;
			return this.samples.files.size >= 2 * MAX_FILES || this.isFull() || spare > shown + this.limits.spare;
		}

		/* Forgets the files that KEEP is false for. */
		async keepOnly(keep) {
			const { samples: all } = this;
			while (this.samples === all) {
				const version = all.version();
				const left = await slices.run(all.forgetting(keep), () => this.samples === all && all.version() === version);
				/* The page is made anew in the same task, as running work still uses the old numbers. */
				if (left && this.samples === all && all.replace(left)) return this.update();
			}
		}

		/* Leaves the oldest quarter of the loaded files out, or a window. False: there is but one. */
		raiseFloor() {
			const times = [...this.samples.files.values()].map((f) => f.timeMs).sort((a, b) => a - b);
			let first = Math.ceil(times.length / 4);
			while (first < times.length && times[first] === times[0]) first++;
			if (first >= times.length) return false;
			this.floorMs = times[first];
			const fitting = this.listed.filter((f) => f.timeMs >= this.floorMs);
			this.dropped += this.listed.length - fitting.length;
			this.listed = fitting;
			return true;
		}

		askToken(wrong) {
			byId("token-wrong").hidden = !wrong;
			if (!byId("token-dialog").open) byId("token-dialog").showModal();
		}

		/* ---- from state to page ---------------------------------------------------------- */

		/* The loaded files that lie, by their middle, in RANGE. */
		within(files, range) {
			const middle = (f) => f.timeMs + f.durationMs / 2;
			return range ? files.filter((f) => middle(f) >= range[0] && middle(f) < range[1]) : files;
		}

		/* What is compared, where the user did not say: the newer half with the older one. */
		ranges(files) {
			const { now, base, diff } = this.state;
			if (!diff || this.client.isFiles) return { now, base: null };
			const span = samples.spans(files);
			const middle = (span.start + span.end) / 2;
			if (now) return { now, base: base || [span.start, now[0]] };
			if (base) return { now: [base[1], span.end], base };
			return { now: [middle, span.end], base: [span.start, middle] };
		}

		/*
		 * Whatever goes wrong in here is told, and the next answer of the agent is another try. What
		 * is shown stays until all of the new is there, which may be tasks later: settled().
		 */
		update() {
			try {
				this.begin("update", this.compute(), (made) => {
					Object.assign(this, made);
					this.show();
					this.remember();
					this.fault = "";
				});
				if (this.works.has("update")) this.showButtons(); /* what was pressed shows at once */
			} catch (error) {
				this.fail(error);
			}
		}

		/* Does WORK in slices and calls SHOW with its value, unless other work of that NAME was begun. */
		begin(name, work, show) {
			const end = (value) => {
				if (this.works.get(name) !== work) return;
				this.ended(name, work);
				show(value);
			};
			const fail = (error) => {
				this.ended(name, work);
				this.fail(error);
			};
			this.works.set(name, work);
			try {
				const value = slices.run(work, () => this.works.get(name) === work);
				if (!value || !value.then) return void end(value); /* all in this task */
				byId("stage").setAttribute("aria-busy", "true");
				value.then(end).catch(fail);
			} catch (error) {
				fail(error);
			}
		}

		ended(name, work) {
			if (this.works.get(name) === work) this.works.delete(name);
			if (!this.works.size) byId("stage").setAttribute("aria-busy", "false");
		}

		/* Whether all that was asked for is shown. */
		async settled() {
			while (this.works.size) await slices.pause();
		}

		fail(error) {
			console.error(error);
			this.fault = format.clean(String(error && error.message || error));
			this.showNotice();
		}

		/* What the page shows of the state: members of this object. */
		*compute() {
			const { filter, inverted, unnamed } = this.state;
			const files = this.listed.map((f) => this.samples.files.get(f.path)).filter(Boolean);
			const shown = this.ranges(files);
			const { nowFiles, baseline } = this.sides(files, shown);
			const { covered } = samples.spans(nowFiles);
			const scale = this.state.diff ? this.scaleOf(baseline, covered) : 0;
			const { facets, rows } = yield* this.summed(files,
				{ files: nowFiles, baseline, filter, by: this.by(), merge: unnamed === "module" });
			const made = yield* tree.Tree.making(rows, this.samples.frames.items, { inverted, scale });
			return { files, shown, nowFiles, covered, scale, facets, rows, tree: made, used: made.used(), epoch: this.samples.epoch };
		}

		/* Sums of the samples in FILES: the choices of the filters, and the rows of QUESTION's tree. */
		*summed(files, question) {
			const { samples: all } = this;
			const { files: now, baseline, ...rest } = question;
			const facets = yield* this.kept("facets", [files], question.filter, all.finding(files, question.filter));
			const rows = yield* this.kept("rows", [now, baseline], rest, all.collecting(question));
			return { facets, rows };
		}

		/*
		 * The value of WORK on LISTS of files for a QUESTION, or that of the last such work if it was on the
		 * same: only the tree is inverted, say, or the baseline changes while the files stay.
		 */
		*kept(name, lists, question, work) {
			const { samples: all } = this;
			const { epoch } = all;
			const key = JSON.stringify(question);
			const last = this.last[name];
			const isSame = (list, i) => list.length === last.lists[i].length && list.every((f, k) => f === last.lists[i][k]);
			if (last && last.all === all && last.epoch === epoch && last.key === key && lists.every(isSame)) return last.value;
			const value = yield* work;
			this.last[name] = { all, epoch, key, lists, value };
			return value;
		}

		/* Splits FILES into those that are shown and the baseline. */
		sides(files, shown) {
			if (this.client.isFiles) {
				const baseline = this.state.diff ? files.filter((f) => f.base) : [];
				return { nowFiles: files.filter((f) => !f.base), baseline };
			}
			return { nowFiles: this.within(files, shown.now),
				baseline: shown.base ? this.within(files, shown.base) : [] };
		}

		/*
		 * What to multiply the values of BASELINE with. What adds up over time is compared as of
		 * the same time; what does not (memory in use), or has no known time, as it is.
		 */
		scaleOf(baseline, covered) {
			if (!baseline.length) return 0;
			const baseCovered = samples.spans(baseline).covered;
			if (this.inTime() && baseCovered && covered) return covered / baseCovered;
			return this.client.isFiles ? 1 : 0;
		}

		inTime() {
			return !this.samples.type || this.samples.type.unit === "nanoseconds";
		}

		show() {
			this.showTimes();
			this.showFilters();
			this.showButtons();
			this.showNotice();
			this.showStage();
		}

		showTimes() {
			const { facets, files, shown, state } = this;
			const { from, to } = this.range();
			const oldest = Math.min(to - MIN_SHOWN_MS, samples.spans(files).start || to);
			const sumOf = (f) => {
				if (f.sum === undefined) f.sum = f.values.reduce((a, b) => a + b, 0);
				return f.sum;
			};
			const odd = samples.oddities(files);
			controls.odd(byId("odd"), odd);
			this.timeline.show({
				from: Math.max(from, oldest), to, files, total: sumOf,
				odd, part: (f) => facets.perFile.get(f.path) || 0, cores: this.inCores(),
				selection: shown.now, baseline: state.diff ? shown.base : null,
			});
			byId("range-text").textContent = this.files.length ? this.rangeText(to) : "";
		}

		/* Whether values are CPU time, so that they can be told in cores. */
		inCores() {
			const { type } = this.samples;
			return !type || (type.unit === "nanoseconds" && type.type === "cpu");
		}

		rangeText(now) {
			const span = samples.spans(this.nowFiles);
			const value = this.tree.value(0);
			const parts = span.start ? [format.times(span.start, span.end, now)] : [];
			parts.push(format.value(value, this.samples.type) + (this.inCores() ? " CPU" : ""));
			if (this.inCores() && this.covered)
				parts.push((value / 1e6 / this.covered).toFixed(2) + " cores");
			if (this.scale && this.shown.base)
				parts.push("compared with " + format.times(...this.shown.base, now));
			return parts.join("  ·  ");
		}

		showFilters() {
			const { filter } = this.state;
			for (const field of samples.FIELDS)
				controls.fillSelect(byId("f-" + field), this.facets.choices[field], filter[field]);
			byId("f-code").value = filter.code;
			byId("f-code").classList.toggle("set", filter.code !== "all");
			controls.fillGroups(byId("by"), this.samples.labelKeys(), this.by());
			byId("unnamed").value = this.state.unnamed;
			const set = this.filtersSet();
			byId("reset").hidden = !set;
			byId("filter-count").textContent = set ? `(${set} set)` : "";
		}

		filtersSet() {
			const { filter } = this.state;
			return samples.FIELDS.filter((f) => filter[f]).length + (filter.code !== "all" ? 1 : 0);
		}

		showButtons() {
			const { state } = this;
			for (const button of byId("ranges").children)
				press(button, Number(button.dataset.minutes) === state.minutes);
			for (const button of byId("drag-sets").children)
				press(button, button.dataset.sets === state.dragSets);
			press(byId("live"), state.live);
			press(byId("view-flame"), state.view === "flame");
			press(byId("view-table"), state.view === "table");
			press(byId("view-function"), state.view === "function");
			press(byId("view-latency"), state.view === "latency");
			byId("view-latency").hidden = state.view !== "latency" && !this.hasProbes();
			press(byId("inverted"), state.inverted);
			press(byId("diff"), state.diff);
			byId("drag-sets").hidden = !state.diff || Boolean(this.client.isFiles);
			document.documentElement.classList.toggle("files", Boolean(this.client.isFiles));
			byId("close-files").hidden = !this.client.isFiles || this.agent.isAbsent;
			controls.typeChoice(byId("f-type"), this.samples.types, this.samples.type);
			byId("clear-range").hidden = !state.now && !state.base;
			byId("live-text").textContent = !state.live ? "Held" : this.away ? "Away" : "Live";
			byId("live").classList.toggle("away", Boolean(this.away));
			byId("node").textContent = format.clean(this.status.node || "");
			byId("status").textContent = controls.statusText(this.status);
			if (this.status.node) document.title = format.clean(this.status.node) + " – fathom";
			byId("download").disabled = !this.rows.length;
		}

		showNotice() {
			const texts = [];
			if (this.fault)
				texts.push(`This page could not show the response: ${this.fault}. Choose another range, or reload.`);
			if (this.away)
				texts.push(`The agent does not respond (${this.away}). The data shown is older; trying again.`);
			if (this.status.trouble)
				texts.push(`The agent is ${format.clean(this.status.trouble)}.`);
			if (this.dropped)
				texts.push(`The newest ${this.listed.length.toLocaleString("en")} profiles are shown, ` +
					`${this.dropped.toLocaleString("en")} older ones are not: choose a shorter range.`);
			const bad = this.listed.map((f) => f.path).filter((path) => this.bad.has(path));
			if (this.listed.some((f) => f.slice)) bad.push(...this.lacking);
			if (this.client.isFiles) texts.push(...[this.client.trouble()].filter(Boolean));
			if (bad.length && !(this.client.isFiles && this.client.trouble()))
				texts.push(`${bad.length} stored ${bad.length > 1 ? "profiles" : "profile"} could not be read ` +
					`or have other sample types, the first one is ${format.clean(bad[0])}.`);
			if (this.state.diff && !this.scale && this.rows.length && !this.client.isFiles)
				texts.push("There is no baseline: select one by dragging over an earlier part of the timeline.");
			const text = texts.join(" ");
			const box = byId("notice");
			box.hidden = !text;
			box.classList.toggle("bad", Boolean(this.away || this.fault));
			if (box.textContent !== text) box.textContent = text; /* it is read out when it changes */
		}

		showStage() {
			const { state } = this;
			this.tip.hide();
			const none = !this.rows.length && state.view !== "latency";
			byId("empty").hidden = !none;
			byId("graph").hidden = state.view !== "flame";
			byId("table").hidden = state.view !== "table";
			byId("around").hidden = state.view !== "function";
			byId("latency").hidden = state.view !== "latency";
			byId("crumbs").hidden = state.view === "function";
			if (none) {
				const texts = controls.emptyText({
					status: this.status, loading: this.loading, listed: this.listed.length,
					selected: state.now || state.base, filtered: this.listed.length && this.filtersSet(),
				});
				const [title, text] = this.away && !this.listed.length
					? ["The agent does not respond", "Is fathom agent running? This page keeps trying."] : texts;
				byId("empty-title").textContent = title;
				byId("empty-text").textContent = text;
			}
			this.find();
			this.node = this.tree.find(state.zoom);
			const selected = state.selected ? this.tree.find(state.selected) : -1;
			this.flame.show(this.tree,
				{ zoom: this.node, selected, flags: this.flags, diff: Boolean(this.scale) });
			controls.crumbs(byId("crumbs"), this.tree, this.node, (node) => this.zoomTo(node));
			this.showMatched();
			this.showLegend();
			if (state.view === "table") this.showTable();
			if (state.view === "function") this.showFunction();
			if (state.view === "latency") this.showLatency();
			this.showDetails();
		}

		/* Flags the frames that the search finds; a bad expression finds none, and is told. */
		find() {
			const { search, regex } = this.state;
			this.searchFault = "";
			this.flags = null;
			try {
				if (search) this.flags = tree.search(this.tree.frames, search, regex);
			} catch (error) {
				this.searchFault = error.message;
			}
			byId("search").setAttribute("aria-invalid", String(Boolean(this.searchFault)));
			press(byId("regex"), regex);
		}

		showMatched() {
			const whole = this.tree.value(this.node);
			byId("matched").textContent = this.searchFault || (this.flags
				? format.percent(this.tree.matched(this.node, this.flags), whole) + " matched" : "");
		}

		showLegend() {
			controls.legend(byId("legend"), { dark: this.dark.matches, diff: Boolean(this.scale),
				kinds: new Set(this.used.map((frame) => frame.kind)),
				inlined: this.used.some((frame) => frame.inlined) });
		}

		showTable() {
			const { frames } = this.tree;
			const { scale, flags } = this;
			const whole = this.tree.value(this.node);
			this.begin("table", tree.summing(this.tree.rowsOf(this.node), frames), (entries) =>
				this.table.show({ entries, frames, whole, type: this.samples.type, scale, flags }));
		}

		/* All its callers: what the graph is zoomed to does not count here. */
		showFunction() {
			const { scale, flags } = this;
			const whole = this.tree.value(tree.ROOT);
			this.begin("function", this.makeFunction(), (made) => {
				if (!made) return;
				this.around.show(made, { fn: this.state.fn, whole, type: this.samples.type, scale, flags });
				this.showDetails();
				this.remember();
			});
		}

		*makeFunction() {
			const { frames, rows } = this.tree;
			if (!this.state.fn) this.state.fn = yield* heaviest(rows, frames);
			const { fn } = this.state;
			return fn && (yield* this.around.making({ rows, frames, fn, scale: this.scale }));
		}

		hasProbes() {
			return Boolean(this.status.probes && this.status.probes.length);
		}

		showLatency() {
			const { from, to } = this.range();
			const windows = this.measured ? this.measured.windows : [];
			const oldest = windows.length ? windows[0].time_ms : to;
			this.latency.show({
				answer: this.measured, from: Math.max(from, Math.min(oldest, to - MIN_SHOWN_MS)), to,
				range: this.state.now, chosen: this.state.measured,
			});
		}

		showDetails() {
			const spot = this.spot();
			if (spot) controls.details(...spot, this.samples.type, this.status);
			else controls.noDetails();
		}

		showTip(shown, node, x, y) {
			if (node < 0 || !this.rows.length) this.tip.hide();
			else this.tip.show(controls.facts(shown, node, this.samples.type, this.status), x, y);
		}

		/* ---- what the user does ---------------------------------------------------------- */

		zoomTo(node) {
			if (node < 0 || !this.tree) return;
			const path = this.tree.pathTo(node);
			if (node !== this.node) this.back.push(this.state.zoom);
			this.setZoom(path);
			this.announce("zoomed to " + controls.spoken(this.tree, this.node));
		}

		setZoom(path) {
			this.state.zoom = path;
			this.state.selected = path;
			this.flame.scroller.scrollTop = 0;
			this.showStage();
			this.remember();
		}

		select(node) {
			this.state.selected = this.tree.pathTo(node);
			this.tell(this.tree, node, ...this.flame.cornerOf(node));
		}

		/* The facts of a node that the keyboard came to, which is at X and Y. */
		tell(shown, node, x, y) {
			this.showDetails();
			this.showTip(shown, node, x, y);
			this.announce(controls.spoken(shown, node));
		}

		announce(text) {
			byId("announce").textContent = text;
		}

		/* One step back: out of the search, then out of the zoom. */
		escape() {
			this.tip.hide();
			if (this.state.search) this.search("");
			else if (this.back.length) this.setZoom(this.back.pop());
			else if (this.state.zoom.length) this.setZoom([]);
			else if (this.state.view !== "flame") this.setView("flame");
		}

		search(text) {
			this.state.search = text.trim();
			if (byId("search").value.trim() !== this.state.search) byId("search").value = text;
			this.showStage();
			this.remember();
		}

		setRegex(regex) {
			this.state.regex = regex;
			this.search(byId("search").value);
		}

		findInGraph(name) {
			Object.assign(this.state, { view: "flame", regex: false });
			this.search(name.slice(0, 200));
			this.showButtons();
			byId("graph").focus();
		}

		/* New values in the state; another shape of the tree has no use for the zoom. */
		change(values) {
			const shape = ["by", "inverted", "unnamed"].some((key) => key in values);
			if (shape || values.filter) {
				Object.assign(this.state, { zoom: [], selected: null });
				this.back = [];
			}
			Object.assign(this.state, values);
			this.update();
		}

		setView(view) {
			this.state.view = view;
			this.showButtons();
			this.showStage();
			this.remember();
		}

		/* The keyboard stays at the function it was at, in the graph and in the table. */
		toggleTable() {
			const toTable = this.state.view === "flame";
			const inside = byId("stage").contains(document.activeElement);
			const frame = this.frameAt();
			this.setView(toTable ? "table" : "flame");
			if (!inside) return;
			if (toTable) this.settled().then(() => this.table.focus(frame));
			else byId("graph").focus();
		}

		setFunction({ name, module }) {
			this.state.fn = { name, module };
			this.setView("function");
			this.announce("callers and callees of " + format.clean(name));
			if (!byId("around").contains(document.activeElement)) this.around.focus();
		}

		toggleFunction() {
			const frame = this.frameAt();
			if (this.state.view === "function") this.setView("flame");
			else if (frame && frame.kind !== samples.KINDS.label) return void this.setFunction(frame);
			else this.setView("function");
			(this.state.view === "function" ? this.around : byId("graph")).focus();
		}

		/* What is shown now may be old, or of another range. */
		setLatency() {
			this.setView("latency");
			this.refresh();
		}

		chooseFunction({ probe, function: name, binary }) {
			this.state.measured = { probe, function: name, binary };
			this.showLatency();
			this.remember();
		}

		setFilter(field, value) {
			this.change({ filter: { ...this.state.filter, [field]: value } });
		}

		resetFilters() {
			document.activeElement.blur();
			this.change({ filter: { ...address.INITIAL.filter } });
		}

		setMinutes(minutes) {
			this.floorMs = 0;
			this.change({ minutes, now: null, base: null });
			this.refresh();
		}

		setLive(live) {
			if (this.client.isFiles) return;
			this.change({ live, heldAt: live ? 0 : this.range().to });
			if (live) this.refresh();
			else clearTimeout(this.timer);
		}

		selectTime(range) {
			const chosen = range ? this.within(this.files, range) : [];
			const span = samples.spans(chosen);
			const snapped = chosen.length ? [span.start, span.end] : null;
			if (range && !snapped) this.announce("nothing was stored in that time");
			if (range && !snapped) return void this.update();
			const key = this.state.diff ? this.state.dragSets : "now";
			this.change({ [key]: snapped });
			if (this.state.diff && snapped && key === "base") this.change({ dragSets: "now" });
			if (snapped) this.announce("selected " + byId("range-text").textContent);
		}

		/* ---- the address and the clipboard ----------------------------------------------- */

		/* Brings the state into the page's address, as a step that Back undoes. */
		remember() {
			const fragment = address.write(this.state);
			if (fragment === this.fragment) return;
			const step = address.isStep(this.fragment, fragment) ? "pushState" : "replaceState";
			this.fragment = fragment;
			try {
				history[step](null, "", "#" + fragment);
			} catch (error) {
				/* Browsers limit how often, and the state is whole without it. */
			}
		}

		/* Shows what the page's address says. */
		visit() {
			const { state } = this;
			const before = [state.minutes, state.live, state.heldAt].join();
			Object.assign(state, address.read(location.hash.slice(1)), { selected: null });
			this.fragment = address.write(state);
			this.back = [];
			byId("search").value = state.search;
			if (state.type !== this.samples.wanted) this.samples = new samples.Samples(state.type);
			if (before !== [state.minutes, state.live, state.heldAt].join()) this.floorMs = 0;
			this.update();
			this.refresh();
		}

		/* The link shows the same time to whoever opens it, also when this page follows the present. */
		copyLink() {
			const fixed = this.client.isFiles ? this.state
				: { ...this.state, live: false, heldAt: this.range().to };
			this.copy("copy-link", share.link(address.write(fixed)), "link");
		}

		/* The tree and the node whose facts are shown; null without one. */
		spot() {
			const { hovered, selected } = this.flame;
			if (!this.tree || !this.rows.length) return null;
			if (this.state.view === "function") return this.around.at();
			return [this.tree, hovered >= 0 ? hovered : selected >= 0 ? selected : this.node];
		}

		/* Its frame; null without one. */
		frameAt() {
			const spot = this.spot();
			return spot && spot[0].frameOf(spot[1]);
		}

		copyName() {
			const frame = this.frameAt();
			if (frame) this.copy("copy-name", frame.name, "name");
		}

		copyStack() {
			if (this.frameAt()) this.copy("copy-stack", share.stack(...this.spot()), "stack");
		}

		async copy(button, text, what) {
			const done = await share.copy(text);
			this.announce(done ? what + " copied" : "the browser does not allow copying");
			controls.flash(byId(button), done ? "Copied" : "Not allowed");
		}

		async download() {
			await this.settled(); /* numbers of rows are of the tree that is shown */
			const { filter } = this.state;
			const by = this.by();
			const keep = this.node ? this.tree.rowsOf(this.node) : null;
			const { samples: all, nowFiles: files } = this;
			const { epoch } = all;
			if (this.epoch !== epoch) return undefined; /* what is shown could not be made anew */
			const profile = await slices.run(all.choosing({ files, filter, by, keep }), () => all.epoch === epoch);
			if (!profile) return this.download(); /* stacks got new numbers meanwhile */
			const bytes = await pprof.encode(profile);
			const start = new Date(samples.spans(this.nowFiles).start).toISOString();
			const link = document.createElement("a");
			link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
			link.download = `fathom-${start.replace(/[-:]|\.\d+/g, "")}.pb.gz`;
			link.click();
			setTimeout(() => URL.revokeObjectURL(link.href), 60000);
		}

		/* ---- events ---------------------------------------------------------------------- */

		listen() {
			const click = (id, work) => byId(id).addEventListener("click", work);
			for (const button of byId("ranges").children)
				button.addEventListener("click", () => this.setMinutes(Number(button.dataset.minutes)));
			for (const button of byId("drag-sets").children)
				button.addEventListener("click", () => this.change({ dragSets: button.dataset.sets }));
			for (const field of samples.FIELDS.concat("code")) {
				const select = byId("f-" + field);
				select.addEventListener("change", () => this.setFilter(field, select.value));
				select.addEventListener("blur", () => setTimeout(() => this.update()));
			}
			byId("by").addEventListener("change", () => this.change({ by: byId("by").value }));
			byId("unnamed").addEventListener("change", () => this.change({ unnamed: byId("unnamed").value }));
			byId("search").addEventListener("input", () => this.search(byId("search").value));
			click("reset", () => this.resetFilters());
			click("live", () => this.setLive(!this.state.live));
			click("clear-range", () => this.change({ now: null, base: null }));
			click("view-flame", () => this.setView("flame"));
			click("view-table", () => this.setView("table"));
			click("view-function", () => this.setView("function"));
			click("to-function", () => this.frameAt() && this.setFunction(this.frameAt()));
			click("view-latency", () => this.setLatency());
			click("inverted", () => this.change({ inverted: !this.state.inverted }));
			click("diff", () => this.toggleDiff());
			click("download", () => this.download());
			click("regex", () => this.setRegex(!this.state.regex));
			byId("graph").addEventListener("focusout", () => this.tip.hide());
			byId("graph").addEventListener("scroll", () => {
				if (this.tip.shown) this.showTip(this.tree, this.flame.selected, ...this.flame.cornerOf(this.flame.selected));
			});
			click("copy-link", () => this.copyLink());
			click("copy-name", () => this.copyName());
			click("copy-stack", () => this.copyStack());
			click("help", () => this.openHelp());
			click("help-close", () => byId("help-dialog").close());
			byId("token-form").addEventListener("submit", (e) => this.useToken(e));
			byId("token-dialog").addEventListener("cancel", (e) => e.preventDefault());
			document.addEventListener("keydown", (e) => this.key(e));
			document.querySelector(".skip").addEventListener("click", (e) => {
				e.preventDefault(); /* the fragment is the state's */
				if (this.state.view === "function") this.around.focus();
				else byId(VIEWS[this.state.view]).focus();
			});
			window.addEventListener("popstate", () => this.visit());
			document.addEventListener("visibilitychange", () => {
				if (!document.hidden && this.state.live && !this.client.isFiles) this.refresh();
			});
			fileSource.listen(byId("file"), (profiles) => this.openFiles(profiles));
			click("open", () => this.chooseFile(false));
			click("close-files", () => this.use(this.agent));
			byId("f-type").addEventListener("change", () => this.setType(byId("f-type").value));
			this.dark.addEventListener("change", () => this.theme());
			window.addEventListener("error", (e) => this.fail(e.error || e.message));
			window.addEventListener("unhandledrejection", (e) => this.fail(e.reason));
		}

		toggleDiff() {
			if (this.client.isFiles && !this.client.hasBase()) return void this.chooseFile(true);
			const diff = !this.state.diff;
			this.change({ diff, base: null, dragSets: diff && this.state.now ? "base" : "now" });
		}

		/* BASE: as the baseline of what is shown. */
		chooseFile(base) {
			byId("file").dataset.base = base ? "1" : "";
			byId("file").click();
		}

		useToken(event) {
			event.preventDefault();
			this.client.token = byId("token").value;
			byId("token").value = "";
			byId("token-dialog").close();
			this.refresh();
		}

		theme() {
			this.flame.setTheme(this.dark.matches);
			this.around.setTheme(this.dark.matches);
			if (!this.tree) return; /* nothing is shown yet */
			this.timeline.draw();
			this.latency.draw();
			this.showLegend();
		}

		key(event) {
			if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
			const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
			if (event.key === "Escape") {
				if (typing) byId("graph").focus();
				this.escape();
			} else if (typing) {
				if (event.key === "Enter" && event.target === byId("search")) byId("graph").focus();
				return;
			} else if (!this.shortcut(event.key)) {
				return;
			}
			event.preventDefault();
		}

		openHelp() {
			byId("help-dialog").showModal();
			byId("help-title").focus(); /* its button is at the end, which a small screen would begin with */
		}

		shortcut(key) {
			const actions = {
				"/": () => byId("search").select(),
				"?": () => this.openHelp(),
				x: () => this.setRegex(!this.state.regex),
				i: () => this.change({ inverted: !this.state.inverted }),
				t: () => this.toggleTable(),
				f: () => this.toggleFunction(),
				h: () => (this.state.view === "latency" ? this.setView("flame") : this.hasProbes() && this.setLatency()),
				d: () => this.toggleDiff(),
				l: () => this.setLive(!this.state.live),
				o: () => this.chooseFile(false),
				r: () => this.resetFilters(),
				s: () => byId("download").click(),
				c: () => this.copyName(),
				C: () => this.copyStack(),
				u: () => this.copyLink(),
			};
			if (!Object.hasOwn(actions, key)) return false;
			actions[key]();
			return true;
		}

		async start() {
			this.agent.isAbsent = this.client !== this.agent;
			this.listen();
			this.theme();
			const narrow = matchMedia("(max-width: 640px)");
			const fold = () => { byId("filters").open = !narrow.matches; };
			narrow.addEventListener("change", fold);
			fold();
			Object.assign(this.state, address.read(location.hash.slice(1))); /* keys may come before visit() */
			this.fragment = address.write(this.state);
			Object.assign(this, slices.finish(this.compute())); /* nothing yet */
			await slices.pause(); /* so that reading the page and laying it out are tasks of their own */
			this.visit();
		}
	}

	/* The function with the most time of its own; null without one. */
	function* heaviest(rows, frames) {
		const entries = yield* tree.summing(rows, frames);
		const first = entries.reduce((a, b) => (a && a.self >= b.self ? a : b), null);
		return first && { name: frames[first.frame].name, module: frames[first.frame].module };
	}

	/* Splits FILES, in order, into lists of at most BYTES. */
	function portions(files, bytes) {
		const lists = [];
		let left = 0;
		for (const file of files) {
			if (!lists.length || file.bytes > left) {
				lists.push([]);
				left = bytes;
			}
			lists[lists.length - 1].push(file);
			left -= file.bytes;
		}
		return lists;
	}

	const page = new App();
	page.start();
	return page;
})();
