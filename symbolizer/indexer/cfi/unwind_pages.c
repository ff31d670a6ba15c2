/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows come in as ranges and are stored as changes: `from this address on, this rule`. The current
 * page collects its changes; a change in another page writes it. If a rule spans whole pages, each
 * of them is written with one rule and no rows, because pages are self-contained.
 */
#include "symbolizer/indexer/cfi/unwind_pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/cfi/unwind_pack.h"

enum {
	PAGE_BYTES = 1 << ABI_UNWIND_PAGE_SHIFT,
	/* Number of the rule that replaces rules that do not fit a full page. */
	LAST_RULE = ABI_UNWIND_PAGE_RULES - 1,
	HASH_SLOTS = 1024,
	HASH_SHIFT = 64 - 10,
};

static const struct abi_unwind_rule none = { .cfa = ABI_CFA_NONE };
static const struct abi_unwind_rule unsupported = { .cfa = ABI_CFA_UNSUPPORTED };

struct unwind_pages {
	unwind_page_sink *sink;
	void *context;
	int error;
	struct unwind_counts counts;

	uint64_t end; /* end of the last row */
	struct abi_unwind_rule current; /* of the last change */
	uint64_t page; /* address >> ABI_UNWIND_PAGE_SHIFT */
	struct unwind_rows rows;
	uint8_t last; /* number of the last row's rule */
	uint8_t slots[HASH_SLOTS]; /* number of a rule + 1; 0 = empty */
	struct unwind_pack pack;
};

static bool same_rule(const struct abi_unwind_rule *a, const struct abi_unwind_rule *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static size_t unwind_pages_slot_of(const struct abi_unwind_rule *rule)
{
	uint64_t head;
	uint32_t tail;

	memcpy(&head, rule, sizeof(head));
	memcpy(&tail, (const uint8_t *)rule + sizeof(head), sizeof(tail));
	return (head ^ (uint64_t)tail << 17) * UINT64_C(0x9e3779b97f4a7c15) >> HASH_SHIFT;
}

/* Returns the rule's slot, or the empty slot for it: there are more slots than rules. */
static inline uint8_t *unwind_pages_find_slot(
	struct unwind_pages *p, const struct abi_unwind_rule *rule)
{
	size_t slot = unwind_pages_slot_of(rule);

	while (p->slots[slot] && !same_rule(&p->rows.rules[p->slots[slot] - 1], rule))
		slot = (slot + 1) % HASH_SLOTS;
	return &p->slots[slot];
}

static uint8_t unwind_pages_add_rule(
	struct unwind_pages *p, const struct abi_unwind_rule *rule, uint8_t *slot)
{
	if (p->rows.rule_count >= LAST_RULE) {
		p->counts.left_out++;
		p->rows.rules[LAST_RULE] = unsupported;
		p->rows.rule_count = ABI_UNWIND_PAGE_RULES;
		return LAST_RULE;
	}
	p->rows.rules[p->rows.rule_count] = *rule;
	*slot = (uint8_t)(p->rows.rule_count + 1);
	return (uint8_t)p->rows.rule_count++;
}

static uint8_t unwind_pages_number_of(struct unwind_pages *p, const struct abi_unwind_rule *rule)
{
	uint8_t *slot = unwind_pages_find_slot(p, rule);

	return *slot ? *slot - 1 : unwind_pages_add_rule(p, rule, slot);
}

static bool unwind_pages_is_framed(const struct unwind_pages *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->rows.rule_count; i++) {
		const struct abi_unwind_rule *rule = &p->rows.rules[i];

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
	unwind_pack(&p->pack, &p->rows, unwind_pages_is_framed(p) ? ABI_UNWIND_PAGE_FRAMED : 0);
	p->counts.pages++;
	p->counts.rows += p->rows.row_count;
	p->error = p->sink(p->context, p->page << ABI_UNWIND_PAGE_SHIFT, &p->pack.output.header);
}

static void finish_page(struct unwind_pages *p)
{
	bool empty = !p->rows.row_count && same_rule(&p->rows.rules[0], &none);

	if (p->rows.row_count > ABI_UNWIND_PAGE_ROWS)
		p->counts.left_out++;
	else if (!empty && !p->error)
		write_page(p);
}

static void start_page(struct unwind_pages *p, uint64_t page)
{
	p->page = page;
	p->last = 0;
	p->rows.row_count = 0;
	p->rows.rule_count = 1;
	p->rows.rules[0] = p->current;
	memset(p->slots, 0, sizeof(p->slots));
	*unwind_pages_find_slot(p, &p->current) = 1;
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

/* Goes to PAGE, writing the pages in between, in which nothing changes. */
static void go_to_page(struct unwind_pages *p, uint64_t page)
{
	while (p->page != page && !p->error) {
		finish_page(p);
		start_page(p, same_rule(&p->current, &none) ? page : p->page + 1);
	}
}

static void unwind_pages_append(
	struct unwind_pages *p, uint32_t offset, const struct abi_unwind_rule *rule)
{
	struct unwind_rows *rows = &p->rows;
	uint8_t number;

	/* A row count over the limit marks the page as too full. */
	if (rows->row_count >= ABI_UNWIND_PAGE_ROWS) {
		rows->row_count = ABI_UNWIND_PAGE_ROWS + 1;
		return;
	}
	number = unwind_pages_number_of(p, rule);
	/* All rules that do not fit have the same number. */
	if (number == p->last)
		return;
	p->last = number;
	rows->addresses[rows->row_count] = (uint16_t)offset;
	rows->numbers[rows->row_count++] = number;
}

/* RULE is valid from ADDRESS on. */
static void change(struct unwind_pages *p, uint64_t address, const struct abi_unwind_rule *rule)
{
	if (same_rule(&p->current, rule))
		return;
	go_to_page(p, address >> ABI_UNWIND_PAGE_SHIFT);
	p->current = *rule;
	p->counts.unsupported += rule->cfa == ABI_CFA_UNSUPPORTED;
	if (address % PAGE_BYTES)
		unwind_pages_append(p, (uint32_t)(address % PAGE_BYTES), rule);
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

/*
 * Fast path: takes rows as long as they are in the current page and it already has their rules. The
 * first one must start at the end of the last row. Returns how many were taken.
 */
static size_t take_known(struct unwind_pages *p, const struct unwind_row *rows, size_t count)
{
	const uint64_t start = p->page << ABI_UNWIND_PAGE_SHIFT;
	struct unwind_rows *to = &p->rows;
	uint32_t row_count = to->row_count, last = p->last;
	size_t i;

	for (i = 0; i < count && row_count < ABI_UNWIND_PAGE_ROWS; i++) {
		uint64_t offset = rows[i].low - start;
		uint32_t number = *unwind_pages_find_slot(p, &rows[i].rule);

		/* New rule, first byte of the page, or another page. */
		if (!number || offset - 1 >= PAGE_BYTES - 1 ||
			rows[i].rule.cfa == ABI_CFA_UNSUPPORTED)
			break;
		number--;
		to->addresses[row_count] = (uint16_t)offset;
		to->numbers[row_count] = (uint8_t)number;
		row_count += number != last;
		last = number;
	}
	if (i)
		p->current = rows[i - 1].rule;
	to->row_count = row_count;
	p->last = (uint8_t)last;
	return i;
}

void unwind_pages_rows(
	struct unwind_pages *p, const struct unwind_row *rows, size_t count, uint64_t high)
{
	for (size_t i = 0; i < count; i++) {
		if (rows[i].low == p->end && !p->error) {
			i += take_known(p, rows + i, count - i);
			p->end = i < count ? rows[i].low : high;
		}
		if (i < count)
			unwind_pages_row(p, rows[i].low, i + 1 < count ? rows[i + 1].low : high,
				&rows[i].rule);
	}
}

int unwind_pages_finish(struct unwind_pages *p, struct unwind_counts *ret_counts)
{
	change(p, p->end, &none);
	if (!p->error)
		finish_page(p);
	*ret_counts = p->counts;
	return p->error;
}
