/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/code.h"

#include <errno.h>

#include "base/cleanup.h"
#include "symbolizer/index/functions.h"
#include "symbolizer/indexer/code/body.h"
#include "symbolizer/indexer/code/decoder.h"
#include "symbolizer/indexer/runtime_source.h"

DEFINE_AUTO(code_decoder);
DEFINE_AUTO(writer_bodies);

struct code_source {
	struct source_build *build;
	struct code_body body;
};

/* Whether a runtime's table names the function at ENTRY. */
static bool code_is_of_runtime(const struct source_build *b, uint64_t entry)
{
	return entry >= b->answered.low && entry < b->answered.high;
}

static int code_write_names(struct code_source *source, const struct writer_body *body,
	const struct writer_function *function)
{
	int err = 0;

	for (size_t i = 0; i < body->name_count && !err; i++) {
		struct writer_function named = *function;

		named.linkage = body->names[i].linkage;
		named.name = body->names[i].name;
		if (body->names[i].is_resolver)
			named.flags |= INDEX_FUNCTION_IFUNC;
		err = writer_function(source->build->w, &named);
	}
	return err;
}

static int code_read_function(void *context, const struct writer_body *body)
{
	struct code_source *source = context;
	struct code_body *found = &source->body;
	struct writer_function function = {
		.address = body->entry,
		.stack_check = INDEX_NO_STACK_CHECK,
	};
	int err = code_body_decode(found, body);

	if (err)
		return err;
	function.flags = found->flags;
	if (code_is_of_runtime(source->build, body->entry)) {
		function.flags |= INDEX_FUNCTION_FIBER;
		function.stack_check = runtime_sources_stack_check(found->image, body->entry);
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
	struct code_source source = { .build = b };
	int err;

	if (!b->wants_functions)
		return 0;
	err = code_decoder_create(elf_image_machine(b->images->own), &decoder);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = writer_bodies_create(b->w, &bodies);
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
