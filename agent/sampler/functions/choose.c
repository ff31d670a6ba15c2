/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/functions/choose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/functions/glob.h"
#include "agent/sampler/functions/vendored.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"

enum {
	MAX_CHOSEN = 1 << 20,
	MAX_REFUSED = 1 << 20,
	MAX_SEEN = 1 << 18, /* names of inlined functions that were looked at */
};

/* A pattern in this file. */
struct file_pattern {
	const struct function_pattern *pattern;
	bool applies;
	bool literal; /* some function has the pattern as its name */
};

struct file_patterns {
	struct file_pattern *items;
	size_t count;
};

struct choosing {
	const struct index *index;
	const struct choose_options *options;
	struct file_patterns wanted, unwanted;
	struct choice choice;
	uint64_t last_address; /* of the function that was chosen or refused last */
	bool last_chosen, last_refused;
	size_t last_rank;
	struct map existing; /* hash of a linkage name that patterns match → 1 */
	struct map inlined; /* the same → number in `refused`, from 1 */
	struct map unrelated; /* address of a linkage name that no pattern matches → 1 */
};

const char *function_refusal_text(enum function_refusal refusal)
{
	static const char *const texts[FUNCTION_REFUSALS] = {
		[FUNCTION_RESOLVER] = "its symbol is that of a resolver (IFUNC), which runs once",
		[FUNCTION_UNCONFIRMED] = "only a debug file says where it begins: the file itself "
					 "does not confirm it",
		[FUNCTION_UNDECODED] = "its code could not be decoded",
		[FUNCTION_ENTRY_IS_RETURN] = "its entry is a RET: it does nothing",
		[FUNCTION_ENTRY_MISREAD] = "the kernel would carry out its first instruction "
					   "wrongly: probes misread AVX instructions",
		[FUNCTION_TAIL_JUMP] = "it has no RET: it ends in a jump to another function",
		[FUNCTION_INDIRECT_JUMP] = "it has no RET: it ends in an indirect jump",
		[FUNCTION_NO_RETURN] = "it has no RET: it does not return",
		[FUNCTION_INLINED] = "it exists only inlined",
	};

	return texts[refusal];
}

/* ---- patterns -------------------------------------------------------------------------------- */

static bool pattern_concerns(
	const struct function_pattern *pattern, const char *path, bool otherwise)
{
	return pattern->binary ? function_pattern_names_file(pattern, path) : otherwise;
}

bool choose_concerns(const struct function_patterns *wanted, const char *path, bool is_program)
{
	for (size_t i = 0; i < wanted->count; i++) {
		if (pattern_concerns(&wanted->items[i], path, is_program))
			return true;
	}
	return false;
}

/* OTHERWISE: whether patterns without BIN apply. */
static int file_patterns_init(struct file_patterns *file, const struct function_patterns *patterns,
	const char *path, bool otherwise)
{
	file->items = calloc(patterns->count + 1, sizeof(*file->items));
	if (!file->items)
		return -ENOMEM;
	for (size_t i = 0; i < patterns->count; i++) {
		file->items[i] = (struct file_pattern){ .pattern = &patterns->items[i],
			.applies = pattern_concerns(&patterns->items[i], path, otherwise) };
	}
	file->count = patterns->count;
	return 0;
}

static void file_patterns_note_literals(struct file_patterns *file, const struct name_forms *forms)
{
	for (size_t i = 0; i < file->count; i++) {
		struct file_pattern *p = &file->items[i];

		if (p->applies && !p->literal)
			p->literal = function_pattern_match(p->pattern, forms) == FUNCTION_EQUALS;
	}
}

/* The best match of all patterns; adds one to the counts of those that match, unless NULL. */
static enum function_match file_patterns_match(
	const struct file_patterns *file, const struct name_forms *forms, size_t *matches)
{
	enum function_match best = FUNCTION_DIFFERS;

	for (size_t i = 0; i < file->count; i++) {
		const struct file_pattern *p = &file->items[i];
		enum function_match match = FUNCTION_DIFFERS;

		if (p->applies)
			match = function_pattern_match(p->pattern, forms);
		if (match == FUNCTION_MATCHES && p->literal)
			match = FUNCTION_DIFFERS;
		if (match != FUNCTION_DIFFERS && matches)
			matches[i]++;
		best = MAX(best, match);
	}
	return best;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* FUNCTION_REFUSALS: it can be probed. */
static enum function_refusal function_refusal_of(const struct index_function *f)
{
	if (f->flags & INDEX_FUNCTION_IFUNC)
		return FUNCTION_RESOLVER;
	if (f->flags & INDEX_FUNCTION_UNCONFIRMED)
		return FUNCTION_UNCONFIRMED;
	if (f->flags & INDEX_FUNCTION_UNDECODED)
		return FUNCTION_UNDECODED;
	if (f->flags & INDEX_FUNCTION_ENTRY_IS_RETURN)
		return FUNCTION_ENTRY_IS_RETURN;
	if (f->flags & INDEX_FUNCTION_ENTRY_MISREAD)
		return FUNCTION_ENTRY_MISREAD;
	if (f->return_count)
		return FUNCTION_REFUSALS;
	if (f->flags & INDEX_FUNCTION_TAIL_JUMP)
		return FUNCTION_TAIL_JUMP;
	return f->flags & INDEX_FUNCTION_INDIRECT_JUMP ? FUNCTION_INDIRECT_JUMP
						       : FUNCTION_NO_RETURN;
}

/* Orders the names of one address, the best first: `malloc` before `__libc_malloc`. */
static size_t name_rank(const struct index_function *f, enum function_match match)
{
	size_t underscores = strspn(f->linkage, "_");

	/* Names are shorter than 4 GB: an index has offsets of 32 bits. */
	return (match == FUNCTION_EQUALS ? 0 : (size_t)1 << 48) + (underscores << 32) +
	       strlen(f->linkage);
}

static int choosing_add_chosen(struct choosing *c, const struct chosen_function *chosen)
{
	struct choice *choice = &c->choice;
	int err;

	choice->probeable++;
	if (choice->chosen_count >= c->options->limit)
		return 0;
	err = array_reserve(
		choice->chosen, choice->chosen_capacity, choice->chosen_count + 1, MAX_CHOSEN);
	if (!err)
		choice->chosen[choice->chosen_count++] = *chosen;
	return err;
}

static int choosing_add_refused(struct choosing *c, const struct refused_function *refused)
{
	struct choice *choice = &c->choice;
	int err = array_reserve(
		choice->refused, choice->refused_capacity, choice->refused_count + 1, MAX_REFUSED);

	if (!err)
		choice->refused[choice->refused_count++] = *refused;
	return err;
}

/* A further name of the address that was added last: the better one stays. */
static void choosing_add_alias(struct choosing *c, uint32_t number, size_t rank)
{
	struct choice *choice = &c->choice;
	bool better = rank < c->last_rank;

	c->last_rank = MIN(rank, c->last_rank);
	if (c->last_refused) {
		if (better)
			choice->refused[choice->refused_count - 1].number = number;
	} else if (choice->probeable == choice->chosen_count) {
		choice->chosen[choice->chosen_count - 1].aliases++;
		if (better)
			choice->chosen[choice->chosen_count - 1].number = number;
	}
}

static int choosing_add(
	struct choosing *c, uint32_t number, const struct index_function *f, size_t rank)
{
	enum function_refusal refusal = function_refusal_of(f);

	if ((c->last_chosen || c->last_refused) && f->address == c->last_address) {
		choosing_add_alias(c, number, rank);
		return 0;
	}
	c->last_address = f->address;
	c->last_rank = rank;
	c->last_chosen = refusal == FUNCTION_REFUSALS;
	c->last_refused = !c->last_chosen;
	if (c->last_refused)
		return choosing_add_refused(
			c, &(struct refused_function){ .refusal = refusal, .number = number });
	return choosing_add_chosen(c, &(struct chosen_function){ .number = number,
					      .jumps_out = f->flags & INDEX_FUNCTION_TAIL_JUMP });
}

static int choosing_look_at(struct choosing *c, uint32_t number, const struct index_function *f)
{
	struct name_forms forms;
	enum function_match match;
	int err = 0;

	name_forms_of(f->name, f->linkage, &forms);
	match = file_patterns_match(&c->wanted, &forms, c->choice.matches);
	if (match == FUNCTION_DIFFERS)
		return 0;
	if (c->options->find_inlined)
		err = map_set(&c->existing, hash_bytes(f->linkage, strlen(f->linkage)), 1);
	/* Only a list for the user is at stake, which then has too many. */
	if (err && err != -E2BIG)
		return err;
	if (file_patterns_match(&c->unwanted, &forms, NULL) != FUNCTION_DIFFERS) {
		c->choice.excluded++;
		return 0;
	}
	if (c->options->exclude_vendor && function_is_vendored(c->index, f)) {
		c->choice.vendored++;
		return 0;
	}
	return choosing_add(c, number, f, name_rank(f, match));
}

static int choosing_functions(struct choosing *c)
{
	size_t count = index_function_count(c->index);
	struct index_function f;
	struct name_forms forms;
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		if (!index_function(c->index, i, &f))
			continue;
		name_forms_of(f.name, f.linkage, &forms);
		file_patterns_note_literals(&c->wanted, &forms);
		file_patterns_note_literals(&c->unwanted, &forms);
	}
	for (size_t i = 0; !err && i < count; i++) {
		if (index_function(c->index, i, &f))
			err = choosing_look_at(c, (uint32_t)i, &f);
	}
	return err;
}

/* ---- what exists only inlined ---------------------------------------------------------------- */

static int choosing_add_inlined(struct choosing *c, uint32_t number, uint64_t name)
{
	uint64_t known;
	int err;

	if (map_get(&c->inlined, name, &known)) {
		c->choice.refused[known - 1].calls++;
		return 0;
	}
	err = choosing_add_refused(
		c, &(struct refused_function){
			   .refusal = FUNCTION_INLINED, .number = number, .calls = 1 });
	return err ? err : map_set(&c->inlined, name, c->choice.refused_count);
}

static int choosing_look_at_inlined(
	struct choosing *c, uint32_t number, const struct index_inlined *call)
{
	uint64_t name, ignored, where = (uintptr_t)call->linkage;
	struct name_forms forms;

	/* Names repeat; an index stores each once. */
	if (map_get(&c->unrelated, where, &ignored))
		return 0;
	name = hash_bytes(call->linkage, strlen(call->linkage));
	name_forms_of(call->name, call->linkage, &forms);
	if (!map_get(&c->existing, name, &ignored) &&
		file_patterns_match(&c->unwanted, &forms, NULL) == FUNCTION_DIFFERS &&
		file_patterns_match(&c->wanted, &forms, c->choice.matches) != FUNCTION_DIFFERS)
		return choosing_add_inlined(c, number, name);
	/* Only saves time: a full map is no failure. */
	return map_set(&c->unrelated, where, 1) == -ENOMEM ? -ENOMEM : 0;
}

/* Leaves only the patterns that name no function; returns whether there are any. */
static bool choosing_keep_unmatched(struct choosing *c)
{
	bool any = false;

	for (size_t i = 0; i < c->wanted.count; i++) {
		struct file_pattern *p = &c->wanted.items[i];

		p->applies = p->applies && !c->choice.matches[i];
		any |= p->applies;
	}
	return any;
}

static int choosing_inlined(struct choosing *c)
{
	size_t count = index_inlined_count(c->index);
	struct index_inlined call;
	int err = 0;

	for (size_t i = 0; !err && i < count; i++) {
		if (index_inlined(c->index, i, &call))
			err = choosing_look_at_inlined(c, (uint32_t)i, &call);
	}
	/* Over the limit the list is as long as it may be. */
	return err == -E2BIG ? 0 : err;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void choosing_deinit(struct choosing *c)
{
	free(c->wanted.items);
	free(c->unwanted.items);
	map_deinit(&c->existing);
	map_deinit(&c->inlined);
	map_deinit(&c->unrelated);
	choice_deinit(&c->choice);
}

static int choosing_init(struct choosing *c)
{
	const struct choose_options *o = c->options;
	int err;

	map_init(&c->existing, MAX_REFUSED);
	map_init(&c->inlined, MAX_REFUSED);
	map_init(&c->unrelated, MAX_SEEN);
	c->choice.matches = calloc(o->wanted->count + 1, sizeof(*c->choice.matches));
	if (!c->choice.matches)
		return -ENOMEM;
	err = file_patterns_init(&c->wanted, o->wanted, o->path, o->is_program);
	return err ? err : file_patterns_init(&c->unwanted, o->unwanted, o->path, true);
}

int choose_functions(
	const struct index *index, const struct choose_options *options, struct choice *ret_choice)
{
	autocall(choosing_deinit) struct choosing c = { .index = index, .options = options };
	int err;

	err = choosing_init(&c);
	if (!err)
		err = choosing_functions(&c);
	if (!err && (options->find_inlined || choosing_keep_unmatched(&c)))
		err = choosing_inlined(&c);
	if (err)
		return err;
	*ret_choice = c.choice;
	c.choice = (struct choice){ 0 };
	return 0;
}

void choice_deinit(struct choice *choice)
{
	free(choice->chosen);
	free(choice->refused);
	free(choice->matches);
	*choice = (struct choice){ 0 };
}
