/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/index/functions.h"

#include "symbolizer/index/index_state.h"

bool index_has_functions(const struct index *index)
{
	return index_sources(index) & INDEX_SOURCE_FUNCTIONS;
}

size_t index_function_count(const struct index *index)
{
	return index_has_functions(index) ? index_table_count(index, INDEX_FUNCTIONS) : 0;
}

/* NULL if NUMBER is too large or its returns are not in the table. */
static const struct index_function_entry *index_function_entry(
	const struct index *index, size_t number)
{
	const struct index_function_entry *entries = index_table_start(index, INDEX_FUNCTIONS);
	size_t returns = index_table_count(index, INDEX_RETURNS);
	const struct index_function_entry *entry;

	if (number >= index_function_count(index))
		return NULL;
	entry = &entries[number];
	if (entry->first_return > returns || entry->return_count > returns - entry->first_return)
		return NULL;
	return entry;
}

static void index_name_function(
	const struct index *index, uint32_t name, uint32_t linkage, const char *ret_names[2])
{
	const char *readable = index_string_at(index, name);
	const char *symbol = index_string_at(index, linkage);

	if (!*symbol)
		symbol = *readable ? readable : "?";
	ret_names[0] = *readable ? readable : symbol;
	ret_names[1] = symbol;
}

bool index_function(const struct index *index, size_t number, struct index_function *ret_function)
{
	const struct index_function_entry *entry = index_function_entry(index, number);
	const char *names[2];

	if (!entry)
		return false;
	index_name_function(index, entry->name, entry->linkage, names);
	*ret_function = (struct index_function){
		.name = names[0],
		.linkage = names[1],
		.address = index->header.base + entry->address,
		.flags = entry->flags,
		.return_count = entry->return_count,
		.stack_check = entry->stack_check,
		.restart_off = entry->restart_off,
	};
	return true;
}

uint64_t index_function_return(const struct index *index, size_t number, size_t return_number)
{
	const struct index_function_entry *entry = index_function_entry(index, number);
	const uint32_t *returns = index_table_start(index, INDEX_RETURNS);

	if (!entry || return_number >= entry->return_count)
		return 0;
	return index->header.base + returns[entry->first_return + return_number];
}

size_t index_inlined_count(const struct index *index)
{
	return index_table_count(index, INDEX_NODES);
}

/* The function around node NUMBER. Each parent must have a lower number; NULL if forged. */
static const struct index_node *index_outermost(const struct index *index, uint32_t number)
{
	const struct index_node *nodes = index_table_start(index, INDEX_NODES);

	for (int depth = 0; depth < INDEX_MAX_FRAMES; depth++) {
		uint32_t parent = nodes[number].parent;

		if (parent == INDEX_NO_NODE)
			return &nodes[number];
		if (parent >= number)
			return NULL;
		number = parent;
	}
	return NULL;
}

bool index_inlined(const struct index *index, size_t number, struct index_inlined *ret_inlined)
{
	const struct index_node *nodes = index_table_start(index, INDEX_NODES);
	const struct index_node *outermost;
	const char *names[2], *callers[2];

	if (number >= index_inlined_count(index) || nodes[number].parent == INDEX_NO_NODE)
		return false;
	outermost = index_outermost(index, (uint32_t)number);
	if (!outermost)
		return false;
	index_name_function(index, nodes[number].name, nodes[number].linkage, names);
	index_name_function(index, outermost->name, outermost->linkage, callers);
	*ret_inlined = (struct index_inlined){
		.name = names[0],
		.linkage = names[1],
		.caller = callers[1],
		.file = index_string_at(index, nodes[number].call_file),
		.line = nodes[number].call_line,
	};
	return true;
}
