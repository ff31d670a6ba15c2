/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	MAX_FUNCTIONS = 1 << 22,
	MAX_TEXT_BYTES = 256 << 20,
};

int functions_init(struct functions *f)
{
	int err = intern_init(&f->names, MAX_FUNCTIONS, MAX_TEXT_BYTES);

	return err ? err : intern_init(&f->frames, MAX_FUNCTIONS, MAX_TEXT_BYTES);
}

void functions_deinit(struct functions *f)
{
	intern_deinit(&f->names);
	intern_deinit(&f->frames);
}

static int functions_number_of(
	struct functions *f, const char *name, const char *module, uint32_t *ret_function)
{
	size_t name_size = strlen(name) + 1, size = name_size + strlen(module);
	autofree char *key = malloc(size + 1);

	if (!key)
		return -ENOMEM;
	memcpy(key, name, name_size);
	memcpy(key + name_size, module, size + 1 - name_size);
	return intern_bytes(&f->names, key, size, ret_function);
}

int functions_add(void *context, const struct symbolized *frame, uint32_t *ret_frame)
{
	const char *module = frame->mapping ? frame->mapping->file : "";
	struct functions *f = context;
	uint32_t numbers[INDEX_MAX_FRAMES];
	size_t count = frame->line_count;
	int err;

	for (size_t i = 0; i < count; i++) {
		err = functions_number_of(f, frame->lines[i].name, module, &numbers[i]);
		if (err)
			return err;
	}
	if (count == 0) {
		err = functions_number_of(f, "[unknown]", module, &numbers[count++]);
		if (err)
			return err;
	}
	return intern_bytes(&f->frames, numbers, count * sizeof(*numbers), ret_frame);
}

const uint32_t *functions_of_frame(const struct functions *f, uint32_t frame, size_t *ret_count)
{
	*ret_count = intern_size(&f->frames, frame) / sizeof(uint32_t);
	return (const void *)intern_text(&f->frames, frame);
}

uint32_t functions_innermost(const struct functions *f, uint32_t frame)
{
	size_t count;

	return *functions_of_frame(f, frame, &count);
}

size_t functions_count(const struct functions *f)
{
	return f->names.count - 1;
}

const char *functions_name(const struct functions *f, uint32_t function)
{
	return intern_text(&f->names, function);
}

const char *functions_module(const struct functions *f, uint32_t function)
{
	const char *name = intern_text(&f->names, function);

	return name + strlen(name) + 1;
}
