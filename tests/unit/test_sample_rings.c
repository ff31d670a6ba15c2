/* SPDX-License-Identifier: Apache-2.0 */
/* Sample rings in a memfd in place of the kernel's map, written as the BPF program does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/sampler/collect/merge.h"
#include "agent/sampler/collect/sample_rings.h"
#include "bpf/abi/sample_ring.h"

enum {
	CPUS = 3,
	BYTES = 8192, /* of data */
	ELEMENT = ABI_RING_DATA + BYTES + ABI_RING_BEHIND_BYTES,
	MAX_SEEN = 1024,
};

struct fixture {
	int fd;
	uint8_t *memory;
	struct sample_rings rings;
	struct ring *all[CPUS];
	struct merge merge;
	uint64_t times[MAX_SEEN];
	size_t sizes[MAX_SEEN];
	size_t seen;
	uint64_t bad_bytes;
};

static uint64_t *word(struct fixture *f, int cpu, uint64_t offset)
{
	return (uint64_t *)(f->memory + (size_t)cpu * ELEMENT + offset);
}

static void set_position(struct fixture *f, int cpu, uint64_t position)
{
	*word(f, cpu, ABI_RING_HEAD) = position;
	*word(f, cpu, ABI_RING_TAIL) = position;
}

/* Each byte of raw data is the lowest byte of TIME_NS. */
static void write_as(
	struct fixture *f, int cpu, uint64_t time_ns, uint32_t raw_bytes, uint16_t size)
{
	uint64_t head = *word(f, cpu, ABI_RING_HEAD);
	struct abi_ring_record *record = (void *)word(f, cpu, ABI_RING_DATA + (head & (BYTES - 1)));

	record->type = ABI_RING_RECORD;
	record->misc = 0;
	record->size = size;
	record->time_ns = time_ns;
	record->raw_bytes = raw_bytes;
	memset(record->raw, (int)time_ns, raw_bytes);
	*word(f, cpu, ABI_RING_HEAD) = head + offsetof(struct abi_ring_record, raw) + raw_bytes;
}

static void write_record(struct fixture *f, int cpu, uint64_t time_ns, uint32_t raw_bytes)
{
	write_as(f, cpu, time_ns, raw_bytes,
		(uint16_t)(offsetof(struct abi_ring_record, raw) + raw_bytes));
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->fd = memfd_create("rings", MFD_CLOEXEC);
	assert_true(f->fd >= 0);
	assert_int_equal(ftruncate(f->fd, CPUS * ELEMENT), 0);
	f->memory = mmap(NULL, CPUS * ELEMENT, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	assert_ptr_not_equal(f->memory, MAP_FAILED);
	assert_int_equal(merge_init(&f->merge), 0);
	assert_int_equal(sample_rings_init(&f->rings, f->fd, BYTES, CPUS), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	sample_rings_deinit(&f->rings);
	merge_deinit(&f->merge);
	munmap(f->memory, CPUS * ELEMENT);
	close(f->fd);
	free(f);
	return 0;
}

static void saw(void *context, uint64_t time_ns, const uint8_t *record, size_t size)
{
	const size_t header = offsetof(struct abi_ring_record, raw);
	struct fixture *f = context;

	assert_true(f->seen < MAX_SEEN);
	for (size_t i = header; i < size; i++)
		assert_int_equal(record[i], (uint8_t)time_ns);
	f->times[f->seen] = time_ns;
	f->sizes[f->seen++] = size;
}

static void saw_bad(void *context, uint64_t time_ns, uint64_t bytes)
{
	struct fixture *f = context;

	(void)time_ns;
	f->bad_bytes += bytes;
}

static int64_t merge_all(struct fixture *f)
{
	const struct merge_sink sink = { .record = saw, .bad = saw_bad, .context = f };
	size_t count = sample_rings_list(&f->rings, f->all);

	return merge_rings(&f->merge, f->all, count, UINT64_MAX, &sink);
}

static void only_what_was_opened_is_listed(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sample_rings_list(&f->rings, f->all), 0);
	assert_int_equal(sample_rings_open(&f->rings, 2), 0);
	assert_int_equal(sample_rings_list(&f->rings, f->all), 1);
	write_record(f, 1, 10, 100);
	write_record(f, 2, 20, 100);
	assert_int_equal(merge_all(f), 1);
	assert_int_equal(f->times[0], 20);
}

static void cpu_without_a_ring_is_no_error(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sample_rings_open(&f->rings, CPUS), 0);
	assert_int_equal(sample_rings_open(&f->rings, -1), 0);
	assert_int_equal(sample_rings_list(&f->rings, f->all), 0);
}

/* As after a CPU goes offline and returns: unread records are delivered, and only once. */
static void ring_that_is_opened_again_goes_on(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sample_rings_open(&f->rings, 0), 0);
	write_record(f, 0, 10, 100);
	assert_int_equal(merge_all(f), 1);
	write_record(f, 0, 20, 100);
	assert_int_equal(sample_rings_open(&f->rings, 0), 0);
	assert_int_equal(merge_all(f), 1);
	assert_int_equal(f->times[1], 20);
}

static void ring_that_cannot_be_mapped_is_reported(void **state)
{
	struct fixture *f = *state;
	struct sample_rings none;

	(void)f;
	assert_int_equal(sample_rings_init(&none, -1, BYTES, CPUS), 0);
	assert_int_equal(sample_rings_open(&none, 0), -EBADF);
	sample_rings_deinit(&none);
}

static void records_of_all_cpus_come_by_time(void **state)
{
	struct fixture *f = *state;

	for (int cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(sample_rings_open(&f->rings, cpu), 0);
	write_record(f, 0, 10, 100);
	write_record(f, 0, 40, 4);
	write_record(f, 1, 30, 228);
	write_record(f, 2, 20, 12);
	assert_int_equal(merge_all(f), 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(f->times[i], 10 * (i + 1));
	assert_int_equal(f->sizes[2], 248);
}

/* Wherever the ring ends within a record, the whole record lies contiguously behind it. */
static void record_wraps_around_the_end(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sample_rings_open(&f->rings, 1), 0);
	for (uint64_t left = 8; left <= 256; left += 8) {
		sample_rings_deinit(&f->rings);
		assert_int_equal(sample_rings_init(&f->rings, f->fd, BYTES, CPUS), 0);
		memset(f->memory, 0xee, CPUS * ELEMENT);
		set_position(f, 1, 3 * BYTES - left);
		assert_int_equal(sample_rings_open(&f->rings, 1), 0);
		f->seen = 0;
		write_record(f, 1, left, 228);
		write_record(f, 1, left + 1, 228);
		assert_int_equal(merge_all(f), 2);
		assert_int_equal(f->times[0], left);
		assert_int_equal(f->times[1], left + 1);
		assert_int_equal(*word(f, 1, ABI_RING_TAIL), 3 * BYTES - left + 2 * 248);
	}
}

static void full_ring_is_read_to_its_end(void **state)
{
	struct fixture *f = *state;

	set_position(f, 0, UINT64_MAX - 1023);
	assert_int_equal(sample_rings_open(&f->rings, 0), 0);
	for (uint64_t i = 0; i < BYTES / 128; i++)
		write_record(f, 0, i + 1, 108);
	assert_int_equal(merge_all(f), BYTES / 128);
	assert_int_equal(f->times[f->seen - 1], BYTES / 128);
	assert_int_equal(f->bad_bytes, 0);
}

static void expect_bad(struct fixture *f, uint64_t bytes)
{
	size_t seen = f->seen;

	assert_int_equal(merge_all(f), 0);
	assert_int_equal(f->bad_bytes, bytes);
	assert_int_equal(*word(f, 0, ABI_RING_TAIL), *word(f, 0, ABI_RING_HEAD));
	write_record(f, 0, 90, 100);
	assert_int_equal(merge_all(f), 1);
	assert_int_equal(f->times[seen], 90);
}

static void invalid_head_is_dropped(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sample_rings_open(&f->rings, 0), 0);
	*word(f, 0, ABI_RING_HEAD) = BYTES + 8;
	expect_bad(f, BYTES + 8);
}

static void head_behind_the_tail_is_dropped(void **state)
{
	struct fixture *f = *state;

	set_position(f, 0, 4096);
	assert_int_equal(sample_rings_open(&f->rings, 0), 0);
	*word(f, 0, ABI_RING_HEAD) = 4088;
	expect_bad(f, UINT64_MAX - 7);
}

static void record_of_size_0_is_dropped(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sample_rings_open(&f->rings, 0), 0);
	write_as(f, 0, 10, 100, 0);
	expect_bad(f, 120);
}

static void record_longer_than_what_was_written_is_dropped(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sample_rings_open(&f->rings, 0), 0);
	write_as(f, 0, 10, 100, 128);
	expect_bad(f, 120);
}

/* No program writes such a record, but reading it must not leave the ring's memory. */
static void record_longer_than_the_room_behind_goes_around(void **state)
{
	struct fixture *f = *state;

	memset(f->memory, 10, CPUS * ELEMENT);
	set_position(f, 0, BYTES - 64);
	assert_int_equal(sample_rings_open(&f->rings, 0), 0);
	write_as(f, 0, 10, 108, 8192);
	*word(f, 0, ABI_RING_HEAD) = 2 * BYTES - 64;
	assert_int_equal(merge_all(f), 1);
	assert_int_equal(f->times[0], 10);
	assert_int_equal(f->sizes[0], 8192);
}

#define RINGS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RINGS_TEST(only_what_was_opened_is_listed),
		RINGS_TEST(cpu_without_a_ring_is_no_error),
		RINGS_TEST(ring_that_is_opened_again_goes_on),
		RINGS_TEST(ring_that_cannot_be_mapped_is_reported),
		RINGS_TEST(records_of_all_cpus_come_by_time),
		RINGS_TEST(record_wraps_around_the_end),
		RINGS_TEST(full_ring_is_read_to_its_end),
		RINGS_TEST(invalid_head_is_dropped),
		RINGS_TEST(head_behind_the_tail_is_dropped),
		RINGS_TEST(record_of_size_0_is_dropped),
		RINGS_TEST(record_longer_than_what_was_written_is_dropped),
		RINGS_TEST(record_longer_than_the_room_behind_goes_around),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
