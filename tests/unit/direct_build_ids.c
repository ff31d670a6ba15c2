/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/direct_build_ids.h"

#include "symbolizer/indexer/elf/build_id.h"

static int direct_read(
	void *context, const struct build_id_question *question, struct build_id *ret_id)
{
	(void)context;
	return build_id_read(question->fd, ret_id);
}

const struct build_id_reader direct_build_ids = { .read = direct_read };
