/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms says where functions begin and not where they end, so the table does two things about
 * addresses that are nobody's. The linker's marks (_etext and its like) stay in it as symbols
 * without a name. And the addresses are divided into regions, stretches of one module's symbols
 * without a hole of a megabyte: the last function of a region reaches to the end of its page and
 * not to the next module. A region also gives 32-bit offsets a base, wherever in the 64-bit address
 * space a module was loaded.
 */
#include "symbolizer/kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "symbolizer/kallsyms_parse.h"

enum {
	PAGE_BYTES_ =
		4096, /* the smallest: a shorter reach is a missing name, a longer a wrong one */
	MAX_HOLE_BYTES = 1 << 20,
	MAX_ADDED = 1 << 16,
	MAX_REGIONS = 1 << 20,
	MAX_ADDED_NAME_BYTES = 512,
};

static const char bpf_module[] = "bpf";

/* Offset and name side by side: the search ends in the cache line that has both. */
struct symbol {
	uint32_t offset; /* from the region's base; ascending in each region */
	uint32_t name; /* offset in the text */
};

/* Symbols [first, first + count) of one module. */
struct region {
	uint64_t base; /* kaddr that the offsets count from: its first symbol's */
	uint64_t end;
	uint32_t first, count;
	uint16_t module;
};

/* What PERF_RECORD_KSYMBOL told. */
struct added {
	uint64_t start;
	uint32_t size;
	const char *module;
	char *name;
};

struct kallsyms {
	struct region *regions; /* ascending, apart from each other */
	size_t region_count, region_capacity;
	struct symbol *symbols;
	size_t count;
	char *text;
	size_t text_bytes;
	struct ksym_module *modules; /* number 1 is the first */
	size_t module_count;
	struct kallsyms_marks marks;
	struct added *added; /* ascending, apart from each other */
	size_t added_count, added_capacity;
};

DEFINE_AUTO(kallsyms);

/* ---- packing ------------------------------------------------------------------------------- */

static int compare_lines(const void *a, const void *b, void *text)
{
	const struct ksym_line *left = a, *right = b;

	if (left->kaddr != right->kaddr)
		return left->kaddr < right->kaddr ? -1 : 1;
	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	return strcmp((const char *)text + left->name, (const char *)text + right->name);
}

static void sort_range(struct ksym_parse *p, size_t first, size_t end)
{
	qsort_r(p->lines + first, end - first, sizeof(*p->lines), compare_lines, p->text.bytes);
}

/* The line before which the addresses first descend. */
static size_t find_descent(const struct ksym_parse *p)
{
	size_t i = 1;

	while (i < p->count && p->lines[i - 1].kaddr <= p->lines[i].kaddr)
		i++;
	return i;
}

/*
 * Kernels list their own symbols by address, then modules as they were loaded. Sorting it all costs
 * time and as much memory again, so only what is out of order is sorted: the modules, and the few
 * names that share an address.
 */
static void sort_lines(struct ksym_parse *p)
{
	size_t descent = find_descent(p), end;

	if (descent < p->count)
		sort_range(p, descent, p->count);
	if (find_descent(p) < p->count)
		sort_range(p, 0, p->count);
	for (size_t first = 0; first < p->count; first = end) {
		end = first + 1;
		while (end < p->count && p->lines[end].kaddr == p->lines[first].kaddr)
			end++;
		if (end - first > 1)
			sort_range(p, first, end);
	}
}

static uint64_t end_of_page(uint64_t kaddr)
{
	uint64_t end = (kaddr | (PAGE_BYTES_ - 1)) + 1;

	return end ? end : UINT64_MAX;
}

/* Whether LINE cannot be in the region whose last symbol is at LAST. */
static bool leaves_region(const struct region *r, const struct ksym_line *line, uint64_t last)
{
	if (line->module != r->module || line->kaddr - r->base > UINT32_MAX)
		return true;
	/* The kernel's own code ends at marks; a big hole in it is one big function. */
	return r->module != KSYM_KERNEL && line->kaddr - last > MAX_HOLE_BYTES;
}

static int begin_region(struct kallsyms *k, const struct ksym_line *line)
{
	int err = array_reserve(k->regions, k->region_capacity, k->region_count + 1, MAX_REGIONS);

	if (err)
		return err;
	if (k->region_count) {
		struct region *before = &k->regions[k->region_count - 1];

		before->end = MIN(before->end, line->kaddr);
	}
	k->regions[k->region_count++] = (struct region){
		.base = line->kaddr,
		.first = (uint32_t)k->count,
		.module = line->module,
	};
	return 0;
}

/*
 * In place, as both together would be the peak of our memory: a symbol is half as long as a line,
 * so it is written where lines were read already.
 */
static int pack_lines(struct kallsyms *k, struct ksym_parse *p)
{
	size_t line_count = p->count;
	uint64_t last = 0;

	_Static_assert(sizeof(struct symbol) <= sizeof(struct ksym_line), "packed in place");
	for (size_t i = 0; i < line_count; i++) {
		struct ksym_line line = p->lines[i];
		struct region *r = k->region_count ? &k->regions[k->region_count - 1] : NULL;

		if (r && line.kaddr == last)
			continue; /* the best of one address came first */
		if (!r || leaves_region(r, &line, last)) {
			int err = begin_region(k, &line);

			if (err)
				return err;
			r = &k->regions[k->region_count - 1];
		}
		last = line.kaddr;
		k->symbols[k->count++] = (struct symbol){
			.offset = (uint32_t)(line.kaddr - r->base),
			.name = line.name,
		};
		r->count++;
		r->end = end_of_page(line.kaddr);
	}
	return 0;
}

static void *shrink(void *block, size_t bytes)
{
	void *smaller = realloc(block, bytes);

	return smaller ? smaller : block;
}

static int pack(struct kallsyms *k, struct ksym_parse *p)
{
	int err;

	k->symbols = (void *)p->lines;
	err = pack_lines(k, p);
	take(p->lines);
	if (err)
		return err;
	k->symbols = shrink(k->symbols, k->count * sizeof(*k->symbols));
	k->text_bytes = p->text.size;
	k->text = shrink(take(p->text.bytes), k->text_bytes);
	k->modules = take(p->modules);
	k->module_count = p->module_count;
	k->marks = p->marks;
	return 0;
}

int kallsyms_create(int fd, struct kallsyms **ret_kallsyms)
{
	autocall(auto_kallsyms_destroy) struct kallsyms *k = calloc(1, sizeof(*k));
	autocall(ksym_parse_deinit) struct ksym_parse p;
	int err;

	ksym_parse_init(&p);
	if (!k)
		return -ENOMEM;
	err = ksym_parse_file(&p, fd);
	if (err)
		return err;
	if (!p.count)
		return p.hidden ? -EACCES : -EBADMSG;
	sort_lines(&p);
	err = pack(k, &p);
	if (err)
		return err;
	*ret_kallsyms = take(k);
	return 0;
}

void kallsyms_destroy(struct kallsyms *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->added_count; i++)
		free(k->added[i].name);
	free(k->added);
	free(k->regions);
	free(k->symbols);
	free(k->text);
	free(k->modules);
	free(k);
}

/* ---- look-up ------------------------------------------------------------------------------- */

/* Number of added symbols that start at or below KADDR. */
static size_t added_up_to(const struct kallsyms *k, uint64_t kaddr)
{
	size_t low = 0, high = k->added_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (k->added[middle].start <= kaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct region *find_region(const struct kallsyms *k, uint64_t kaddr)
{
	size_t low = 0, high = k->region_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (k->regions[middle].base <= kaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || kaddr >= k->regions[low - 1].end)
		return NULL;
	return &k->regions[low - 1];
}

/*
 * The last symbol of R that is not above KADDR, which is in R. Without a branch that depends on the
 * data: the compiler makes conditional moves of it.
 */
static struct symbol *find_symbol(const struct kallsyms *k, const struct region *r, uint64_t kaddr)
{
	uint32_t offset = (uint32_t)MIN(kaddr - r->base, UINT32_MAX);
	struct symbol *base = k->symbols + r->first;

	for (size_t count = r->count; count > 1;) {
		size_t half = count / 2;

		base = base[half].offset <= offset ? base + half : base;
		count -= half;
	}
	return base;
}

static const char *module_name(const struct kallsyms *k, uint16_t module)
{
	return module == KSYM_KERNEL ? "" : k->modules[module - 1].name;
}

static bool lookup_added(const struct kallsyms *k, uint64_t kaddr, struct ksymbol *ret_symbol)
{
	size_t count = added_up_to(k, kaddr);
	const struct added *a = count ? &k->added[count - 1] : NULL;

	if (!a || kaddr - a->start >= a->size)
		return false;
	*ret_symbol = (struct ksymbol){ .name = a->name, .module = a->module, .start = a->start };
	return true;
}

bool kallsyms_lookup(const struct kallsyms *k, uint64_t kaddr, struct ksymbol *ret_symbol)
{
	const struct region *r;
	const struct symbol *symbol;

	if (k->added_count && lookup_added(k, kaddr, ret_symbol))
		return true;
	r = find_region(k, kaddr);
	if (!r)
		return false;
	symbol = find_symbol(k, r, kaddr);
	if (symbol->name == KSYM_NO_NAME)
		return false;
	*ret_symbol = (struct ksymbol){
		.name = k->text + symbol->name,
		.module = module_name(k, r->module),
		.start = r->base + symbol->offset,
	};
	return true;
}

/* ---- what comes and goes ------------------------------------------------------------------- */

static void remove_added(struct kallsyms *k, size_t number)
{
	free(k->added[number].name);
	k->added_count--;
	memmove(&k->added[number], &k->added[number + 1],
		(k->added_count - number) * sizeof(*k->added));
}

static bool overlaps(const struct added *a, uint64_t start, uint32_t size)
{
	return a->start < start ? start - a->start < a->size : a->start - start < size;
}

/* The names that kallsyms itself gives to the pages of ftrace and kprobes. */
static const char *module_of(const char *name, bool bpf)
{
	if (bpf)
		return bpf_module;
	return !strncmp(name, "ftrace", 6) ? "__builtin__ftrace" : "__builtin__kprobes";
}

int kallsyms_add(struct kallsyms *k, uint64_t start, uint32_t size, const char *name, bool bpf)
{
	autofree char *copy = strndup(name, MAX_ADDED_NAME_BYTES);
	size_t at;
	int err;

	if (!copy)
		return -ENOMEM;
	if (!size || !*copy || start + size < start)
		return -EBADMSG;
	utf8_clean(copy, strlen(copy), true);
	err = array_reserve(k->added, k->added_capacity, k->added_count + 1, MAX_ADDED);
	if (err)
		return err;
	/* What was there has gone without a record of it. */
	at = added_up_to(k, start);
	if (at > 0 && overlaps(&k->added[at - 1], start, size))
		remove_added(k, --at);
	while (at < k->added_count && overlaps(&k->added[at], start, size))
		remove_added(k, at);
	memmove(&k->added[at + 1], &k->added[at], (k->added_count - at) * sizeof(*k->added));
	k->added[at] = (struct added){
		.start = start,
		.size = size,
		.module = module_of(copy, bpf),
		.name = copy,
	};
	k->added_count++;
	take(copy);
	return 0;
}

void kallsyms_remove(struct kallsyms *k, uint64_t start)
{
	size_t count = added_up_to(k, start);
	const struct region *r;
	struct symbol *symbol;

	if (count && k->added[count - 1].start == start)
		remove_added(k, count - 1);
	/* One that was there before us: its place stays, without a name. */
	r = find_region(k, start);
	if (!r || r->module == KSYM_KERNEL)
		return;
	symbol = find_symbol(k, r, start);
	if (r->base + symbol->offset == start)
		symbol->name = KSYM_NO_NAME;
}

/* ---- the whole ----------------------------------------------------------------------------- */

void kallsyms_text(const struct kallsyms *k, uint64_t *ret_start, uint64_t *ret_end)
{
	*ret_start = k->marks.stext;
	*ret_end = k->marks.etext;
}

const struct kallsyms_marks *kallsyms_marks(const struct kallsyms *k)
{
	return &k->marks;
}

size_t kallsyms_bytes(const struct kallsyms *k)
{
	return sizeof(*k) + k->region_capacity * sizeof(*k->regions) +
	       k->count * sizeof(*k->symbols) + k->text_bytes +
	       k->module_count * sizeof(*k->modules) + k->added_capacity * sizeof(*k->added);
}

bool kallsyms_module_range(
	const struct kallsyms *k, const char *module, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start = UINT64_MAX, end = 0;

	for (size_t i = 0; i < k->region_count; i++) {
		if (strcmp(module_name(k, k->regions[i].module), module))
			continue;
		start = MIN(start, k->regions[i].base);
		end = MAX(end, k->regions[i].end);
	}
	for (size_t i = 0; i < k->added_count; i++) {
		if (strcmp(k->added[i].module, module))
			continue;
		start = MIN(start, k->added[i].start);
		end = MAX(end, k->added[i].start + k->added[i].size);
	}
	if (start >= end)
		return false;
	*ret_start = start;
	*ret_end = end;
	return true;
}
