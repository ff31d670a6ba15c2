/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/code.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/index/functions.h"
#include "symbolizer/indexer/cfi/cfi.h"
#include "symbolizer/indexer/code/body.h"
#include "symbolizer/indexer/code/decoder.h"
#include "symbolizer/indexer/runtime_source.h"

DEFINE_AUTO(code_decoder);
DEFINE_AUTO(writer_bodies);

enum { MAX_DESCRIBED = 1 << 25 };

struct code_source {
	struct source_build *build;
	struct code_body body;
};

/* What the module's own call frame information describes. */
struct code_described {
	struct writer_part *items;
	size_t count, capacity;
};

static void code_described_deinit(struct code_described *d)
{
	free(d->items);
}

static int code_add_described(void *context, const struct cfi_fde *fde)
{
	struct code_described *d = context;
	int err = array_reserve(d->items, d->capacity, d->count + 1, MAX_DESCRIBED);

	if (!err)
		d->items[d->count++] = (struct writer_part){ .low = fde->low,
			.high = fde->low + MIN(fde->size, UINT64_MAX - fde->low) };
	return err;
}

/* Without debug files nothing has to be confirmed. */
static int code_find_described(const struct source_build *b, struct code_described *ret_described)
{
	const struct images *images = b->images;

	if (!images->debug && !images->alternate && !images->split_count)
		return 0;
	return unwind_each_function(images->own, code_add_described, ret_described);
}

/* Whether a runtime's table names the function at ENTRY. */
static bool code_is_of_runtime(const struct source_build *b, uint64_t entry)
{
	return entry >= b->answered.low && entry < b->answered.high;
}

/* Its other names (`choose_memcpy`) are the resolver's own, but mean that code as well. */
static bool code_is_resolver(const struct writer_body *body)
{
	for (size_t i = 0; i < body->name_count; i++)
		if (body->names[i].is_resolver)
			return true;
	return false;
}

static int code_write_names(struct code_source *source, const struct writer_body *body,
	const struct writer_function *function)
{
	uint32_t resolver = code_is_resolver(body) ? INDEX_FUNCTION_IFUNC : 0;
	int err = 0;

	for (size_t i = 0; i < body->name_count && !err; i++) {
		struct writer_function named = *function;

		named.flags |= resolver;
		named.linkage = body->names[i].linkage;
		named.name = body->names[i].name;
		err = writer_function(source->build->w, &named);
	}
	return err;
}

/* A function that checks no stack may jump to its entry for another reason. */
static uint32_t code_restart_off(
	const struct code_body *found, const struct writer_function *function)
{
	uint64_t off = found->restart - function->address;

	if (function->stack_check == INDEX_NO_STACK_CHECK || !found->restart || off > UINT32_MAX)
		return 0;
	return (uint32_t)off;
}

static int code_read_function(void *context, const struct writer_body *body)
{
	struct code_source *source = context;
	struct code_body *found = &source->body;
	struct writer_function function = {
		.address = body->entry,
		.stack_check = INDEX_NO_STACK_CHECK,
	};
	int err;

	if (!body->is_confirmed) {
		function.flags = INDEX_FUNCTION_UNCONFIRMED;
		return code_write_names(source, body, &function);
	}
	err = code_body_decode(found, body);
	if (err)
		return err;
	function.flags = found->flags;
	if (code_is_of_runtime(source->build, body->entry)) {
		function.flags |= INDEX_FUNCTION_FIBER;
		function.stack_check = runtime_sources_stack_check(found->image, body->entry);
		function.restart_off = code_restart_off(found, &function);
	}
	err = writer_returns(
		source->build->w, found->returns, found->return_count, &function.first_return);
	if (err)
		return err;
	function.return_count = (uint32_t)found->return_count;
	return code_write_names(source, body, &function);
}

int code_read_functions(struct source_build *b)
{
	autocall(auto_code_decoder_destroy) struct code_decoder *decoder = NULL;
	autocall(auto_writer_bodies_destroy) struct writer_bodies *bodies = NULL;
	autocall(code_described_deinit) struct code_described described = { 0 };
	struct code_source source = { .build = b };
	int err;

	if (!b->wants_functions)
		return 0;
	err = code_decoder_create(elf_image_machine(b->images->own), &decoder);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = code_find_described(b, &described);
	if (!err)
		err = writer_bodies_create(b->w, described.items, described.count, &bodies);
	if (err)
		return err;
	source.body = (struct code_body){
		.decoder = decoder,
		.image = b->images->own,
		.bodies = bodies,
		.work = writer_work(b->w),
	};
	writer_source(b->w, INDEX_SOURCE_FUNCTIONS);
	err = writer_bodies_each(bodies, code_read_function, &source);
	code_body_deinit(&source.body);
	return err;
}
