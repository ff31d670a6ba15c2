/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/tables.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct tables {
	struct tables_maps maps;
	struct abi_unwind_slot *slots;
	uint64_t page_bytes;
};

static const size_t SLOTS_BYTES = ABI_UNWIND_SLOTS * sizeof(struct abi_unwind_slot);
static const uint64_t POOL_BYTES = (uint64_t)ABI_UNWIND_REGIONS * ABI_UNWIND_REGION_BYTES;

int tables_create(const struct tables_maps *maps, struct tables **ret_tables)
{
	struct tables *t = calloc(1, sizeof(*t));
	void *slots;

	if (!t)
		return -ENOMEM;
	t->maps = *maps;
	t->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	slots = mmap(NULL, SLOTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, maps->slots, 0);
	if (slots == MAP_FAILED) {
		free(t);
		return -errno;
	}
	t->slots = slots;
	*ret_tables = t;
	return 0;
}

void tables_destroy(struct tables *t)
{
	if (!t)
		return;
	munmap(t->slots, SLOTS_BYTES);
	free(t);
}

struct abi_unwind_slot *tables_slots(const struct tables *t)
{
	return t->slots;
}

/* Copies SIZE BYTES to OFFSET of the map FD. */
static int tables_write_at(
	const struct tables *t, int fd, uint64_t offset, const void *bytes, size_t size)
{
	uint64_t begin = offset & ~(t->page_bytes - 1);
	size_t length = (size_t)(offset - begin) + size;
	uint8_t *window = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)begin);

	if (window == MAP_FAILED)
		return -errno;
	memcpy(window + (offset - begin), bytes, size);
	munmap(window, length);
	return 0;
}

int tables_write_ranges(
	void *context, uint32_t first, const struct abi_unwind_range *ranges, uint32_t count)
{
	const struct tables *t = context;
	uint64_t offset = (uint64_t)first * sizeof(*ranges);
	size_t size = count * sizeof(*ranges);

	if ((uint64_t)first + count >
		(tables_by_file(t) ? ABI_UNWIND_FILE_RANGES : ABI_UNWIND_RANGES))
		return -E2BIG;
	return tables_write_at(t, t->maps.ranges, offset, ranges, size);
}

int tables_write_pool(void *context, uint32_t offset, const void *bytes, size_t size)
{
	const struct tables *t = context;

	if (offset + size > POOL_BYTES)
		return -E2BIG;
	return tables_write_at(t, t->maps.pool, offset, bytes, size);
}

int tables_set_process(void *context, uint32_t tgid, const struct abi_unwind_process *process)
{
	const struct tables *t = context;

	return bpf_map_update_elem(t->maps.processes, &tgid, process, BPF_ANY) ? -errno : 0;
}

void tables_remove_process(void *context, uint32_t tgid)
{
	const struct tables *t = context;

	bpf_map_delete_elem(t->maps.processes, &tgid);
}

bool tables_by_file(const struct tables *t)
{
	return t->maps.files >= 0;
}

int tables_set_file(
	void *context, const struct abi_file *file, const struct abi_unwind_process *ranges)
{
	const struct tables *t = context;

	return bpf_map_update_elem(t->maps.files, file, ranges, BPF_ANY) ? -errno : 0;
}

void tables_remove_file(void *context, const struct abi_file *file)
{
	const struct tables *t = context;

	bpf_map_delete_elem(t->maps.files, file);
}

void tables_set_files_epoch(void *context, uint32_t epoch)
{
	const struct tables *t = context;

	__atomic_store_n(t->maps.files_epoch, epoch, __ATOMIC_RELEASE);
}

void tables_set_epoch(void *context, uint32_t epoch)
{
	const struct tables *t = context;

	__atomic_store_n(t->maps.epoch, epoch, __ATOMIC_RELAXED);
}

void tables_set_rules_epoch(void *context, uint32_t epoch)
{
	const struct tables *t = context;

	__atomic_store_n(t->maps.rules_epoch, epoch, __ATOMIC_RELEASE);
}

void tables_set_full(void *context, bool full)
{
	const struct tables *t = context;

	__atomic_store_n(t->maps.full, full, __ATOMIC_RELAXED);
}

void tables_leave_out(struct tables *t, uint32_t tgid, bool out)
{
	uint32_t *place = &t->maps.left_out[tgid % ABI_LEFT_OUT];
	uint32_t there = __atomic_load_n(place, __ATOMIC_RELAXED);

	if (out != (there == tgid))
		__atomic_store_n(place, out ? tgid : 0, __ATOMIC_RELAXED);
}
