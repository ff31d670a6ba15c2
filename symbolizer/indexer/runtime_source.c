/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/runtime_source.h"

#include <errno.h>

#include "base/cleanup.h"
#include "symbolizer/index/functions.h"

static const struct runtime_source *const runtime_sources[] = {
#define RUNTIME(name) &runtime_source_##name,
#include "symbolizer/indexer/runtimes.def"
#undef RUNTIME
};

static bool runtime_source_ends_build(int err)
{
	return err == -ENOMEM || err == -E2BIG;
}

int runtime_sources_names(struct source_build *b)
{
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(runtime_sources); i++) {
		if (!runtime_sources[i]->read_names)
			continue;
		err = runtime_sources[i]->read_names(b);
		if (!err || runtime_source_ends_build(err))
			break;
	}
	return err;
}

int runtime_sources_open_unwind(struct elf_image *image, struct unwind_source *ret_source)
{
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(runtime_sources); i++) {
		if (!runtime_sources[i]->open_unwind)
			continue;
		err = runtime_sources[i]->open_unwind(image, ret_source);
		if (!err || runtime_source_ends_build(err))
			break;
	}
	return err;
}

int runtime_sources_facts(struct source_build *b)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(runtime_sources); i++) {
		if (!runtime_sources[i]->read_facts)
			continue;
		err = runtime_sources[i]->read_facts(b);
		if (runtime_source_ends_build(err))
			break;
	}
	return err;
}

uint32_t runtime_sources_stack_check(const struct elf_image *image, uint64_t entry)
{
	uint32_t bytes = INDEX_NO_STACK_CHECK;

	for (size_t i = 0; i < ARRAY_SIZE(runtime_sources) && bytes == INDEX_NO_STACK_CHECK; i++)
		if (runtime_sources[i]->stack_check)
			bytes = runtime_sources[i]->stack_check(image, entry);
	return bytes;
}

bool runtime_sources_toolchain(struct elf_image *image, char text[TOOLCHAIN_BYTES])
{
	for (size_t i = 0; i < ARRAY_SIZE(runtime_sources); i++)
		if (runtime_sources[i]->toolchain && runtime_sources[i]->toolchain(image, text))
			return true;
	return false;
}
