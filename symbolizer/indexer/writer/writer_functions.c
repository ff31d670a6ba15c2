/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "symbolizer/indexer/writer/writer_state.h"

enum { MAX_FUNCTIONS = 1 << 25, MAX_RETURNS = 1 << 27 };

int writer_returns(
	struct index_writer *w, const uint64_t *addresses, size_t count, uint32_t *ret_first)
{
	size_t first = w->return_count;
	int err = writer_close_code(w);

	if (!err)
		err = array_reserve(w->returns, w->return_capacity, first + count, MAX_RETURNS);
	for (size_t i = 0; i < count && !err; i++) {
		uint32_t end;

		if (!writer_code_offset(w, addresses[i], &w->returns[first + i], &end))
			err = -EBADMSG;
	}
	if (err)
		return err;
	w->return_count += count;
	*ret_first = (uint32_t)first;
	return 0;
}

int writer_function(struct index_writer *w, const struct writer_function *function)
{
	uint32_t offset, end;
	int err = writer_close_code(w);

	if (err)
		return err;
	if (!function->linkage || !writer_code_offset(w, function->address, &offset, &end))
		return 0;
	err = array_reserve(
		w->functions, w->function_capacity, w->function_count + 1, MAX_FUNCTIONS);
	if (err)
		return err;
	w->functions[w->function_count++] = (struct index_function_entry){
		.address = offset,
		.linkage = function->linkage,
		.name = function->name,
		.flags = function->flags,
		.first_return = function->first_return,
		.return_count = function->return_count,
		.stack_check = function->stack_check,
		.restart_off = function->restart_off,
	};
	return 0;
}

/* Of equal ones the one with a readable name comes first. */
static int function_by_address(const void *a, const void *b)
{
	const struct index_function_entry *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->linkage != y->linkage)
		return x->linkage < y->linkage ? -1 : 1;
	return x->name > y->name ? -1 : x->name < y->name;
}

void writer_order_functions(struct index_writer *w)
{
	size_t count = 0;

	if (w->function_count)
		qsort(w->functions, w->function_count, sizeof(*w->functions), function_by_address);
	for (size_t i = 0; i < w->function_count; i++) {
		struct index_function_entry *last = count ? &w->functions[count - 1] : NULL;

		if (last && last->address == w->functions[i].address &&
			last->linkage == w->functions[i].linkage)
			last->flags |= w->functions[i].flags;
		else
			w->functions[count++] = w->functions[i];
	}
	w->function_count = count;
}
