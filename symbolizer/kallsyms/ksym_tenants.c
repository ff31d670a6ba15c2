/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/kallsyms/ksym_tenants.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/utf8.h"

enum {
	MAX_THERE = 1 << 16,
	MAX_PAST = 1024, /* above this the oldest is forgotten early */
	MAX_NAME_BYTES = 512,
};

static const char bpf_module[] = "bpf";

void ksym_tenants_deinit(struct ksym_tenants *t)
{
	for (size_t i = 0; i < t->there_count; i++)
		free(t->there[i].name);
	for (size_t i = 0; i < t->past_count; i++)
		free(t->past[i].name);
	free(t->there);
	free(t->past);
	*t = (struct ksym_tenants){ 0 };
}

/* Module names that kallsyms itself gives to the pages of ftrace and kprobes. */
static const char *ksym_tenants_module_of(const char *name, bool bpf)
{
	if (bpf)
		return bpf_module;
	return !strncmp(name, "ftrace", 6) ? "__builtin__ftrace" : "__builtin__kprobes";
}

/* Number of current tenants that start at or below KADDR. */
static size_t tenants_up_to(const struct ksym_tenants *t, uint64_t kaddr)
{
	size_t low = 0, high = t->there_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->there[middle].start <= kaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool tenant_has(const struct ksym_tenant *tenant, uint64_t kaddr)
{
	return kaddr >= tenant->start && kaddr - tenant->start < tenant->size;
}

static bool tenants_overlap(const struct ksym_tenant *a, const struct ksym_tenant *b)
{
	return tenant_has(a, b->start) || tenant_has(b, a->start);
}

/* Returns true if KADDR never had a tenant, which saves a search of the lists. */
static bool tenants_never_had(const struct ksym_tenants *t, uint64_t kaddr)
{
	return kaddr < t->low || kaddr >= t->high;
}

static struct ksym_tenant *tenant_there(const struct ksym_tenants *t, uint64_t kaddr)
{
	size_t count = tenants_never_had(t, kaddr) ? 0 : tenants_up_to(t, kaddr);

	return count && tenant_has(&t->there[count - 1], kaddr) ? &t->there[count - 1] : NULL;
}

static void tenants_remove(struct ksym_tenant *items, size_t *count, size_t number)
{
	(*count)--;
	memmove(&items[number], &items[number + 1], (*count - number) * sizeof(*items));
}

/* Takes over TENANT's name. */
static void tenants_keep_past(struct ksym_tenants *t, const struct ksym_tenant *tenant)
{
	if (t->past_count == MAX_PAST) {
		free(t->past[0].name);
		tenants_remove(t->past, &t->past_count, 0);
		t->refused++;
	}
	if (array_reserve(t->past, t->past_capacity, t->past_count + 1, MAX_PAST)) {
		free(tenant->name);
		t->refused++;
		return;
	}
	t->past[t->past_count++] = *tenant;
}

/* Moves the tenant at index NUMBER to the past. */
static void tenants_move_out(struct ksym_tenants *t, size_t number, uint64_t now_ns)
{
	struct ksym_tenant tenant = t->there[number];

	if (!tenant.gone_ns)
		tenant.gone_ns = now_ns;
	tenants_remove(t->there, &t->there_count, number);
	tenants_keep_past(t, &tenant);
}

/* Moves the oldest gone tenant to the past if there are too many whose place is free. */
static void tenants_make_room(struct ksym_tenants *t, uint64_t now_ns)
{
	size_t oldest = SIZE_MAX, gone = 0;

	for (size_t i = 0; i < t->there_count; i++) {
		if (!t->there[i].gone_ns)
			continue;
		gone++;
		if (oldest == SIZE_MAX || t->there[i].gone_ns < t->there[oldest].gone_ns)
			oldest = i;
	}
	if (gone > MAX_PAST)
		tenants_move_out(t, oldest, now_ns);
}

static int tenants_make(struct ksym_tenants *t, const struct ksym_tenant *reported, bool bpf,
	struct ksym_tenant *ret_tenant)
{
	char *name;

	if (!reported->size || !*reported->name ||
		reported->start + reported->size < reported->start)
		return -EBADMSG;
	name = strndup(reported->name, MAX_NAME_BYTES);
	if (!name) {
		t->refused++;
		return -ENOMEM;
	}
	utf8_clean(name, strlen(name));
	*ret_tenant = *reported;
	ret_tenant->name = name;
	ret_tenant->module = ksym_tenants_module_of(name, bpf);
	ret_tenant->number = t->last_number % KSYM_TENANT_MAX + 1;
	return 0;
}

/* Makes place for TENANT at index *AT, and cuts those that claim too much. */
static void tenants_clear(
	struct ksym_tenants *t, struct ksym_tenant *tenant, size_t *at, uint64_t now_ns)
{
	struct ksym_tenant *before = *at ? &t->there[*at - 1] : NULL;

	if (before && before->at_most && before->start < tenant->start)
		before->size = (uint32_t)MIN(before->size, tenant->start - before->start);
	else if (before && tenants_overlap(before, tenant))
		tenants_move_out(t, --*at, now_ns);
	while (*at < t->there_count && tenants_overlap(&t->there[*at], tenant)) {
		if (tenant->at_most && !t->there[*at].gone_ns)
			tenant->size = (uint32_t)(t->there[*at].start - tenant->start);
		else
			tenants_move_out(t, *at, now_ns);
	}
}

int ksym_tenants_add(
	struct ksym_tenants *t, const struct ksym_tenant *came, bool bpf, uint64_t now_ns)
{
	struct ksym_tenant tenant;
	size_t at;
	int err = tenants_make(t, came, bpf, &tenant);

	if (err)
		return err;
	err = array_reserve(t->there, t->there_capacity, t->there_count + 1, MAX_THERE);
	if (err) {
		t->refused++;
		free(tenant.name);
		return err;
	}
	at = tenants_up_to(t, tenant.start);
	tenants_clear(t, &tenant, &at, now_ns);
	memmove(&t->there[at + 1], &t->there[at], (t->there_count - at) * sizeof(*t->there));
	t->there[at] = tenant;
	t->there_count++;
	t->last_number = tenant.number;
	t->low = t->high ? MIN(t->low, tenant.start) : tenant.start;
	t->high = MAX(t->high, tenant.start + tenant.size);
	return 0;
}

int ksym_tenants_gone(
	struct ksym_tenants *t, const struct ksym_tenant *went, bool bpf, uint64_t now_ns)
{
	struct ksym_tenant *tenant = tenant_there(t, went->start);
	struct ksym_tenant unseen = *went;
	int err = 0;

	if (tenant && tenant->start == went->start && !tenant->gone_ns) {
		tenant->gone_ns = now_ns;
	} else {
		unseen.gone_ns = now_ns;
		unseen.was_before = !tenant;
		err = ksym_tenants_add(t, &unseen, bpf, now_ns);
	}
	tenants_make_room(t, now_ns);
	return err;
}

const struct ksym_tenant *ksym_tenants_at(const struct ksym_tenants *t, uint64_t kaddr)
{
	return tenant_there(t, kaddr);
}

const struct ksym_tenant *ksym_tenants_find(
	const struct ksym_tenants *t, uint32_t number, uint64_t kaddr)
{
	const struct ksym_tenant *tenant = tenant_there(t, kaddr);

	if (tenant && tenant->number == number)
		return tenant;
	for (size_t i = 0; i < t->past_count; i++) {
		if (t->past[i].number == number && tenant_has(&t->past[i], kaddr))
			return &t->past[i];
	}
	return NULL;
}

const struct ksym_tenant *ksym_tenants_first(const struct ksym_tenants *t, uint64_t kaddr)
{
	const struct ksym_tenant *tenant = tenant_there(t, kaddr);

	if (tenants_never_had(t, kaddr))
		return NULL;
	for (size_t i = 0; i < t->past_count; i++) {
		if (t->past[i].was_before && tenant_has(&t->past[i], kaddr))
			return &t->past[i];
	}
	return tenant && tenant->was_before ? tenant : NULL;
}

static bool tenant_came(const struct ksym_tenant *tenant, uint64_t start, const char *name)
{
	return !tenant->was_before && tenant->start == start && !strcmp(tenant->name, name);
}

bool ksym_tenants_came(
	const struct ksym_tenants *t, uint64_t kaddr, uint64_t start, const char *name)
{
	const struct ksym_tenant *tenant = tenant_there(t, kaddr);

	if (tenants_never_had(t, kaddr))
		return false;
	for (size_t i = 0; i < t->past_count; i++) {
		if (tenant_has(&t->past[i], kaddr) && tenant_came(&t->past[i], start, name))
			return true;
	}
	return tenant && tenant_came(tenant, start, name);
}

void ksym_tenants_forget(struct ksym_tenants *t, uint64_t before_ns,
	void (*fn)(void *context, const struct ksym_tenant *tenant), void *context)
{
	struct ksym_tenant *const lists[] = { t->there, t->past };
	size_t *const counts[] = { &t->there_count, &t->past_count };

	for (size_t list = 0; list < ARRAY_SIZE(lists); list++) {
		size_t kept = 0;

		for (size_t i = 0; i < *counts[list]; i++) {
			struct ksym_tenant *tenant = &lists[list][i];

			if (!tenant->gone_ns || tenant->gone_ns >= before_ns) {
				lists[list][kept++] = *tenant;
				continue;
			}
			fn(context, tenant);
			free(tenant->name);
		}
		*counts[list] = kept;
	}
}

size_t ksym_tenants_bytes(const struct ksym_tenants *t)
{
	return (t->there_capacity + t->past_capacity) * sizeof(*t->there);
}

void ksym_tenants_range(
	const struct ksym_tenants *t, const char *module, uint64_t *start, uint64_t *end)
{
	const struct ksym_tenant *const lists[] = { t->there, t->past };
	const size_t counts[] = { t->there_count, t->past_count };

	for (size_t list = 0; list < ARRAY_SIZE(lists); list++) {
		for (size_t i = 0; i < counts[list]; i++) {
			const struct ksym_tenant *tenant = &lists[list][i];

			if (strcmp(tenant->module, module))
				continue;
			*start = MIN(*start, tenant->start);
			*end = MAX(*end, tenant->start + tenant->size);
		}
	}
}
