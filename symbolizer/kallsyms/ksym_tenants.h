/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Kernel code that comes and goes, as reported by PERF_RECORD_KSYMBOL: BPF programs, trampolines,
 * kprobe pages. An address may have several tenants one after another, so each has its own number;
 * past ones are kept while samples of their time may still be looked up. Private to kallsyms.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KSYM_TENANT_MAX = INT32_MAX };

struct ksym_tenant {
	uint64_t start; /* kaddr */
	uint32_t size;
	uint32_t number; /* from 1 to KSYM_TENANT_MAX, in order of arrival */
	uint64_t gone_ns; /* CLOCK_MONOTONIC, not before it went; 0 = still there */
	bool was_before; /* no record announced it: it was there before us */
	bool at_most; /* its size is: it ends where another one begins */
	const char *module;
	char *name;
};

struct ksym_tenants {
	struct ksym_tenant *there; /* latest tenant of each address; ascending, disjoint */
	size_t there_count, there_capacity;
	struct ksym_tenant *past; /* replaced by others; oldest first */
	size_t past_count, past_capacity;
	uint64_t low, high; /* range of all of them: most lookups end outside */
	uint32_t last_number;
	size_t refused; /* dropped or forgotten early, so far */
};

void ksym_tenants_deinit(struct ksym_tenants *t);
/*
 * Adds CAME; copies and cleans its name, sets its number and module. NOW_NS is when the tenants
 * that it replaces went. Returns -EBADMSG if CAME is invalid, -E2BIG, -ENOMEM.
 */
int ksym_tenants_add(
	struct ksym_tenants *t, const struct ksym_tenant *came, bool bpf, uint64_t now_ns);
/* Marks WENT as gone at NOW_NS; adds it first if no record announced it. */
int ksym_tenants_gone(
	struct ksym_tenants *t, const struct ksym_tenant *went, bool bpf, uint64_t now_ns);
/* Returns the current or last tenant of KADDR; NULL if there is none known. */
const struct ksym_tenant *ksym_tenants_at(const struct ksym_tenants *t, uint64_t kaddr);
/* Returns tenant NUMBER if it has KADDR and is not forgotten, else NULL. */
const struct ksym_tenant *ksym_tenants_find(
	const struct ksym_tenants *t, uint32_t number, uint64_t kaddr);
/* Returns the tenant that had KADDR before the first record about it, or NULL. */
const struct ksym_tenant *ksym_tenants_first(const struct ksym_tenants *t, uint64_t kaddr);
/* Returns true if a record announced a tenant of KADDR with this NAME and START. */
bool ksym_tenants_came(
	const struct ksym_tenants *t, uint64_t kaddr, uint64_t start, const char *name);
/* Forgets tenants gone before BEFORE_NS, after calling FN for each. */
void ksym_tenants_forget(struct ksym_tenants *t, uint64_t before_ns,
	void (*fn)(void *context, const struct ksym_tenant *tenant), void *context);
size_t ksym_tenants_bytes(const struct ksym_tenants *t);
/* Widens [*START, *END) to include MODULE's tenants, past ones too. */
void ksym_tenants_range(
	const struct ksym_tenants *t, const char *module, uint64_t *start, uint64_t *end);
