/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/latency/sites.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/sampler/collect/perf_event.h"
#include "agent/sampler/collect/uprobe_multi.h"
#include "agent/sampler/probes/latency/closer.h"
#include "agent/sampler/probes/latency/site_path.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/interrupted.h"

enum {
	MAX_LINKS = 1 << 20,
	KERNEL_ENOTSUPP = 524, /* the kernel's ENOTSUPP, unknown to libc */
};

struct sites_request {
	const struct sites_program *program;
	const struct sites_place *places;
	char path[SITE_PATH_PLAIN_BYTES];
	uint64_t *offsets, *cookies; /* of `places`; for one link */
};

/* Whether ERR may be different for another place of the same file. */
static bool sites_is_of_place(int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -ENOSYS:
	case -EINTR:
	case -ESRCH:
		return false;
	default:
		return true;
	}
}

int sites_refuse(struct sites *s, size_t number, int err)
{
	int failed = array_reserve(
		s->refused, s->refused_capacity, s->refused_count + 1, (size_t)MAX_LINKS);

	if (failed)
		return failed;
	s->refused[s->refused_count++] = (struct latency_refused_site){
		.number = number,
		.err = err == -KERNEL_ENOTSUPP ? -ENOTSUP : err,
	};
	return 0;
}

static int sites_add_link(struct sites *s, int link)
{
	int err = array_reserve(s->links, s->capacity, s->count + 1, (size_t)MAX_LINKS);

	if (err)
		close(link);
	else
		s->links[s->count++] = link;
	return err;
}

static void sites_name_file(struct sites_request *request, int file_fd)
{
	snprintf(request->path, sizeof(request->path), "/proc/self/fd/%d", file_fd);
}

/* ---- by one link ---------------------------------------------------------------------------- */

static int sites_link_range(
	const struct sites_request *request, size_t first, size_t count, int *ret_link)
{
	int link = uprobe_multi_attach(
		request->program->fd, &(struct uprobe_multi){
					      .path = request->path,
					      .offsets = request->offsets + first,
					      .cookies = request->cookies + first,
					      .count = count,
					      .pid = request->program->pid,
				      });

	if (link < 0)
		return link;
	*ret_link = link;
	return 0;
}

/*
 * The kernel attaches all places or none, and does not say which one it refuses. That is found by
 * halves: the stack has the ranges still to be attached, the next one last, each half of the one
 * before.
 */
static int sites_link(struct sites *s, const struct sites_request *request, size_t all)
{
	struct {
		size_t first, count;
	} stack[66] = { { 0, all } };
	size_t depth = all ? 1 : 0;

	while (depth) {
		size_t first = stack[--depth].first, count = stack[depth].count, half = count / 2;
		int link = -1, err = sites_link_range(request, first, count, &link);

		if (!err) {
			err = sites_add_link(s, link);
		} else if (sites_is_of_place(err) && count > 1) {
			stack[depth].first = first + half;
			stack[depth++].count = count - half;
			stack[depth].first = first;
			stack[depth++].count = half;
			err = 0;
		} else if (sites_is_of_place(err)) {
			err = sites_refuse(s, request->places[first].number, err);
		}
		if (err)
			return err;
	}
	return 0;
}

static int sites_attach_at_once(struct sites *s, struct sites_request *request, size_t count)
{
	autofree uint64_t *offsets = calloc(count + 1, sizeof(*offsets));
	autofree uint64_t *cookies = calloc(count + 1, sizeof(*cookies));

	if (!offsets || !cookies)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		offsets[i] = request->places[i].file_off;
		cookies[i] = request->places[i].cookie;
	}
	request->offsets = offsets;
	request->cookies = cookies;
	return sites_link(s, request, count);
}

/* ---- by an event for each ------------------------------------------------------------------- */

/* Returns the link's descriptor or a negative errno. The link keeps its event. */
static int sites_open_link(const struct sites_request *request, const struct sites_place *place)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = place->cookie);
	autoclose int event = perf_event_open_uprobe(
		request->program->event_type, request->path, place->file_off);
	int link;

	if (event < 0)
		return event;
	link = bpf_link_create(request->program->fd, event, BPF_PERF_EVENT, &options);
	return link < 0 ? -errno : link;
}

/* Returns the event's descriptor or a negative errno. */
static int sites_open_event(const struct sites_request *request, const struct sites_place *place)
{
	char path[sizeof(request->path) + ABI_SITE_PATH_CHARACTERS];
	autoclose int event = -1;
	int err;

	site_path_write(request->path, place->cookie, path);
	event = perf_event_open_uprobe(request->program->event_type, path, place->file_off);
	if (event < 0)
		return event;
	err = perf_event_set_program(event, request->program->fd);
	return err ? err : take_fd(&event);
}

static int sites_open(const struct sites_request *request, const struct sites_place *place)
{
	return request->program->cookie_in_path ? sites_open_event(request, place)
						: sites_open_link(request, place);
}

static int sites_attach_each(struct sites *s, const struct sites_request *request, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* Each takes some milliseconds. */
		int link = interrupted() ? -EINTR : sites_open(request, &request->places[i]);
		int err;

		if (link >= 0)
			err = sites_add_link(s, link);
		else
			err = sites_is_of_place(link)
				      ? sites_refuse(s, request->places[i].number, link)
				      : link;
		if (err)
			return err;
	}
	return 0;
}

int sites_attach_own(const struct sites_program *program, const struct sites_place *place)
{
	autoclose int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct sites_request request = { .program = program };
	const struct uprobe_multi own = {
		.path = request.path,
		.offsets = &place->file_off,
		.cookies = &place->cookie,
		.count = 1,
		.pid = (uint32_t)getpid(),
	};

	if (file < 0)
		return -errno;
	sites_name_file(&request, file);
	return program->at_once ? uprobe_multi_attach(program->fd, &own)
				: sites_open(&request, place);
}

/* ---- both ----------------------------------------------------------------------------------- */

const char *sites_step(int err)
{
	if (err == -EPERM || err == -EACCES)
		return "attach to user functions (this needs root or CAP_PERFMON and CAP_BPF, "
		       "without lockdown; events for single functions need CAP_SYS_ADMIN)";
	if (err == -EMFILE || err == -ENFILE)
		return "attach to user functions (too many open files: raise the limit or choose "
		       "fewer functions)";
	return "attach to user functions";
}

int sites_attach(struct sites *s, const struct sites_program *program, int file_fd,
	const struct sites_place *places, size_t count, const char **ret_step)
{
	struct sites_request request = { .program = program, .places = places };
	int err;

	sites_name_file(&request, file_fd);
	err = program->at_once ? sites_attach_at_once(s, &request, count)
			       : sites_attach_each(s, &request, count);
	if (err) {
		*ret_step = sites_step(err);
		sites_detach(s, 1);
	}
	return err;
}

int *sites_all_links(const struct sites *list, size_t count, size_t *ret_count)
{
	size_t all = 0;
	int *links;

	for (size_t i = 0; i < count; i++)
		all += list[i].count;
	links = calloc(all + 1, sizeof(*links));
	*ret_count = links ? all : 0;
	all = 0;
	for (size_t i = 0; links && i < count; i++)
		for (size_t n = 0; n < list[i].count; n++)
			links[all++] = list[i].links[n];
	return links;
}

void sites_detach(struct sites *list, size_t count)
{
	size_t link_count;
	autofree int *links = sites_all_links(list, count, &link_count);

	if (links)
		closer_close(links, link_count);
	for (size_t i = 0; i < count; i++) {
		if (!links)
			closer_close(list[i].links, list[i].count);
		free(list[i].links);
		free(list[i].refused);
		list[i] = (struct sites){ 0 };
	}
}
