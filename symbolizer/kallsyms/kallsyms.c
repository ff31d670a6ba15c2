/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms lists where functions begin, not where they end. Two things keep addresses between
 * functions from getting a wrong name. The linker's marks (_etext and others) stay in the table as
 * symbols without a name. And addresses are divided into regions, runs of one module's symbols
 * without a hole of a megabyte: a region's last function reaches to the end of its page and not to
 * the next module. A region is also the base of 32-bit offsets, wherever in the 64-bit address
 * space a module is loaded.
 */
#include "symbolizer/kallsyms/kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/kallsyms/kallsyms_internal.h"
#include "symbolizer/kallsyms/ksym_modules.h"

enum {
	PAGE_BYTES_ = 4096, /* smallest page: too short costs a name, too long gives a wrong one */
	MAX_HOLE_BYTES = 1 << 20,
	MAX_MODULE_BYTES = 1 << 30, /* of one whose size is not known */
	MAX_REGIONS = 1 << 20,
	MAX_BEFORE = 4, /* older tables kept */
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

/* Returns the first line whose address is lower than its predecessor's. */
static size_t find_descent(const struct ksym_parse *p)
{
	size_t i = 1;

	while (i < p->count && p->lines[i - 1].kaddr <= p->lines[i].kaddr)
		i++;
	return i;
}

/*
 * Kernels list their own symbols by address, then modules in load order. Sorting everything costs
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

/* Returns true if LINE cannot be in region R, whose last symbol is at LAST. */
static bool leaves_region(const struct region *r, const struct ksym_line *line, uint64_t last)
{
	if (line->module != r->module || line->kaddr - r->base > UINT32_MAX)
		return true;
	/* The kernel's own code ends at marks; a big hole in it is one big function. */
	return r->module != KSYM_KERNEL && line->kaddr - last > MAX_HOLE_BYTES;
}

/* Not a module, but the name under which kallsyms lists what is loaded one by one. */
static bool is_collection(const char *module)
{
	return !strcmp(module, "bpf") || !strncmp(module, "__builtin__", 11);
}

/* Modules are loaded at the start of a page; the first of its lines is the lowest. */
static void place_module(struct ksym_module *module, uint64_t first_kaddr)
{
	if (module->size || is_collection(module->name))
		return;
	module->base = first_kaddr & ~(uint64_t)(PAGE_BYTES_ - 1);
	module->size = MAX_MODULE_BYTES;
}

static int begin_region(
	struct kallsyms *k, struct ksym_module *modules, const struct ksym_line *line)
{
	int err = array_reserve(k->regions, k->region_capacity, k->region_count + 1, MAX_REGIONS);

	if (err)
		return err;
	if (k->region_count) {
		struct region *before = &k->regions[k->region_count - 1];

		before->end = MIN(before->end, line->kaddr);
	}
	if (line->module != KSYM_KERNEL)
		place_module(&modules[line->module - 1], line->kaddr);
	k->regions[k->region_count++] = (struct region){
		.base = line->kaddr,
		.first = (uint32_t)k->count,
		.module = line->module,
	};
	return 0;
}

/*
 * Packs in place, because having both arrays would be our peak of memory: a symbol is half as long
 * as a line, so it overwrites lines that have been read.
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
			continue; /* the best name of an address comes first */
		if (!r || leaves_region(r, &line, last)) {
			int err = begin_region(k, p->modules, &line);

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

static int kallsyms_pack(struct kallsyms *k, struct ksym_parse *p)
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
	if (!k->marks.text)
		k->marks.text = k->marks.stext;
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
	err = kallsyms_pack(k, &p);
	if (err)
		return err;
	*ret_kallsyms = take(k);
	return 0;
}

int kallsyms_create_empty(struct kallsyms **ret_kallsyms)
{
	*ret_kallsyms = calloc(1, sizeof(**ret_kallsyms));
	return *ret_kallsyms ? 0 : -ENOMEM;
}

void kallsyms_destroy(struct kallsyms *k)
{
	if (!k)
		return;
	kallsyms_destroy(k->before);
	ksym_tenants_deinit(&k->tenants);
	free(k->regions);
	free(k->symbols);
	free(k->text);
	free(k->modules);
	free(k);
}

int kallsyms_place_modules(struct kallsyms *k, int fd)
{
	return ksym_modules_read(fd, k->modules, k->module_count);
}

/* ---- what comes and goes ------------------------------------------------------------------- */

/* The start of the first symbol above KADDR, 0 if there is none. */
static uint64_t kallsyms_next_start(const struct kallsyms *k, uint64_t kaddr)
{
	size_t count = kallsyms_regions_up_to(k, kaddr);

	if (count) {
		const struct region *r = &k->regions[count - 1];
		const struct symbol *next = kallsyms_find_symbol(k, r, kaddr) + 1;

		if (next < k->symbols + r->first + r->count)
			return r->base + next->offset;
	}
	return count < k->region_count ? k->regions[count].base : 0;
}

/* Ends TENANT where the next symbol begins if it may claim too much. */
static void kallsyms_cut_tenant(const struct kallsyms *k, struct ksym_tenant *tenant)
{
	uint64_t next = tenant->at_most ? kallsyms_next_start(k, tenant->start) : 0;

	if (next)
		tenant->size = (uint32_t)MIN(tenant->size, next - tenant->start);
}

/*
 * The records of BPF trampolines say that each has a page, but since Linux 6.8 several share one,
 * with each other and with programs.
 */
static struct ksym_tenant kallsyms_tenant_of(
	const struct kallsyms *k, const struct kallsyms_event *event)
{
	struct ksym_tenant tenant = {
		.start = event->start,
		.size = event->size,
		.name = (char *)event->name,
		.at_most = event->bpf && strncmp(event->name, "bpf_prog_", 9) != 0,
	};

	kallsyms_cut_tenant(k, &tenant);
	return tenant;
}

int kallsyms_add(struct kallsyms *k, const struct kallsyms_event *event)
{
	const struct ksym_tenant came = kallsyms_tenant_of(k, event);

	return ksym_tenants_add(&k->tenants, &came, event->bpf, event->time_ns);
}

int kallsyms_gone(struct kallsyms *k, const struct kallsyms_event *event)
{
	const struct ksym_tenant went = kallsyms_tenant_of(k, event);

	return ksym_tenants_gone(&k->tenants, &went, event->bpf, event->time_ns);
}

size_t kallsyms_refused(const struct kallsyms *k)
{
	return k->tenants.refused;
}

/* A tenant that is listed in the table keeps its entry, without a name. */
static void forget_listed(void *context, const struct ksym_tenant *tenant)
{
	struct kallsyms *k = context;
	const struct region *r = kallsyms_find_region(k, tenant->start);
	struct symbol *symbol;

	if (!r || r->module == KSYM_KERNEL)
		return;
	symbol = kallsyms_find_symbol(k, r, tenant->start);
	if (r->base + symbol->offset == tenant->start &&
		!strcmp(k->text + symbol->name, tenant->name))
		symbol->name = KSYM_NO_NAME;
}

void kallsyms_forget(struct kallsyms *k, uint64_t before_ns)
{
	struct kallsyms **link = &k->before;

	ksym_tenants_forget(&k->tenants, before_ns, forget_listed, k);
	while (*link && (*link)->replaced_ns >= before_ns)
		link = &(*link)->before;
	kallsyms_destroy(*link);
	*link = NULL;
}

static struct ksym_tenants kallsyms_take_tenants(struct kallsyms *k)
{
	struct ksym_tenants tenants = k->tenants;

	k->tenants = (struct ksym_tenants){ 0 };
	return tenants;
}

int kallsyms_replace(struct kallsyms **k, struct kallsyms *newer, uint64_t now_ns)
{
	size_t count = 0;

	for (const struct kallsyms *older = *k; older; older = older->before)
		count++;
	if (count > MAX_BEFORE)
		return -E2BIG;
	newer->tenants = kallsyms_take_tenants(*k);
	(*k)->replaced_ns = now_ns;
	newer->before = *k;
	*k = newer;
	return 0;
}

void kallsyms_read_over(struct kallsyms **k, struct kallsyms *newer)
{
	struct ksym_tenants *t = &newer->tenants;

	*t = kallsyms_take_tenants(*k);
	for (size_t i = 0; i < t->there_count; i++)
		kallsyms_cut_tenant(newer, &t->there[i]);
	for (size_t i = 0; i < t->past_count; i++)
		kallsyms_cut_tenant(newer, &t->past[i]);
	kallsyms_destroy(*k);
	*k = newer;
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
	       k->module_count * sizeof(*k->modules) + ksym_tenants_bytes(&k->tenants) +
	       (k->before ? kallsyms_bytes(k->before) : 0);
}
