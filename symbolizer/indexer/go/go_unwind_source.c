/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a pclntab, as the unwind tables of a module take them. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "symbolizer/indexer/go/go_unwind.h"

struct go_unwind_tables {
	struct gopclntab pclntab;
	struct go_unwind unwind;
};

static int go_unwind_source_function(
	void *state, uint32_t number, uint64_t *ret_low, uint64_t *ret_bytes)
{
	const struct go_unwind_tables *tables = state;
	struct gopclntab_function f;
	int err = gopclntab_function(&tables->pclntab, number, &f);

	if (err)
		return err;
	*ret_low = f.entry;
	*ret_bytes = f.pcsp ? f.next - f.entry : 0;
	return 0;
}

static int go_unwind_source_run(void *state, uint32_t number, struct abi_unwind_rule *ret_entry,
	unwind_source_sink *sink, void *context)
{
	struct go_unwind_tables *tables = state;
	struct gopclntab_function f;
	int err = gopclntab_function(&tables->pclntab, number, &f);

	if (err)
		return err;
	*ret_entry = go_unwind_entry_rule(&tables->unwind, &f);
	return go_unwind_function(&tables->unwind, &f, sink, context);
}

static void go_unwind_source_close(void *state)
{
	struct go_unwind_tables *tables = state;

	go_unwind_deinit(&tables->unwind);
	free(tables);
}

/* The race detector's calls into C keep the stack pointer in r12 (bpf/abi/runtime_go.h). */
static uint8_t go_unwind_source_kept(const struct elf_image *image, const struct gopclntab *pclntab)
{
	struct gopclntab_function racecall;

	if (elf_image_machine(image) != EM_X86_64)
		return 0;
	return gopclntab_function_named(pclntab, "racecall", &racecall) ? 0 : ABI_KEPT_R12 + 1;
}

int go_open_unwind(struct elf_image *image, struct unwind_source *ret_source)
{
	struct go_unwind_tables *tables = calloc(1, sizeof(*tables));

	if (!tables)
		return -ENOMEM;
	if (gopclntab_find(image, &tables->pclntab)) {
		free(tables);
		return -ENOENT;
	}
	go_unwind_init(&tables->unwind, &tables->pclntab);
	*ret_source = (struct unwind_source){
		.function_count = tables->pclntab.function_count,
		.kept = go_unwind_source_kept(image, &tables->pclntab),
		.function = go_unwind_source_function,
		.run = go_unwind_source_run,
		.close = go_unwind_source_close,
		.state = tables,
	};
	return 0;
}
