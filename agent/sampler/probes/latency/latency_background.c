/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches and detaches without waiting: processes of their own do both. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "agent/sampler/probes/latency/attacher.h"
#include "agent/sampler/probes/latency/closer.h"
#include "agent/sampler/probes/latency/latency_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* Those that hang are among them, until the kernel lets go of them. */
enum { MAX_ATTACHERS = 8 };

struct latency_attaching {
	struct attacher attacher;
	struct sites sites; /* received so far, and what was refused before */
	pid_t closer; /* detaches what was received before a failure; 0 = none, or gone */
};

struct latency_detaching {
	pid_t closer; /* 0 = gone */
};

static bool background_is_gone(pid_t *pid)
{
	if (*pid && waitpid(*pid, NULL, WNOHANG) != 0)
		*pid = 0;
	return !*pid;
}

/* ---- attaching ------------------------------------------------------------------------------ */

int latency_attach_begin(struct latency *l, int file_fd, const struct latency_site *sites,
	size_t count, struct latency_attaching **ret_attaching)
{
	autofree struct latency_attaching *attaching = calloc(1, sizeof(*attaching));
	autofree struct sites_place *places = NULL;
	const struct sites_program program = latency_sites_program(l);
	int err;

	if (!attaching)
		return -ENOMEM;
	if (l->attachers == MAX_ATTACHERS)
		return -EAGAIN;
	err = latency_places(l, sites, &count, &attaching->sites, &places);
	if (!err)
		err = attacher_start(&attaching->attacher, &program, file_fd, places, count);
	if (err) {
		free(attaching->sites.refused);
		return err;
	}
	l->attachers++;
	*ret_attaching = take(attaching);
	return 0;
}

static void attaching_undo(struct latency_attaching *attaching)
{
	struct sites *sites = &attaching->sites;

	attacher_kill(&attaching->attacher);
	attaching->closer = closer_begin(sites->links, sites->count);
	free(sites->links);
	free(sites->refused);
	*sites = (struct sites){ 0 };
}

int latency_attach_end(struct latency_attaching *attaching, struct latency_attached **ret_attached,
	const char **ret_step)
{
	struct sites *sites = &attaching->sites;
	int err = attacher_receive(&attaching->attacher, sites, clock_monotonic_ns());

	if (err == -EAGAIN)
		return err;
	*ret_step = sites_step(err);
	if (!err && !sites->count)
		err = sites->refused_count ? sites->refused[0].err : -EINVAL;
	if (!err)
		err = latency_attached_create(sites, ret_attached);
	if (err)
		attaching_undo(attaching);
	return err;
}

void latency_attach_cancel(struct latency_attaching *attaching)
{
	attaching_undo(attaching);
}

bool latency_attach_reap(struct latency *l, struct latency_attaching *attaching)
{
	bool attacher_gone = attacher_is_gone(&attaching->attacher);

	if (!background_is_gone(&attaching->closer) || !attacher_gone)
		return false;
	l->attachers--;
	free(attaching);
	return true;
}

void latency_attach_abandon(struct latency *l, struct latency_attaching *attaching)
{
	(void)attacher_is_gone(&attaching->attacher);
	(void)background_is_gone(&attaching->closer);
	l->attachers--;
	free(attaching);
}

/* ---- detaching ------------------------------------------------------------------------------ */

void latency_detach_begin(struct latency *l, struct latency_attached **list, size_t count,
	struct latency_detaching **ret_detaching)
{
	autofree struct latency_detaching *detaching = calloc(1, sizeof(*detaching));
	autofree int *links = detaching ? latency_take_links(list, count, &count) : NULL;

	*ret_detaching = NULL;
	if (!links) {
		latency_detach_all(l, list, count);
		return;
	}
	detaching->closer = closer_begin(links, count);
	*ret_detaching = take(detaching);
}

bool latency_detach_reap(struct latency_detaching *detaching)
{
	if (!background_is_gone(&detaching->closer))
		return false;
	free(detaching);
	return true;
}

void latency_detach_abandon(struct latency_detaching *detaching)
{
	(void)background_is_gone(&detaching->closer);
	free(detaching);
}
