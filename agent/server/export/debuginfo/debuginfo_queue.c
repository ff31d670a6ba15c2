/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/export/debuginfo/debuginfo_queue.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/server/export/debuginfo/debuginfo_internal.h"
#include "base/cleanup.h"

void debuginfo_job_free(struct debuginfo_job *job)
{
	if (!job)
		return;
	if (job->fd >= 0)
		close(job->fd);
	free(job);
}

void debuginfo_queue_add(struct debuginfo_queue *q, struct debuginfo_job *job)
{
	job->next = NULL;
	if (q->tail)
		q->tail->next = job;
	else
		q->head = job;
	q->tail = job;
	q->count++;
}

static struct debuginfo_job *debuginfo_queue_remove_after(
	struct debuginfo_queue *q, struct debuginfo_job *before)
{
	struct debuginfo_job *job = before ? before->next : q->head;

	if (before)
		before->next = job->next;
	else
		q->head = job->next;
	if (q->tail == job)
		q->tail = before;
	job->next = NULL;
	q->count--;
	return job;
}

void debuginfo_queue_deinit(struct debuginfo_queue *q)
{
	while (q->head)
		debuginfo_job_free(debuginfo_queue_remove_after(q, NULL));
}

bool debuginfo_queue_has(const struct debuginfo_queue *q, uint64_t key)
{
	for (const struct debuginfo_job *job = q->head; job; job = job->next) {
		if (job->key == key)
			return true;
	}
	return false;
}

struct debuginfo_job *debuginfo_queue_take(struct debuginfo_queue *q,
	const struct debuginfo_target *targets, uint64_t now_ns, uint64_t *ret_due_ns)
{
	struct debuginfo_job *before = NULL;

	*ret_due_ns = UINT64_MAX;
	for (struct debuginfo_job *job = q->head; job; before = job, job = job->next) {
		uint64_t due_ns = targets[job->target].not_before_ns;

		if (due_ns <= now_ns)
			return debuginfo_queue_remove_after(q, before);
		*ret_due_ns = MIN(*ret_due_ns, due_ns);
	}
	return NULL;
}
