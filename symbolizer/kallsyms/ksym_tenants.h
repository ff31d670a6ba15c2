/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Code that comes and goes in the kernel, as PERF_RECORD_KSYMBOL tells of it: BPF programs,
 * trampolines, the pages of kprobes. An address may have several tenants one after the other, so
 * each has a number of its own; those that have gone stay for as long as somebody may ask for what
 * was sampled in their time. Private to kallsyms.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KSYM_TENANT_MAX = INT32_MAX };

struct ksym_tenant {
	uint64_t start; /* kaddr */
	uint32_t size;
	uint32_t number; /* from 1 to KSYM_TENANT_MAX, in the order in which they came */
	uint64_t gone_ns; /* CLOCK_MONOTONIC, not before it went; 0 = it is there */
	bool was_before; /* nobody told of its coming: it was there before us */
	const char *module;
	char *name;
};

struct ksym_tenants {
	struct ksym_tenant *there; /* ascending, apart from each other; the last that came */
	size_t there_count, there_capacity;
	struct ksym_tenant *past; /* whose place another has taken, the oldest first */
	size_t past_count, past_capacity;
	uint64_t low, high; /* where any of them is, or was: mostly nothing is asked for there */
	uint32_t last_number;
	size_t refused; /* that had to be left out or forgotten early, so far */
};

void ksym_tenants_deinit(struct ksym_tenants *t);
/*
 * Takes in CAME, whose name is copied and cleaned; number, module and name's memory are set here.
 * -EBADMSG it makes no sense, -E2BIG, -ENOMEM. NOW_NS is when those that it replaces have gone.
 */
int ksym_tenants_add(
	struct ksym_tenants *t, const struct ksym_tenant *came, bool bpf, uint64_t now_ns);
/* The one that CAME tells of goes at NOW_NS; if nobody told of its coming, it is taken in as well.
 */
int ksym_tenants_gone(
	struct ksym_tenants *t, const struct ksym_tenant *went, bool bpf, uint64_t now_ns);
/* Whose KADDR is now, or was last; NULL: nobody's that we were told of. */
const struct ksym_tenant *ksym_tenants_at(const struct ksym_tenants *t, uint64_t kaddr);
/* The one with NUMBER, if it has KADDR and is not forgotten. */
const struct ksym_tenant *ksym_tenants_find(
	const struct ksym_tenants *t, uint32_t number, uint64_t kaddr);
/* The one that had KADDR before anybody told of a change there, or NULL. */
const struct ksym_tenant *ksym_tenants_first(const struct ksym_tenants *t, uint64_t kaddr);
/* Whether one that has KADDR came, by its record, under this NAME from START on. */
bool ksym_tenants_came(
	const struct ksym_tenants *t, uint64_t kaddr, uint64_t start, const char *name);
/* Forgets those that have gone before BEFORE_NS, after FN was called for each. */
void ksym_tenants_forget(struct ksym_tenants *t, uint64_t before_ns,
	void (*fn)(void *context, const struct ksym_tenant *tenant), void *context);
size_t ksym_tenants_bytes(const struct ksym_tenants *t);
/* Widens [*START, *END) to those of MODULE, also past ones. */
void ksym_tenants_range(
	const struct ksym_tenants *t, const char *module, uint64_t *start, uint64_t *end);
