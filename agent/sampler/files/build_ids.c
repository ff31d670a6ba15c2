/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/files/build_ids.h"

#include "agent/sampler/files/mapped_build_id.h"

/* The kernel is asked only after the mapping that the file was opened by. */
static int build_ids_read(
	void *context, const struct build_id_question *question, struct build_id *ret_id)
{
	struct build_ids *ids = context;

	if (question->task_fd >= 0 &&
		!mapped_build_id_read(question->task_fd, question->start, question->end, ret_id))
		return 0;
	return note_reader_read(&ids->notes, question->fd, ret_id);
}

void build_ids_init(struct build_ids *ids, struct metrics *metrics)
{
	ids->reader = (struct build_id_reader){ .read = build_ids_read, .context = ids };
	note_reader_init(&ids->notes, metrics);
}

void build_ids_deinit(struct build_ids *ids)
{
	note_reader_deinit(&ids->notes);
}
