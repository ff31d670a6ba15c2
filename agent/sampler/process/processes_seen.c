/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares what stack walks saw mapped, where the kernel's own mappings can be read, with what the
 * records said. No record reports mremap() and munmap(), or what another process does to memory
 * that it shares with this one (CLONE_VM). If the two differ, /proc tells which file it is: a
 * mapping that it shows as well was true at the time of the sample and still is. The other mappings
 * stay unchanged, because /proc is later than the sample.
 *
 * Reading /proc costs more than a sample. A process that keeps changing its mappings like this is
 * read again only after a while; until then the differing ranges are unknown code.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/process/table.h"
#include "base/cleanup.h"

static const uint64_t reread_interval_ns = UINT64_C(100) * 1000 * 1000;

enum { HIDDEN_LIMIT = 16 };

/*
 * Sightings whose mappings were taken out, to be looked up again. Over the limit the oldest are
 * dropped.
 */
struct hidden {
	size_t count;
	struct sighting of[HIDDEN_LIMIT];
};

enum agreement {
	AGREES,
	OTHER_FILE, /* other device and inode, or written to since; the same offset */
	OTHER_PLACE,
};

static enum agreement agreement_of(const struct mapping *m, const struct seen_mapping *seen)
{
	struct mapping same_file;

	if (!m)
		return OTHER_PLACE;
	if (mapping_is_seen(m, seen))
		return AGREES;
	/* Memory without a file has no device and inode that could differ. */
	if (!m->file.inode || !seen->file.inode)
		return OTHER_PLACE;
	same_file = *m;
	same_file.file = seen->file;
	return mapping_is_seen(&same_file, seen) ? OTHER_FILE : OTHER_PLACE;
}

/* Whether a sighting at TIME_NS can be news of P. */
static bool is_news(const struct process *p, uint64_t time_ns)
{
	if (!process_is_settled(p) || p->kernel_thread || p->synced_ns >= time_ns)
		return false;
	/* During an exec the kernel maps the program before it reports that. */
	return !p->by_exec || p->executable;
}

static bool is_right(const struct process *p, const struct sighting *s)
{
	enum agreement agreement = agreement_of(mappings_find(p->mappings, s->pc), &s->seen);

	return agreement == AGREES || (agreement == OTHER_FILE && p->numbers_differ);
}

static void processes_seen_put(
	struct processes *ps, struct process *p, const struct mapping *mapping)
{
	if (mappings_add(&p->mappings, mapping))
		metrics_add(ps->options.metrics, METRIC_MAPPINGS_REFUSED, 1);
}

static void remember_hidden(struct process *p, const struct sighting *s)
{
	struct hidden *h = p->hidden ? p->hidden : calloc(1, sizeof(*h));

	p->hidden = h;
	if (!h)
		return;
	if (h->count == HIDDEN_LIMIT)
		memmove(h->of, h->of + 1, --h->count * sizeof(*h->of));
	h->of[h->count++] = *s;
}

/* Makes the range of S unknown code: no name is better than a wrong one. */
static void hide(struct processes *ps, struct process *p, const struct sighting *s)
{
	const struct mapping hidden = { .start = s->seen.start,
		.end = s->seen.end,
		.file_off = s->seen.start,
		.module = ps->unknown };

	processes_seen_put(ps, p, &hidden);
	remember_hidden(p, s);
}

/*
 * The mapping that /proc shows at S's pc, if it agrees with S. NULL if it has changed since, or the
 * process is gone.
 */
static const struct mapping *find_shown(
	struct process *p, const struct shown *shown, const struct sighting *s)
{
	const struct mapping *m = shown ? mappings_find(shown->mappings, s->pc) : NULL;
	const struct mapping *reported = mappings_find(p->mappings, s->pc);

	switch (agreement_of(m, &s->seen)) {
	case AGREES:
		return m;
	case OTHER_FILE:
		break;
	case OTHER_PLACE:
		return NULL;
	}
	/* /proc agrees with the records: some file systems show other numbers in both. */
	if (!reported || reported->file.device != m->file.device ||
		reported->file.inode != m->file.inode ||
		agreement_of(reported, &s->seen) != OTHER_FILE)
		return NULL;
	p->numbers_differ = true;
	return m;
}

static struct shown *read_shown(struct processes *ps, struct process *p, uint64_t time_ns)
{
	struct shown *shown;

	p->reread_ns = time_ns;
	file_ids_renew(ps->files);
	if (table_read(ps, p->pid, &shown))
		return NULL;
	if (table_is_same_process(p, &shown->stat) && !shown->unreadable)
		return shown;
	table_shown_free(shown);
	return NULL;
}

static void correct(struct processes *ps, struct process *p, uint64_t time_ns,
	const struct sighting *of, size_t count)
{
	bool may_read = !p->reread_ns || time_ns > p->reread_ns + reread_interval_ns;
	struct shown *shown = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct mapping *m;

		if (is_right(p, &of[i]))
			continue;
		metrics_add(ps->options.metrics, METRIC_MAPPINGS_CORRECTED, 1);
		if (may_read)
			shown = read_shown(ps, p, time_ns);
		may_read = false;
		m = find_shown(p, shown, &of[i]);
		if (m)
			processes_seen_put(ps, p, m);
		else
			hide(ps, p, &of[i]);
	}
	if (shown)
		table_shown_free(shown);
}

void processes_seen(struct processes *ps, uint64_t time_ns, uint32_t pid, const struct sighting *of,
	size_t count)
{
	struct process *p;

	/*
	 * BPF reports a sighting only once, so what /proc showed before is applied first: a process
	 * that still waits for it is not settled, and its sightings are ignored.
	 */
	table_catch_up(ps, pid, time_ns, NULL);
	p = table_live(ps, pid);
	if (p && is_news(p, time_ns))
		correct(ps, p, time_ns, of, count);
}

void table_show_hidden(struct processes *ps, struct process *p, uint64_t time_ns)
{
	autofree struct hidden *hidden = NULL;

	if (!is_news(p, time_ns) || time_ns <= p->reread_ns + reread_interval_ns)
		return;
	hidden = take(p->hidden);
	correct(ps, p, time_ns, hidden->of, hidden->count);
}
