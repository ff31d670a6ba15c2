/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/recording/writer.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

int writer_init(struct writer *w, const char *path)
{
	*w = (struct writer){ .out = fopen(path, "we") };
	if (!w->out)
		return -errno;
	(void)fwrite(RECORDING_MAGIC, 1, strlen(RECORDING_MAGIC), w->out);
	return 0;
}

void writer_put(struct writer *w, enum recording_type type, const struct writer_body *body)
{
	static const struct writer_body none;
	const struct writer_part *parts = (body ? body : &none)->parts;
	struct recording_head head = { .type = type, .time_ns = w->now_ns };
	bool good;

	for (size_t i = 0; i < WRITER_MAX_PARTS; i++)
		head.size += (uint32_t)parts[i].size;
	good = fwrite(&head, sizeof(head), 1, w->out) == 1;
	for (size_t i = 0; i < WRITER_MAX_PARTS; i++)
		good &= fwrite(parts[i].bytes, 1, parts[i].size, w->out) == parts[i].size;
	if (!good && !w->failed)
		log_warn("the recording could not be written completely and is useless", "%s", "");
	w->failed |= !good;
}

struct writer_part writer_text(const char *text)
{
	return (struct writer_part){ text, strlen(text) + 1 };
}
