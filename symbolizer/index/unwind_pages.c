/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows come in as ranges and are kept as changes: `from this address on this rule`. The page being
 * made collects its changes; a change in another page writes it out. A rule that goes on over
 * whole pages makes a page of each with a rule and no row: a page stands alone.
 */
#include "symbolizer/index/unwind_pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	PAGE_BYTES = 1 << ABI_UNWIND_PAGE_SHIFT,
	STEP_SHIFT = 12,
	/* Number of the rule that stands for those which a full page has no room for. */
	LAST_RULE = ABI_UNWIND_PAGE_RULES - 1,
	HASH_SLOTS = 1024,
	HASH_SHIFT = 64 - 10,
	MAX_OUTPUT_BYTES = sizeof(struct abi_unwind_page) + 3 * ABI_UNWIND_PAGE_ROWS +
			   sizeof(struct abi_unwind_rule) * ABI_UNWIND_PAGE_RULES,
};

static const struct abi_unwind_rule none = { .cfa = ABI_CFA_NONE };
static const struct abi_unwind_rule unsupported = { .cfa = ABI_CFA_UNSUPPORTED };

struct unwind_pages {
	unwind_page_sink *sink;
	void *context;
	int error;
	struct unwind_counts counts;

	uint64_t end; /* where the last row ended */
	struct abi_unwind_rule current; /* of the last change */
	uint64_t page; /* address >> ABI_UNWIND_PAGE_SHIFT */
	uint32_t row_count, rule_count;
	uint16_t addresses[ABI_UNWIND_PAGE_ROWS];
	uint8_t numbers[ABI_UNWIND_PAGE_ROWS];
	struct abi_unwind_rule rules[ABI_UNWIND_PAGE_RULES];
	uint8_t slots[HASH_SLOTS]; /* number of a rule + 1 */
	union {
		struct abi_unwind_page header;
		uint8_t bytes[MAX_OUTPUT_BYTES];
	} output;
};

static bool same_rule(const struct abi_unwind_rule *a, const struct abi_unwind_rule *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static size_t slot_of(const struct abi_unwind_rule *rule)
{
	uint64_t head;
	uint32_t tail;

	memcpy(&head, rule, sizeof(head));
	memcpy(&tail, (const uint8_t *)rule + sizeof(head), sizeof(tail));
	return (head ^ (uint64_t)tail << 17) * UINT64_C(0x9e3779b97f4a7c15) >> HASH_SHIFT;
}

/* The rule's slot, or the empty one where it belongs: there are more slots than rules. */
static uint8_t *find_slot(struct unwind_pages *p, const struct abi_unwind_rule *rule)
{
	size_t slot = slot_of(rule);

	while (p->slots[slot] && !same_rule(&p->rules[p->slots[slot] - 1], rule))
		slot = (slot + 1) % HASH_SLOTS;
	return &p->slots[slot];
}

static uint8_t add_rule(struct unwind_pages *p, const struct abi_unwind_rule *rule, uint8_t *slot)
{
	if (p->rule_count >= LAST_RULE) {
		p->counts.left_out++;
		p->rules[LAST_RULE] = unsupported;
		p->rule_count = ABI_UNWIND_PAGE_RULES;
		return LAST_RULE;
	}
	p->rules[p->rule_count] = *rule;
	*slot = (uint8_t)(p->rule_count + 1);
	return (uint8_t)p->rule_count++;
}

static uint8_t number_of(struct unwind_pages *p, const struct abi_unwind_rule *rule)
{
	uint8_t *slot = find_slot(p, rule);

	return *slot ? *slot - 1 : add_rule(p, rule, slot);
}

/* steps[i]: how many rows begin before i * 4 KiB. */
static void fill_steps(struct unwind_pages *p)
{
	uint32_t row = 0;

	for (uint32_t i = 0; i < ABI_UNWIND_STEPS; i++) {
		while (row < p->row_count && p->addresses[row] < i << STEP_SHIFT)
			row++;
		p->output.header.steps[i] = (uint16_t)row;
	}
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t size)
{
	memcpy(at, bytes, size);
	return at + size;
}

static bool is_framed(const struct unwind_pages *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->rule_count; i++) {
		const struct abi_unwind_rule *rule = &p->rules[i];

		if (rule->cfa == ABI_CFA_NONE)
			continue;
		if (rule->cfa != ABI_CFA_SP || !(rule->extra & ABI_UNWIND_FRAMED))
			return false;
		any = true;
	}
	return any;
}

static void write_page(struct unwind_pages *p)
{
	size_t padding = -(size_t)p->row_count * 3 & 3;
	uint8_t *at = p->output.bytes + sizeof(p->output.header);

	at = put(at, p->addresses, p->row_count * sizeof(*p->addresses));
	at = put(at, p->numbers, p->row_count);
	memset(at, 0, padding);
	at = put(at + padding, p->rules, p->rule_count * sizeof(*p->rules));
	p->output.header = (struct abi_unwind_page){
		.row_count = (uint16_t)p->row_count,
		.rule_count = (uint16_t)p->rule_count,
		.size = (uint32_t)(at - p->output.bytes),
		.flags = is_framed(p) ? ABI_UNWIND_PAGE_FRAMED : 0,
	};
	fill_steps(p);
	p->counts.pages++;
	p->counts.rows += p->row_count;
	p->error = p->sink(p->context, p->page << ABI_UNWIND_PAGE_SHIFT, &p->output.header);
}

static void finish_page(struct unwind_pages *p)
{
	bool empty = !p->row_count && same_rule(&p->rules[0], &none);

	if (p->row_count > ABI_UNWIND_PAGE_ROWS)
		p->counts.left_out++;
	else if (!empty && !p->error)
		write_page(p);
}

static void start_page(struct unwind_pages *p, uint64_t page)
{
	p->page = page;
	p->row_count = 0;
	p->rule_count = 1;
	p->rules[0] = p->current;
	memset(p->slots, 0, sizeof(p->slots));
	*find_slot(p, &p->current) = 1;
}

struct unwind_pages *unwind_pages_create(unwind_page_sink *sink, void *context)
{
	struct unwind_pages *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->sink = sink;
	p->context = context;
	p->current = none;
	start_page(p, 0);
	return p;
}

void unwind_pages_destroy(struct unwind_pages *p)
{
	free(p);
}

/* On to PAGE, over pages in which nothing changes. */
static void go_to_page(struct unwind_pages *p, uint64_t page)
{
	while (p->page != page && !p->error) {
		finish_page(p);
		start_page(p, same_rule(&p->current, &none) ? page : p->page + 1);
	}
}

static void append(struct unwind_pages *p, uint32_t offset, const struct abi_unwind_rule *rule)
{
	/* One more than there may be marks the page as too full. */
	if (p->row_count >= ABI_UNWIND_PAGE_ROWS) {
		p->row_count = ABI_UNWIND_PAGE_ROWS + 1;
		return;
	}
	p->addresses[p->row_count] = (uint16_t)offset;
	p->numbers[p->row_count++] = number_of(p, rule);
}

/* From ADDRESS on, RULE. */
static void change(struct unwind_pages *p, uint64_t address, const struct abi_unwind_rule *rule)
{
	if (same_rule(&p->current, rule))
		return;
	go_to_page(p, address >> ABI_UNWIND_PAGE_SHIFT);
	p->current = *rule;
	p->counts.unsupported += rule->cfa == ABI_CFA_UNSUPPORTED;
	if (address % PAGE_BYTES)
		append(p, (uint32_t)(address % PAGE_BYTES), rule);
	else
		start_page(p, p->page);
}

void unwind_pages_row(
	struct unwind_pages *p, uint64_t low, uint64_t high, const struct abi_unwind_rule *rule)
{
	low = MAX(low, p->end);
	if (low >= high || p->error)
		return;
	if (low > p->end)
		change(p, p->end, &none);
	change(p, low, rule);
	p->end = high;
}

int unwind_pages_finish(struct unwind_pages *p, struct unwind_counts *ret_counts)
{
	change(p, p->end, &none);
	if (!p->error)
		finish_page(p);
	*ret_counts = p->counts;
	return p->error;
}
