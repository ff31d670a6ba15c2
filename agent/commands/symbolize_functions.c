/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "agent/commands/symbolize.h"
#include "symbolizer/index/functions.h"

static void print_returns(
	FILE *out, const struct index *index, size_t number, const struct index_function *f)
{
	if (!f->return_count)
		fputs("-", out);
	for (size_t i = 0; i < f->return_count; i++)
		fprintf(out, "%s%" PRIx64, i ? "," : "", index_function_return(index, number, i));
}

void symbolize_print_functions(FILE *out, const struct index *index)
{
	struct index_function f;

	for (size_t i = 0; i < index_function_count(index); i++) {
		if (!index_function(index, i, &f))
			continue;
		fprintf(out, "%" PRIx64 " %" PRIx32 " %" PRIx32 " %" PRIx32 " ", f.address, f.flags,
			f.stack_check, f.restart_off);
		print_returns(out, index, i, &f);
		fprintf(out, " %s\t%s\n", f.linkage, f.name);
	}
}
