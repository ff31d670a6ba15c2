/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches the sites of functions: what is attached where, under which cookie. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/uprobe_multi.h"
#include "agent/sampler/probes/latency/latency_internal.h"
#include "agent/sampler/probes/latency/sites.h"
#include "base/cleanup.h"
#include "base/io.h"

struct latency_attached {
	struct sites sites;
	/* To attach again; NULL if the sites are attached in all processes. */
	struct sites_place *places;
	size_t place_count;
};

static void latency_attached_destroy(struct latency_attached *attached)
{
	if (!attached)
		return;
	sites_detach(&attached->sites, 1);
	free(attached->places);
	free(attached);
}

DEFINE_AUTO(latency_attached);

static uint64_t latency_cookie_of(const struct latency_site *site)
{
	return site->function | (site->is_return ? ABI_LATENCY_RETURN : 0) |
	       (site->is_again ? ABI_LATENCY_AGAIN : 0);
}

/*
 * Returns before entries, so that a call which is seen to begin is also seen to end, unless it had
 * begun before. The same holds for where it begins again.
 */
static int latency_compare_places(const void *a, const void *b)
{
	const struct sites_place *first = a, *second = b;
	bool first_entry = first->cookie <= ABI_LATENCY_NUMBER;
	bool second_entry = second->cookie <= ABI_LATENCY_NUMBER;

	if (first_entry != second_entry)
		return first_entry ? 1 : -1;
	return (first->file_off > second->file_off) - (first->file_off < second->file_off);
}

static int latency_compare_offsets(const void *a, const void *b)
{
	const struct sites_place *first = a, *second = b;

	if (first->file_off != second->file_off)
		return first->file_off < second->file_off ? -1 : 1;
	return (first->number > second->number) - (first->number < second->number);
}

/* Leaves out sites that are there twice. *COUNT becomes the number of the others. */
static int latency_leave_out_doubles(struct sites *sites, struct sites_place *places, size_t *count)
{
	size_t kept = 0;

	qsort(places, *count, sizeof(*places), latency_compare_offsets);
	for (size_t i = 0; i < *count; i++) {
		int err = 0;

		if (kept && places[kept - 1].file_off == places[i].file_off)
			err = sites_refuse(sites, places[i].number, -EEXIST);
		else
			places[kept++] = places[i];
		if (err)
			return err;
	}
	*count = kept;
	return 0;
}

struct sites_program latency_sites_program(const struct latency *l)
{
	return (struct sites_program){
		.fd = l->program,
		.at_once = l->at_once,
		.event_type = l->event_type,
		.cookie_in_path = l->cookie_in_path,
	};
}

int latency_places(const struct latency *l, const struct latency_site *sites, size_t *count,
	struct sites *refused, struct sites_place **ret_places)
{
	autofree struct sites_place *places = calloc(*count + 1, sizeof(*places));
	int err;

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < *count; i++) {
		assert(sites[i].function < l->count && l->functions[sites[i].function].used);
		places[i] = (struct sites_place){
			.file_off = sites[i].file_off,
			.cookie = latency_cookie_of(&sites[i]),
			.number = i,
		};
	}
	err = latency_leave_out_doubles(refused, places, count);
	if (err)
		return err;
	qsort(places, *count, sizeof(*places), latency_compare_places);
	*ret_places = take(places);
	return 0;
}

int latency_attached_create(struct sites *sites, struct latency_attached **ret_attached)
{
	struct latency_attached *attached = calloc(1, sizeof(*attached));

	if (!attached)
		return -ENOMEM;
	attached->sites = *sites;
	*sites = (struct sites){ 0 };
	*ret_attached = attached;
	return 0;
}

/* ---- in one process -------------------------------------------------------------------------- */

/* The kernel finds the memory of a process by its first thread, unless that has ended. */
static bool latency_first_thread_lives(uint32_t tgid)
{
	char path[32], line[256];
	const char *state;

	snprintf(path, sizeof(path), "/proc/%u/stat", tgid);
	if (io_read_line(AT_FDCWD, path, line, sizeof(line)) < 0)
		return false;
	state = strrchr(line, ')');
	return state && state[1] == ' ' && state[2] != 'Z' && state[2] != 'X';
}

/* Attaches PLACES in the only process, if there is one, else in all. */
static int latency_attach_places(struct latency *l, struct latency_attached *attached, int file_fd,
	const struct sites_place *places, size_t count, const char **ret_step)
{
	struct sites_program program = latency_sites_program(l);
	int err = -ESRCH;

	if (l->only_tgid && latency_first_thread_lives(l->only_tgid)) {
		program.pid = l->only_tgid;
		err = sites_attach(&attached->sites, &program, file_fd, places, count, ret_step);
	}
	if (err != -ESRCH)
		return err;
	program.pid = 0;
	return sites_attach(&attached->sites, &program, file_fd, places, count, ret_step);
}

int latency_attach_again(struct latency *l, struct latency_attached *attached, int file_fd)
{
	const struct sites_place *places = attached->places;
	const char *step;

	if (!places || !attached->sites.count ||
		!uprobe_multi_lost_process(attached->sites.links[0]))
		return 0;
	sites_detach(&attached->sites, 1);
	return latency_attach_places(l, attached, file_fd, places, attached->place_count, &step);
}

/* ---- both ------------------------------------------------------------------------------------ */

int latency_attach(struct latency *l, int file_fd, const struct latency_site *sites, size_t count,
	struct latency_attached **ret_attached, const char **ret_step)
{
	autocall(auto_latency_attached_destroy) struct latency_attached *attached =
		calloc(1, sizeof(*attached));
	autofree struct sites_place *places = NULL;
	int err;

	*ret_step = "attach to user functions";
	if (!attached)
		return -ENOMEM;
	err = latency_places(l, sites, &count, &attached->sites, &places);
	if (!err)
		err = latency_attach_places(l, attached, file_fd, places, count, ret_step);
	if (!err && !attached->sites.count)
		err = attached->sites.refused_count ? attached->sites.refused[0].err : -EINVAL;
	if (err)
		return err;
	if (l->only_tgid) {
		attached->places = take(places);
		attached->place_count = count;
	}
	*ret_attached = take(attached);
	return 0;
}

const struct latency_refused_site *latency_refused_sites(
	const struct latency_attached *attached, size_t *ret_count)
{
	*ret_count = attached->sites.refused_count;
	return attached->sites.refused;
}

void latency_detach(struct latency *l, struct latency_attached *attached)
{
	(void)l;
	latency_attached_destroy(attached);
}

int *latency_take_links(struct latency_attached **list, size_t count, size_t *ret_count)
{
	autofree struct sites *all = calloc(count + 1, sizeof(*all));
	int *links;

	for (size_t i = 0; all && i < count; i++)
		if (list[i])
			all[i] = list[i]->sites;
	links = all ? sites_all_links(all, count, ret_count) : NULL;
	for (size_t i = 0; links && i < count; i++) {
		if (!list[i])
			continue;
		free(list[i]->sites.links);
		free(list[i]->sites.refused);
		free(list[i]->places);
		free(list[i]);
	}
	return links;
}

void latency_detach_all(struct latency *l, struct latency_attached **list, size_t count)
{
	autofree struct sites *all = calloc(count + 1, sizeof(*all));

	(void)l;
	for (size_t i = 0; all && i < count; i++)
		if (list[i])
			all[i] = list[i]->sites;
	if (all)
		sites_detach(all, count);
	for (size_t i = 0; i < count; i++) {
		if (all && list[i])
			list[i]->sites = (struct sites){ 0 };
		latency_attached_destroy(list[i]);
	}
}
