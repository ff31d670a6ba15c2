/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/profile/fiber_table.h"

#include <errno.h>
#include <string.h>

#include "agent/sampler/profile/sample_labels.h"
#include "base/cursor.h"
#include "base/utf8.h"

enum {
	MAX_FACTS = 1 << 20,
	MAX_IDS = 1 << 20,
	MAX_BYTES = 64 << 20,
	ENTRY_BYTES = 32, /* of base/intern.h, for accounting */
	MAP_SLOT_BYTES = 24, /* of base/map.h */
	LOSSES_SHIFT = 32,
	MAX_TEXT_BYTES = ABI_FIBER_VALUE_BYTES + 4, /* with an ellipsis and a NUL */
};

/* At the end of a value that was cut. */
static const char ELLIPSIS[] = "\xe2\x80\xa6";

/* What is stored of facts, before keys and values. */
struct stored_head {
	uint64_t parent_id;
	uint16_t state, wait;
	uint32_t label_count;
};

struct fiber_text {
	char key[ABI_FIBER_KEY_BYTES + 1];
	char value[MAX_TEXT_BYTES];
};

/* The labels of one record while they are read. */
struct fiber_texts {
	struct fiber_text of[ABI_FIBER_LABELS];
	uint32_t count;
	uint32_t losses;
};

_Static_assert(sizeof(ELLIPSIS) + ABI_FIBER_VALUE_BYTES <= MAX_TEXT_BYTES, "a cut value fits");

void fiber_table_init(struct fiber_table *t)
{
	*t = (struct fiber_table){ 0 };
	map_init(&t->numbers, MAX_IDS);
}

void fiber_table_deinit(struct fiber_table *t)
{
	intern_deinit(&t->contents);
	map_deinit(&t->numbers);
}

/* ---- labels --------------------------------------------------------------------------------- */

bool profile_fiber_key_is_taken(const char *key)
{
	static const char *const of_processes[] = {
#define PROCESS_TEXT(name, ...) #name,
#define FIBER_LABEL(name, ...) #name,
#include "agent/sampler/profile/sample_labels.def"
	};

	for (size_t i = 0; i < sizeof(of_processes) / sizeof(of_processes[0]); i++)
		if (!strcmp(key, of_processes[i]))
			return true;
	return sample_label_find(key) != NULL;
}

static bool fiber_key_is_reserved(const char *key)
{
	/* What stored profiles say of their samples. */
	return !strncmp(key, "fathom_", strlen("fathom_")) || profile_fiber_key_is_taken(key);
}

/* Copies foreign text of SIZE bytes; also NULs are replaced. */
static void fiber_copy_text(char *to, const uint8_t *bytes, size_t size)
{
	if (size)
		memcpy(to, bytes, size);
	to[size] = '\0';
	utf8_clean(to, size);
}

/* A sequence that was cut in the middle is not foreign text's fault: it goes. */
static size_t fiber_whole_bytes(const uint8_t *bytes, size_t size)
{
	size_t lead = size;

	while (lead > 0 && size - lead < 3 && (bytes[lead - 1] & 0xc0) == 0x80)
		lead--;
	if (!lead || (bytes[lead - 1] & 0xc0) != 0xc0)
		return size;
	return utf8_length((const char *)bytes + lead - 1, size - lead + 1) ? size : lead - 1;
}

static bool fiber_read_label(struct cursor *from, struct fiber_text *ret_text)
{
	uint8_t key_bytes = cursor_u8(from), value_bytes = cursor_u8(from);
	bool cut = value_bytes == ABI_FIBER_VALUE_CUT;
	size_t size = cut ? ABI_FIBER_VALUE_BYTES : value_bytes;
	const uint8_t *key = cursor_bytes(from, key_bytes);
	const uint8_t *value = cursor_bytes(from, size);

	if (!key || !value || !key_bytes || key_bytes > ABI_FIBER_KEY_BYTES ||
		size > ABI_FIBER_VALUE_BYTES)
		return false;
	fiber_copy_text(ret_text->key, key, key_bytes);
	if (cut)
		size = fiber_whole_bytes(value, size);
	fiber_copy_text(ret_text->value, value, size);
	if (cut)
		memcpy(ret_text->value + size, ELLIPSIS, sizeof(ELLIPSIS));
	return true;
}

/* Inserts TEXT by its key. Of equal keys, and foreign text may make keys equal, the first stays. */
static void fiber_insert(struct fiber_texts *texts, const struct fiber_text *text)
{
	uint32_t at = texts->count;

	for (uint32_t i = 0; i < texts->count; i++) {
		int order = strcmp(texts->of[i].key, text->key);

		if (!order)
			return;
		if (order > 0 && i < at)
			at = i;
	}
	memmove(&texts->of[at + 1], &texts->of[at], (texts->count - at) * sizeof(texts->of[0]));
	texts->of[at] = *text;
	texts->count++;
}

/* The kernel side wrote the record, but its content is a foreign program's. */
static void fiber_read_labels(const struct abi_fiber_facts *facts, struct fiber_texts *texts)
{
	size_t room = facts->word_count * sizeof(uint64_t) -
		      ABI_FIBER_CONTENT_HEAD_WORDS * sizeof(uint64_t);
	struct cursor from =
		cursor_over(facts->labels, facts->label_bytes < room ? facts->label_bytes : room);
	struct fiber_text text;

	for (uint32_t i = 0; i < facts->label_count; i++) {
		if (i >= ABI_FIBER_LABELS || !fiber_read_label(&from, &text)) {
			texts->losses |= PROFILE_FIBER_UNREADABLE;
			return;
		}
		if (fiber_key_is_reserved(text.key))
			texts->losses |= PROFILE_FIBER_RESERVED;
		else
			fiber_insert(texts, &text);
	}
}

/* ---- facts ---------------------------------------------------------------------------------- */

static size_t fiber_append(uint8_t *to, size_t at, const char *text)
{
	size_t size = strlen(text) + 1;

	memcpy(to + at, text, size);
	return at + size;
}

static uint16_t fiber_state_of(const struct abi_fiber_facts *facts)
{
	uint32_t state = (facts->flags & ABI_FIBER_STATE_MASK) >> ABI_FIBER_STATE_SHIFT;

	return (uint16_t)(state < ABI_FIBER_STATES ? state : ABI_FIBER_STATE_UNKNOWN);
}

static uint16_t fiber_wait_of(const struct abi_fiber_facts *facts)
{
	return (uint16_t)((facts->flags & ABI_FIBER_WAIT_MASK) >> ABI_FIBER_WAIT_SHIFT);
}

static int fiber_store(struct fiber_table *t, const struct abi_fiber_facts *facts,
	const struct fiber_texts *texts, uint32_t *ret_number)
{
	uint8_t bytes[sizeof(struct stored_head) + sizeof(texts->of)];
	const struct stored_head head = {
		.parent_id = facts->parent_id,
		.state = fiber_state_of(facts),
		.wait = fiber_wait_of(facts),
		.label_count = texts->count,
	};
	size_t size = sizeof(head);
	int err = 0;

	if (!t->contents.count)
		err = intern_init(&t->contents, MAX_FACTS, MAX_BYTES);
	if (err)
		return err;
	memcpy(bytes, &head, sizeof(head));
	for (uint32_t i = 0; i < texts->count; i++) {
		size = fiber_append(bytes, size, texts->of[i].key);
		size = fiber_append(bytes, size, texts->of[i].value);
	}
	return intern_bytes(&t->contents, bytes, size, ret_number);
}

static bool fiber_has_something(
	const struct abi_fiber_facts *facts, const struct fiber_texts *texts)
{
	return texts->count || facts->parent_id || fiber_state_of(facts);
}

static uint32_t fiber_losses_of(const struct abi_fiber_facts *facts)
{
	return (facts->flags & ABI_FIBER_CUT ? PROFILE_FIBER_CUT : 0) |
	       (facts->flags & ABI_FIBER_UNREADABLE ? PROFILE_FIBER_UNREADABLE : 0);
}

int fiber_table_get(struct fiber_table *t, const struct abi_fiber_facts *facts, size_t limit_bytes,
	uint32_t *ret_number, uint32_t *ret_losses)
{
	struct fiber_texts texts = { .losses = fiber_losses_of(facts) };
	uint64_t known;
	uint32_t number = 0;
	int err;

	if (map_get(&t->numbers, facts->id, &known)) {
		*ret_number = (uint32_t)known;
		*ret_losses = (uint32_t)(known >> LOSSES_SHIFT);
		return 0;
	}
	if (facts->word_count < ABI_FIBER_CONTENT_HEAD_WORDS || facts->word_count > ABI_FIBER_WORDS)
		return -EINVAL;
	fiber_read_labels(facts, &texts);
	*ret_losses = texts.losses;
	if (fiber_has_something(facts, &texts)) {
		if (fiber_table_bytes(t) >= limit_bytes)
			return -E2BIG;
		err = fiber_store(t, facts, &texts, &number);
		if (err)
			return err;
	}
	*ret_number = number;
	return map_set(&t->numbers, facts->id, number | (uint64_t)texts.losses << LOSSES_SHIFT);
}

int fiber_table_copy(struct fiber_table *t, const struct fiber_table *from, uint32_t number,
	size_t limit_bytes, uint32_t *ret_number)
{
	size_t size = number ? intern_size(&from->contents, number) : 0;
	int err = 0;

	*ret_number = 0;
	if (!size)
		return 0;
	if (fiber_table_bytes(t) >= limit_bytes)
		return -E2BIG;
	if (!t->contents.count)
		err = intern_init(&t->contents, MAX_FACTS, MAX_BYTES);
	return err ? err
		   : intern_bytes(
			     &t->contents, intern_text(&from->contents, number), size, ret_number);
}

struct profile_fiber fiber_table_at(const struct fiber_table *t, uint32_t number)
{
	struct stored_head head;
	size_t size = intern_size(&t->contents, number);

	if (!number || size < sizeof(head))
		return (struct profile_fiber){ 0 };
	memcpy(&head, intern_text(&t->contents, number), sizeof(head));
	return (struct profile_fiber){
		.parent_id = head.parent_id,
		.state = head.state,
		.wait = head.wait,
		.labels = intern_text(&t->contents, number) + sizeof(head),
		.label_count = head.label_count,
		.label_bytes = (uint32_t)(size - sizeof(head)),
	};
}

size_t fiber_table_count(const struct fiber_table *t)
{
	return t->contents.count ? t->contents.count - 1 : 0;
}

size_t fiber_table_bytes(const struct fiber_table *t)
{
	return t->contents.capacity * ENTRY_BYTES + t->contents.slot_count * sizeof(uint32_t) +
	       t->contents.bytes.total_bytes + t->numbers.capacity * MAP_SLOT_BYTES;
}

bool profile_fiber_next(
	const struct profile_fiber *fiber, const char **at, struct profile_fiber_label *ret_label)
{
	const char *key = *at ? *at : fiber->labels;

	if (!fiber->label_count || key >= fiber->labels + fiber->label_bytes)
		return false;
	ret_label->key = key;
	ret_label->value = key + strlen(key) + 1;
	*at = ret_label->value + strlen(ret_label->value) + 1;
	return true;
}
