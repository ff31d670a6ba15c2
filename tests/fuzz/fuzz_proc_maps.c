/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A maps file of any bytes: each parsed line must be a valid mapping, and the mappings must go into
 * a snapshot that stays in order.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/process/mappings.h"
#include "agent/sampler/process/modules.h"
#include "agent/sampler/process/proc_maps.h"
#include "agent/sampler/process/proc_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct mappings **m, const struct proc_mapping *parsed)
{
	static struct module module = { .kind = MODULE_ANON };
	const struct mapping mapping = { .start = parsed->start,
		.end = parsed->end,
		.file_off = parsed->executable ? parsed->start : parsed->file_off,
		.module = &module };
	const struct mapping *found;

	if (parsed->start >= parsed->end || strlen(parsed->path) > 4096 * 4)
		abort();
	if (mappings_add(m, &mapping))
		return;
	found = mappings_find(*m, parsed->start);
	if (!found || mapping_file_off(found, parsed->start) != mapping.file_off)
		abort();
}

static void check_order(const struct mappings *m)
{
	uint64_t end = 0;

	for (size_t i = 0; i < mappings_count(m); i++) {
		const struct mapping *mapping = mappings_at(m, i);

		if (mapping->start < end || mapping->end <= mapping->start)
			abort();
		end = mapping->end;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mappings *m = mappings_create();
	char *text = malloc(size + 1), *at = text;

	if (!m || !text)
		abort();
	memcpy(text, data, size);
	text[size] = '\n';
	while (at <= text + size) {
		char *newline = memchr(at, '\n', (size_t)(text + size + 1 - at));
		char id[CONTAINER_ID_BYTES];
		struct proc_mapping parsed;

		(void)container_pod_uid_of_line(
			at, (size_t)(newline - at), (char[POD_UID_BYTES]){ 0 });
		if (container_id_of_line(at, (size_t)(newline - at), id) &&
			(strlen(id) < 64 || strspn(id, "user-/0123456789abcdef") != strlen(id)))
			abort();
		if (proc_maps_parse(at, (size_t)(newline - at), &parsed))
			use(&m, &parsed);
		at = newline + 1;
	}
	check_order(m);
	mappings_unref(m);
	free(text);
	return 0;
}
