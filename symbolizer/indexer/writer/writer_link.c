/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds linkage names that debug information omits: compilers emit none for functions local to a
 * unit (anonymous namespaces, lambdas, members of local classes), but the symbol table has them.
 * The symbol at a function's first address is used only if it can name the same function: with
 * folded code other functions have symbols there, too.
 *
 * A function without any name takes the best symbol there is: its name is in a file that dwz made,
 * and that is missing.
 */
#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/demangle.h"
#include "symbolizer/indexer/writer/writer_state.h"

enum { MAX_IDENTIFIER_BYTES = 256 };

/* Returns the last component of a qualified name: `Poly` of `app::Poly<3>::~Poly`. */
static const char *last_component(const char *name)
{
	const char *last = name;
	int depth = 0;

	for (const char *at = name; *at; at++) {
		if (strchr("<({", *at))
			depth++;
		else if (strchr(">)}", *at))
			depth--;
		else if (!depth && at[0] == ':' && at[1] == ':')
			last = at + 2;
	}
	return *last == '~' ? last + 1 : last;
}

/* Returns true if the mangled SYMBOL can be the function that debug information calls NAME. */
static bool speaks_of(const char *symbol, const char *name)
{
	const char *component = last_component(name);
	char identifier[MAX_IDENTIFIER_BYTES];
	size_t length = 0;

	if (!strncmp(component, "operator()", 10))
		return strstr(symbol, "cl"); /* <operator-name> of the Itanium C++ ABI, 5.1.3 */
	while (isalnum((unsigned char)component[length]) || component[length] == '_')
		length++;
	if (!length || length >= sizeof(identifier))
		return false;
	memcpy(identifier, component, length);
	identifier[length] = 0;
	return strstr(symbol, identifier);
}

static size_t symbols_upto(const struct index_writer *w, uint32_t address)
{
	size_t low = 0, high = w->symbol_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->symbols[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int link_node(struct index_writer *w, struct build_node *node, uint32_t address)
{
	const char *name = intern_text(&w->strings, node->linkage);

	for (size_t i = symbols_upto(w, address); i > 0; i--) {
		const struct build_symbol *s = &w->symbols[i - 1];
		const char *symbol = intern_text(&w->strings, s->name);

		/* All functions of a file may be at one address, and all its symbols. */
		if (s->low != address || !work_spend(writer_work(w), strlen(symbol) + 1))
			break;
		if (!*name) {
			node->linkage = s->name;
			return 0;
		}
		if (!demangle_is_mangled(symbol) || !speaks_of(symbol, name))
			continue;
		node->name = 0; /* the symbol has more detail: parameters */
		return intern_bytes(
			&w->strings, symbol, demangle_plain_length(symbol), &node->linkage);
	}
	return 0;
}

int writer_link_names(struct index_writer *w)
{
	int err = 0;

	for (size_t i = 0; i < w->range_count && w->symbol_count && !err; i++) {
		struct build_node *node = &w->nodes[w->ranges[i].id];

		if (node->parent == WRITER_NONE &&
			!demangle_is_mangled(intern_text(&w->strings, node->linkage)))
			err = link_node(w, node, w->ranges[i].low);
	}
	return err;
}
