/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/build_ids.h"

#include "agent/sampler/process/modules.h"

static int build_ids_read(
	void *context, const struct build_id_question *question, struct build_id *ret_id)
{
	(void)context;
	return module_read_build_id(question->fd, ret_id);
}

void build_ids_init(struct build_ids *ids)
{
	ids->reader = (struct build_id_reader){ .read = build_ids_read, .context = ids };
}
