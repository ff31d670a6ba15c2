/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching and detaching by processes of their own: nothing here waits. */
#include <errno.h>

#include "agent/sampler/probed_files/probed_files_internal.h"
#include "base/cleanup.h"

/* ---- attaching ------------------------------------------------------------------------------ */

static void background_begin(struct probed_files *files, struct probed_entry *entry)
{
	int err = latency_attach_begin(files->options.latency, entry->fd, entry->sites.items,
		entry->sites.count, &entry->attaching);

	/* Too many at once: probed_files_tend() tries again. */
	if (err && err != -EAGAIN)
		probed_attach_finish(files, entry, err);
}

void probed_background_attach(struct probed_files *files, struct probed_entry *entry)
{
	entry->state = PROBED_FILE_ATTACHING;
	background_begin(files, entry);
}

static void background_continue(struct probed_files *files, struct probed_entry *entry)
{
	int err;

	if (!entry->attaching) {
		background_begin(files, entry);
		return;
	}
	err = latency_attach_end(entry->attaching, &entry->attached, &entry->step);
	if (err == -EAGAIN)
		return;
	entry->cancelled = true;
	probed_attach_finish(files, entry, err);
}

/* ---- detaching ------------------------------------------------------------------------------ */

/* ENTRY's functions count no more. */
static void background_end_functions(struct probed_files *files, const struct probed_entry *entry)
{
	for (size_t i = entry->first_function; i < entry->function_end; i++)
		if (files->functions[i].numbered)
			latency_functions_end(
				files->options.latency, &files->functions[i].probe, 1);
}

static void background_cancel(struct probed_entry *entry)
{
	if (entry->attaching && !entry->cancelled)
		latency_attach_cancel(entry->attaching);
	entry->cancelled = true;
}

void probed_background_detach(struct probed_files *files, struct probed_entry *entry)
{
	background_end_functions(files, entry);
	background_cancel(entry);
	probed_sites_deinit(&entry->sites);
	if (entry->state == PROBED_FILE_ATTACHING || entry->state == PROBED_FILE_WAITING)
		entry->state = PROBED_FILE_ENDED;
	if (entry->attached)
		latency_detach_begin(
			files->options.latency, &entry->attached, 1, &entry->detaching);
	entry->attached = NULL;
	entry->site_count = 0;
}

void probed_background_abandon(struct probed_files *files, struct probed_entry *entry)
{
	if (entry->attaching)
		latency_attach_abandon(files->options.latency, take(entry->attaching));
	if (entry->detaching)
		latency_detach_abandon(take(entry->detaching));
}

/* ---- both ----------------------------------------------------------------------------------- */

void probed_files_tend(struct probed_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		struct probed_entry *entry = &files->items[i];

		if (entry->state == PROBED_FILE_ATTACHING)
			background_continue(files, entry);
		if (entry->attaching && entry->cancelled &&
			latency_attach_reap(files->options.latency, entry->attaching))
			entry->attaching = NULL;
		if (entry->detaching && latency_detach_reap(entry->detaching))
			entry->detaching = NULL;
	}
}

bool probed_files_is_busy(const struct probed_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct probed_entry *entry = &files->items[i];

		if (entry->state == PROBED_FILE_ATTACHING || entry->attaching || entry->detaching)
			return true;
	}
	return false;
}

void probed_files_end(struct probed_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		struct probed_entry *entry = &files->items[i];

		probed_background_detach(files, entry);
		probed_entry_close(entry);
	}
}
