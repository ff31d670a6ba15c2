/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/kernel_functions/kernel_choice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/functions/glob.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"

enum {
	MAX_FUNCTIONS = 1 << 20, /* that can be listed */
	MAX_ADDRESSES = 1 << 16, /* of one name */
	NAME_BYTES = 512, /* KSYM_NAME_LEN is 512; longer lines are skipped */
};

/* A line of a list. */
struct kernel_line {
	uint64_t address; /* 0 = hidden, or the list has none */
	char name[NAME_BYTES];
	char module[NAME_BYTES]; /* "" = the kernel itself */
};

struct choosing {
	const struct kernel_choice_options *options;
	struct kernel_choice choice;
	struct map by_name; /* hash of name and binary → index */
	struct map by_address; /* kaddr → index of the first function that has it */
	/* Hash of name and binary → index: of all names of the functions' code, wanted or not. */
	struct map by_any_name;
	bool *traceable, *forbidden; /* of each function */
	bool hidden; /* an address is 0 */
};

/* An address of a function, to find those that several names share. */
struct named_address {
	uint64_t address;
	size_t function;
	const char *name;
};

const char *kernel_refusal_text(enum kernel_refusal refusal)
{
	static const char *const texts[KERNEL_REFUSALS] = {
		[KERNEL_NOT_TRACEABLE] = "the kernel was built so that it cannot be traced "
					 "(notrace, or it has no place for a probe)",
		[KERNEL_FORBIDDEN] = "the kernel forbids probes there (its kprobes/blacklist)",
		[KERNEL_NOT_ATTACHED] = "the kernel refused the probe",
	};

	return refusal < KERNEL_REFUSALS && texts[refusal] ? texts[refusal] : "";
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* Copies SIZE bytes of a line into TO. Returns false if they do not fit, or are none. */
static bool kernel_line_copy(const char *from, size_t size, char to[NAME_BYTES])
{
	if (!size || size >= NAME_BYTES)
		return false;
	memcpy(to, from, size);
	to[size] = 0;
	return true;
}

/* `NAME` and, in kallsyms after a tab, `[MODULE]`. */
static bool kernel_line_names(const char *text, size_t size, struct kernel_line *ret_line)
{
	size_t name = 0, module;

	while (name < size && text[name] != ' ' && text[name] != '\t')
		name++;
	ret_line->module[0] = 0;
	if (!kernel_line_copy(text, name, ret_line->name))
		return false;
	module = name;
	while (module < size && (text[module] == ' ' || text[module] == '\t'))
		module++;
	if (module == size)
		return true;
	return text[module] == '[' && text[size - 1] == ']' &&
	       kernel_line_copy(text + module + 1, size - module - 2, ret_line->module);
}

/* Code that is no function of its own: padding before functions, and what BPF made. */
static bool kernel_line_is_function(const struct kernel_line *line, char type)
{
	return strchr("tTwW", type) && strncmp(line->name, "__pfx_", 6) &&
	       strncmp(line->name, "__cfi_", 6) && strcmp(line->module, "bpf") &&
	       strncmp(line->module, "__builtin__", 11);
}

/* `ffffffff81000000 T NAME`, with the module if it is of one. */
static bool kernel_line_symbol(const char *text, size_t size, struct kernel_line *ret_line)
{
	static const char hexadecimal[] = "0123456789abcdef";
	size_t digits = 0;
	uint64_t address = 0;

	for (; digits < size && digits < 16; digits++) {
		const char *digit = memchr(hexadecimal, text[digits], 16);

		if (!digit)
			break;
		address = address << 4 | (uint64_t)(digit - hexadecimal);
	}
	if (!digits || size < digits + 4 || text[digits] != ' ' || text[digits + 2] != ' ')
		return false;
	ret_line->address = address;
	return kernel_line_names(text + digits + 3, size - digits - 3, ret_line) &&
	       kernel_line_is_function(ret_line, text[digits + 1]);
}

/* `0xffffffff81000000-0xffffffff81000010\tNAME [MODULE]` */
static bool kernel_line_forbidden(const char *text, size_t size, struct kernel_line *ret_line)
{
	const char *tab = memchr(text, '\t', size);

	return tab && kernel_line_names(tab + 1, size - (size_t)(tab + 1 - text), ret_line);
}

typedef bool kernel_line_fn(const char *text, size_t size, struct kernel_line *ret_line);

/* Calls FN for each line of LIST that PARSE understands. */
static int kernel_lines_each(const struct buffer *list, kernel_line_fn *parse,
	int (*fn)(struct choosing *c, const struct kernel_line *line), struct choosing *c)
{
	const char *at = (const char *)list->bytes, *end = at + list->size;
	struct kernel_line line = { 0 };
	int err = 0;

	while (at < end && !err) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t size = (size_t)((newline ? newline : end) - at);

		if (parse(at, size, &line))
			err = fn(c, &line);
		at += size + 1;
	}
	return err;
}

/* ---- functions ------------------------------------------------------------------------------ */

static void kernel_line_binary(const struct kernel_line *line, char binary[NAME_BYTES + 2])
{
	if (*line->module)
		snprintf(binary, NAME_BYTES + 2, "[%s]", line->module);
	else
		snprintf(binary, NAME_BYTES + 2, "kernel");
}

static uint64_t kernel_line_key(const struct kernel_line *line)
{
	return hash_bytes(line->name, strlen(line->name)) * 31 +
	       hash_bytes(line->module, strlen(line->module));
}

/* Whether a pattern without BIN matches NAME; counts in MATCHES, unless NULL. */
static bool kernel_patterns_match(
	const struct function_patterns *patterns, const char *name, size_t *matches)
{
	bool any = false;

	for (size_t i = 0; i < patterns->count; i++) {
		const struct function_pattern *p = &patterns->items[i];

		if (p->binary || !glob_matches(p->glob, name, strlen(name)))
			continue;
		any = true;
		if (!matches)
			break;
		matches[i]++;
	}
	return any;
}

static struct kernel_function *choosing_find(struct choosing *c, const struct kernel_line *line)
{
	char binary[NAME_BYTES + 2];
	struct kernel_function *f;
	uint64_t index;

	if (!map_get(&c->by_name, kernel_line_key(line), &index))
		return NULL;
	f = &c->choice.functions[index];
	kernel_line_binary(line, binary);
	return !strcmp(f->name, line->name) && !strcmp(f->binary, binary) ? f : NULL;
}

static int choosing_add(struct choosing *c, const struct kernel_line *line)
{
	struct kernel_choice *choice = &c->choice;
	char binary[NAME_BYTES + 2];
	struct kernel_function f = { 0 };
	int err = array_reserve(
		choice->functions, choice->capacity, choice->count + 1, MAX_FUNCTIONS);

	if (!err)
		err = map_set(&c->by_name, kernel_line_key(line), choice->count);
	if (err)
		return err;
	kernel_line_binary(line, binary);
	f.name = strdup(line->name);
	f.binary = strdup(binary);
	choice->functions[choice->count++] = f;
	return f.name && f.binary ? 0 : -ENOMEM;
}

static int kernel_function_add_address(struct kernel_function *f, uint64_t address)
{
	int err = array_reserve(
		f->addresses, f->address_capacity, f->address_count + 1, MAX_ADDRESSES);

	if (!err)
		f->addresses[f->address_count++] = address;
	return err;
}

static int choosing_on_symbol(struct choosing *c, const struct kernel_line *line)
{
	struct kernel_function *f = choosing_find(c, line);
	int err;

	if (!f) {
		if (!kernel_patterns_match(c->options->wanted, line->name, c->choice.matches))
			return 0;
		if (kernel_patterns_match(c->options->unwanted, line->name, NULL)) {
			c->choice.excluded++;
			return 0;
		}
		err = choosing_add(c, line);
		if (err)
			return err;
		f = &c->choice.functions[c->choice.count - 1];
	}
	c->hidden |= !line->address;
	return kernel_function_add_address(f, line->address);
}

/*
 * The other lists have one name of each address, which may be another one than the pattern's:
 * __x64_sys_getpid is __ia32_sys_getpid, too.
 */
static int choosing_on_alias(struct choosing *c, const struct kernel_line *line)
{
	uint64_t index;

	return map_get(&c->by_address, line->address, &index)
		       ? map_set(&c->by_any_name, kernel_line_key(line), index)
		       : 0;
}

static int choosing_find_aliases(struct choosing *c, const struct kernel_lists *lists)
{
	int err = 0;

	for (size_t i = c->choice.count; i-- > 0 && !err;) {
		const struct kernel_function *f = &c->choice.functions[i];

		for (size_t n = 0; n < f->address_count && !err; n++)
			err = map_set(&c->by_address, f->addresses[n], i);
	}
	return err ? err
		   : kernel_lines_each(&lists->symbols, kernel_line_symbol, choosing_on_alias, c);
}

/* Marks in IS all functions with code that LINE names. */
static void choosing_mark(const struct choosing *c, const struct kernel_line *line, bool *is)
{
	uint64_t index;

	if (map_get(&c->by_any_name, kernel_line_key(line), &index))
		is[index] = true;
}

static int choosing_on_traceable(struct choosing *c, const struct kernel_line *line)
{
	choosing_mark(c, line, c->traceable);
	return 0;
}

static int choosing_on_forbidden(struct choosing *c, const struct kernel_line *line)
{
	choosing_mark(c, line, c->forbidden);
	return 0;
}

/* Of several functions with the same code, the first one is marked. */
static bool choosing_is_marked(
	const struct choosing *c, const struct kernel_function *f, const bool *is)
{
	uint64_t index;

	for (size_t i = 0; i < f->address_count; i++)
		if (map_get(&c->by_address, f->addresses[i], &index) && is[index])
			return true;
	return false;
}

/* ---- what can be probed --------------------------------------------------------------------- */

static int choosing_refuse(struct choosing *c, const struct kernel_lists *lists)
{
	size_t count = c->choice.count;
	int err;

	c->traceable = calloc(count + 1, sizeof(*c->traceable));
	c->forbidden = calloc(count + 1, sizeof(*c->forbidden));
	if (!c->traceable || !c->forbidden)
		return -ENOMEM;
	err = choosing_find_aliases(c, lists);
	if (!err)
		err = kernel_lines_each(
			&lists->traceable, kernel_line_names, choosing_on_traceable, c);
	if (!err)
		err = kernel_lines_each(
			&lists->forbidden, kernel_line_forbidden, choosing_on_forbidden, c);
	for (size_t i = 0; i < count && !err; i++) {
		struct kernel_function *f = &c->choice.functions[i];

		if (choosing_is_marked(c, f, c->forbidden))
			f->refusal = KERNEL_FORBIDDEN;
		else if (lists->traceable.size && !choosing_is_marked(c, f, c->traceable))
			f->refusal = KERNEL_NOT_TRACEABLE;
	}
	return err;
}

/* Of several names of an address the one with fewer underscores in front: `ksys_read`. */
static int named_address_compare(const void *a, const void *b)
{
	const struct named_address *first = a, *second = b;
	size_t first_rank = strspn(first->name, "_"), second_rank = strspn(second->name, "_");

	if (first->address != second->address)
		return first->address < second->address ? -1 : 1;
	if (first_rank != second_rank)
		return first_rank < second_rank ? -1 : 1;
	return strcmp(first->name, second->name);
}

static void kernel_function_drop_address(struct kernel_function *f, uint64_t address)
{
	for (size_t i = 0; i < f->address_count; i++) {
		if (f->addresses[i] != address)
			continue;
		f->addresses[i] = f->addresses[--f->address_count];
		return;
	}
}

static int choosing_list_addresses(
	const struct choosing *c, struct named_address **ret_list, size_t *ret_count)
{
	struct named_address *list;
	size_t count = 0;

	for (size_t i = 0; i < c->choice.count; i++)
		count += c->choice.functions[i].address_count;
	list = calloc(count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	count = 0;
	for (size_t i = 0; i < c->choice.count; i++) {
		const struct kernel_function *f = &c->choice.functions[i];

		for (size_t n = 0; n < f->address_count && !f->refusal; n++)
			list[count++] = (struct named_address){
				.address = f->addresses[n], .function = i, .name = f->name
			};
	}
	qsort(list, count, sizeof(*list), named_address_compare);
	*ret_list = list;
	*ret_count = count;
	return 0;
}

/* Code with several names is measured once: the other names lose their address. */
static int choosing_join_names(struct choosing *c)
{
	autofree struct named_address *list = NULL;
	struct kernel_function *functions = c->choice.functions;
	size_t count = 0, first = 0;
	int err = choosing_list_addresses(c, &list, &count);

	for (size_t i = 1; i < count; i++) {
		if (list[i].address != list[first].address) {
			first = i;
			continue;
		}
		kernel_function_drop_address(&functions[list[i].function], list[i].address);
		functions[list[first].function].aliases++;
	}
	return err;
}

static void kernel_function_deinit(struct kernel_function *f)
{
	free(f->name);
	free(f->binary);
	free(f->addresses);
}

static int kernel_function_compare(const void *a, const void *b)
{
	const struct kernel_function *first = a, *second = b;
	int order = strcmp(first->name, second->name);

	return order ? order : strcmp(first->binary, second->binary);
}

/* Removes names without an address of their own, sorts, and counts. */
static void choosing_finish(struct choosing *c)
{
	struct kernel_choice *choice = &c->choice;
	size_t kept = 0;

	for (size_t i = 0; i < choice->count; i++) {
		struct kernel_function *f = &choice->functions[i];

		if (!f->address_count) {
			kernel_function_deinit(f);
			continue;
		}
		choice->probeable += !f->refusal;
		choice->functions[kept++] = *f;
	}
	choice->count = kept;
	if (kept)
		qsort(choice->functions, kept, sizeof(*choice->functions), kernel_function_compare);
}

static void choosing_drop_functions(struct kernel_choice *choice)
{
	while (choice->count)
		kernel_function_deinit(&choice->functions[--choice->count]);
}

static int choosing_run(struct choosing *c, const struct kernel_lists *lists)
{
	int err;

	c->choice.matches = calloc(c->options->wanted->count + 1, sizeof(*c->choice.matches));
	if (!c->choice.matches)
		return -ENOMEM;
	err = kernel_lines_each(&lists->symbols, kernel_line_symbol, choosing_on_symbol, c);
	if (!err && c->hidden)
		err = -EACCES;
	if (!err)
		err = choosing_refuse(c, lists);
	if (!err)
		err = choosing_join_names(c);
	if (err)
		return err;
	choosing_finish(c);
	if (c->choice.probeable > c->options->limit)
		choosing_drop_functions(&c->choice);
	return 0;
}

int kernel_choice_make(const struct kernel_lists *lists,
	const struct kernel_choice_options *options, struct kernel_choice *ret_choice)
{
	struct choosing c = { .options = options };
	int err;

	map_init(&c.by_name, MAX_FUNCTIONS);
	map_init(&c.by_address, MAX_FUNCTIONS);
	map_init(&c.by_any_name, MAX_FUNCTIONS);
	err = choosing_run(&c, lists);
	map_deinit(&c.by_name);
	map_deinit(&c.by_address);
	map_deinit(&c.by_any_name);
	free(c.traceable);
	free(c.forbidden);
	if (err)
		kernel_choice_deinit(&c.choice);
	else
		*ret_choice = c.choice;
	return err;
}

void kernel_choice_deinit(struct kernel_choice *choice)
{
	choosing_drop_functions(choice);
	free(choice->functions);
	free(choice->matches);
	*choice = (struct kernel_choice){ 0 };
}
