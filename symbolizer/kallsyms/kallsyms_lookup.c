/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of kallsyms.c: finds the symbol of an address, now or at a sample's time. */
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/kallsyms/kallsyms_internal.h"

size_t kallsyms_regions_up_to(const struct kallsyms *k, uint64_t kaddr)
{
	size_t low = 0, high = k->region_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (k->regions[middle].base <= kaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct region *kallsyms_find_region(const struct kallsyms *k, uint64_t kaddr)
{
	size_t count = kallsyms_regions_up_to(k, kaddr);

	if (!count || kaddr >= k->regions[count - 1].end)
		return NULL;
	return &k->regions[count - 1];
}

/* Free of data-dependent branches: the compiler emits conditional moves. */
struct symbol *kallsyms_find_symbol(
	const struct kallsyms *k, const struct region *r, uint64_t kaddr)
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

static const char *kallsyms_module_name(const struct kallsyms *k, uint16_t module)
{
	return module == KSYM_KERNEL ? "" : k->modules[module - 1].name;
}

/* Fills in what SYMBOL of module number MODULE, at KADDR, was loaded with. */
static void find_image(
	const struct kallsyms *k, uint16_t module, uint64_t kaddr, struct ksymbol *symbol)
{
	const struct ksym_module *m = module == KSYM_KERNEL ? NULL : &k->modules[module - 1];

	if (!m) {
		symbol->image = "";
		symbol->image_start = k->marks.text;
	} else if (kaddr >= m->base && kaddr - m->base < m->size) {
		symbol->image = m->name;
		symbol->image_start = m->base;
	} else {
		symbol->image = symbol->name;
		symbol->image_start = symbol->start;
	}
}

/* Looks up in the table as read, without tenants. */
static bool lookup_listed(const struct kallsyms *k, uint64_t kaddr, struct ksymbol *ret_symbol)
{
	const struct region *r = kallsyms_find_region(k, kaddr);
	const struct symbol *symbol;

	if (!r)
		return false;
	symbol = kallsyms_find_symbol(k, r, kaddr);
	if (symbol->name == KSYM_NO_NAME)
		return false;
	*ret_symbol = (struct ksymbol){
		.name = k->text + symbol->name,
		.module = kallsyms_module_name(k, r->module),
		.start = r->base + symbol->offset,
	};
	find_image(k, r->module, kaddr, ret_symbol);
	return true;
}

static bool is_same_symbol(const struct ksymbol *a, const struct ksymbol *b)
{
	return a->start == b->start && !strcmp(a->name, b->name) && !strcmp(a->module, b->module);
}

/*
 * Looks up in this table and the ones it replaced. If their answers differ, the sample's module is
 * ambiguous and it gets no name.
 */
static bool lookup_tables(const struct kallsyms *k, uint64_t kaddr, struct ksymbol *ret_symbol)
{
	bool found = false;

	for (; k; k = k->before) {
		struct ksymbol symbol;

		if (!lookup_listed(k, kaddr, &symbol))
			continue;
		if (found && !is_same_symbol(&symbol, ret_symbol))
			return false;
		*ret_symbol = symbol;
		found = true;
	}
	return found;
}

uint32_t kallsyms_tenant(const struct kallsyms *k, uint64_t kaddr)
{
	const struct ksym_tenant *tenant = ksym_tenants_at(&k->tenants, kaddr);

	return tenant && !tenant->was_before ? tenant->number : 0;
}

uint64_t kallsyms_epoch(const struct kallsyms *k)
{
	return k->tenants.last_number;
}

bool kallsyms_lookup_of(
	const struct kallsyms *k, uint64_t kaddr, uint32_t tenant, struct ksymbol *ret_symbol)
{
	const struct ksym_tenant *whose = tenant ? ksym_tenants_find(&k->tenants, tenant, kaddr)
						 : ksym_tenants_first(&k->tenants, kaddr);
	struct ksymbol symbol;

	if (whose) {
		*ret_symbol = (struct ksymbol){
			.name = whose->name,
			.module = whose->module,
			.start = whose->start,
			.image = whose->name,
			.image_start = whose->start,
		};
		return true;
	}
	/*
	 * The table may have been read after the arrival of tenants whose records are still unread.
	 */
	if (tenant || !lookup_tables(k, kaddr, &symbol) ||
		ksym_tenants_came(&k->tenants, kaddr, symbol.start, symbol.name))
		return false;
	*ret_symbol = symbol;
	return true;
}

bool kallsyms_lookup(const struct kallsyms *k, uint64_t kaddr, struct ksymbol *ret_symbol)
{
	return kallsyms_lookup_of(k, kaddr, kallsyms_tenant(k, kaddr), ret_symbol);
}

/* Uses the newest table that has the module: a reloaded module lies elsewhere. */
static void listed_range(
	const struct kallsyms *k, const char *module, uint64_t *start, uint64_t *end)
{
	for (; k && *start >= *end; k = k->before) {
		for (size_t i = 0; i < k->region_count; i++) {
			if (strcmp(kallsyms_module_name(k, k->regions[i].module), module))
				continue;
			*start = MIN(*start, k->regions[i].base);
			*end = MAX(*end, k->regions[i].end);
		}
	}
}

bool kallsyms_module_range(
	const struct kallsyms *k, const char *module, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start = UINT64_MAX, end = 0;

	listed_range(k, module, &start, &end);
	ksym_tenants_range(&k->tenants, module, &start, &end);
	if (start >= end)
		return false;
	*ret_start = start;
	*ret_end = end;
	return true;
}

static bool find_alone(
	const struct kallsyms *k, const struct region *r, const char *name, uint64_t *ret_start)
{
	for (uint32_t i = r->first; i < r->first + r->count; i++) {
		if (strcmp(k->text + k->symbols[i].name, name))
			continue;
		*ret_start = r->base + k->symbols[i].offset;
		return true;
	}
	return false;
}

bool kallsyms_image_start(const struct kallsyms *k, const char *image, uint64_t *ret_start)
{
	if (!*image) {
		*ret_start = k->marks.text;
		return k->marks.text;
	}
	for (size_t i = 0; i < k->module_count; i++) {
		if (!k->modules[i].size || strcmp(k->modules[i].name, image))
			continue;
		*ret_start = k->modules[i].base;
		return true;
	}
	for (size_t i = 0; i < k->region_count; i++) {
		const struct region *r = &k->regions[i];

		if (r->module != KSYM_KERNEL && !k->modules[r->module - 1].size &&
			find_alone(k, r, image, ret_start))
			return true;
	}
	return false;
}
