/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "agent/sampler/collect/events.h"
#include "agent/sampler/probes/probes.h"
#include "base/cleanup.h"
#include "tests/unit/perf_ring.h"

enum { TIME = 1234 };

struct fixture {
	struct perf_ring w;
	struct metrics metrics;
	struct events events;
	unsigned int calls;
	struct abi_tick tick;
	struct abi_sightings sightings;
	struct abi_sighting last_sighting;
	uint64_t frames[ABI_MAX_FRAMES];
	uint64_t stack_id;
	uint32_t stack_frame_count;
	struct collect_mmap mmap;
	char text[256];
	uint64_t time_ns, number, count;
	uint32_t pids[4];
	bool flag_a, flag_b;
};

static void saw_tick(void *context, uint64_t time_ns, const struct abi_tick *tick)
{
	struct fixture *f = context;

	f->calls++;
	f->time_ns = time_ns;
	f->tick = *tick;
}

static void saw_sightings(void *context, uint64_t time_ns, const struct abi_sightings *sightings)
{
	struct fixture *f = context;

	f->calls++;
	f->time_ns = time_ns;
	f->sightings = *sightings;
	if (sightings->count)
		f->last_sighting = sightings->of[sightings->count - 1];
}

static void saw_stack(void *context, const struct abi_stack *stack)
{
	struct fixture *f = context;

	f->calls++;
	f->stack_id = stack->id;
	f->stack_frame_count = stack->frame_count;
	memcpy(f->frames, stack->frames, stack->frame_count * sizeof(f->frames[0]));
}

static void saw_mmap(void *context, const struct collect_mmap *mmap)
{
	struct fixture *f = context;

	f->calls++;
	f->mmap = *mmap;
	strncpy(f->text, mmap->path, sizeof(f->text) - 1);
}

static void saw_comm(
	void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid, const char *comm, bool exec)
{
	struct fixture *f = context;

	f->calls++;
	f->time_ns = time_ns;
	f->pids[0] = tgid;
	f->pids[1] = tid;
	f->flag_a = exec;
	strncpy(f->text, comm, sizeof(f->text) - 1);
}

static void saw_fork(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid,
	uint32_t parent_tgid, uint32_t parent_tid)
{
	struct fixture *f = context;

	f->calls++;
	f->time_ns = time_ns;
	f->pids[0] = tgid;
	f->pids[1] = tid;
	f->pids[2] = parent_tgid;
	f->pids[3] = parent_tid;
}

static void saw_exit(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid)
{
	saw_fork(context, time_ns, tgid, tid, 0, 0);
}

static void saw_ksymbol(
	void *context, uint64_t kaddr, uint32_t size, const char *name, bool bpf, bool gone)
{
	struct fixture *f = context;

	f->calls++;
	f->number = kaddr;
	f->count = size;
	f->flag_a = bpf;
	f->flag_b = gone;
	strncpy(f->text, name, sizeof(f->text) - 1);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	perf_ring_init(&f->w, 0);
	f->events.metrics = &f->metrics;
	f->events.probes = probes_all;
	f->events.handlers = (struct collect_handlers){
		.tick = saw_tick,
		.sightings = saw_sightings,
		.stack = saw_stack,
		.mmap = saw_mmap,
		.comm = saw_comm,
		.fork = saw_fork,
		.exit = saw_exit,
		.ksymbol = saw_ksymbol,
		.context = f,
	};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* Passes a copy that ends with the record, so that sanitizers detect reads beyond it. */
static void deliver(struct fixture *f)
{
	uint8_t *copy;

	perf_ring_end(&f->w);
	copy = malloc(f->w.size);
	assert_non_null(copy);
	memcpy(copy, f->w.record, f->w.size);
	events_deliver(&f->events, TIME, copy, f->w.size);
	free(copy);
}

static uint64_t bad(const struct fixture *f)
{
	return metrics_get(&f->metrics, METRIC_LOST_BAD_RECORD);
}

static void expect_refused(struct fixture *f)
{
	deliver(f);
	assert_int_equal(f->calls, 0);
	assert_int_equal(bad(f), 1);
}

static void begin_raw(struct fixture *f, uint32_t raw_size)
{
	perf_ring_begin(&f->w, PERF_RECORD_SAMPLE, 0);
	perf_ring_u64(&f->w, TIME);
	perf_ring_u32(&f->w, raw_size);
}

static void tick_is_delivered(void **state)
{
	struct fixture *f = *state;
	struct abi_tick tick = {
		.sample = { .kind = ABI_TICK,
			.tgid = 7,
			.fiber_id = 1 << 20,
			.comm = "0123456789abcde" },
		.period = 52631578,
	};

	perf_ring_raw(&f->w, TIME, &tick, sizeof(tick));
	deliver(f);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->time_ns, TIME);
	assert_memory_equal(&f->tick, &tick, sizeof(tick));
	assert_int_equal(bad(f), 0);
}

static void write_sightings(struct fixture *f, uint32_t count, size_t bytes)
{
	uint64_t words[2 + ABI_SIGHTINGS * sizeof(struct abi_sighting) / 8] = { 0 };
	struct abi_sightings *s = (struct abi_sightings *)words;

	*s = (struct abi_sightings){ .kind = ABI_SIGHTINGS_RECORD, .tgid = 7, .count = count };
	for (uint32_t i = 0; i < ABI_SIGHTINGS; i++)
		s->of[i] = (struct abi_sighting){ .pc = i, .shown_device = i };
	perf_ring_raw(&f->w, TIME, words, bytes);
}

static void sightings_are_delivered(void **state)
{
	struct fixture *f = *state;

	write_sightings(f, 3, sizeof(struct abi_sightings) + 3 * sizeof(struct abi_sighting));
	deliver(f);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->time_ns, TIME);
	assert_int_equal(f->sightings.tgid, 7);
	assert_int_equal(f->sightings.count, 3);
	assert_int_equal(f->last_sighting.pc, 2);
	assert_int_equal(f->last_sighting.shown_device, 2);
	assert_int_equal(bad(f), 0);
}

static void short_sightings_are_refused(void **state)
{
	struct fixture *f = *state;

	write_sightings(f, 3, sizeof(struct abi_sightings) + 3 * sizeof(struct abi_sighting) - 8);
	expect_refused(f);
}

static void more_sightings_than_possible_are_refused(void **state)
{
	struct fixture *f = *state;

	write_sightings(f, ABI_SIGHTINGS + 1,
		sizeof(struct abi_sightings) + ABI_SIGHTINGS * sizeof(struct abi_sighting));
	expect_refused(f);
}

static void stack_is_delivered(void **state)
{
	struct fixture *f = *state;
	uint64_t words[3 + ABI_MAX_FRAMES] = { 0 };
	struct abi_stack head = {
		.kind = ABI_STACK, .id = 99, .window = 3, .frame_count = ABI_MAX_FRAMES
	};

	memcpy(words, &head, sizeof(head));
	for (uint64_t i = 0; i < ABI_MAX_FRAMES; i++)
		words[3 + i] = i << 32;
	perf_ring_raw(&f->w, TIME, words, sizeof(words));
	deliver(f);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->stack_id, 99);
	assert_int_equal(f->stack_frame_count, ABI_MAX_FRAMES);
	assert_memory_equal(f->frames, words + 3, sizeof(f->frames));
}

/* Its outermost frames are a ring, of which the 5th is the innermost. */
static void stack_without_its_middle_is_in_order(void **state)
{
	struct fixture *f = *state;
	uint64_t words[3 + ABI_MAX_FRAMES] = { 0 };
	const uint32_t flags = ABI_STACK_MIDDLE | 5U << ABI_STACK_RING_SHIFT;
	struct abi_stack head = { ABI_STACK, flags, 99, 3, ABI_MAX_FRAMES };

	memcpy(words, &head, sizeof(head));
	for (uint64_t i = 0; i < ABI_MAX_FRAMES; i++)
		words[3 + i] = i;
	perf_ring_raw(&f->w, TIME, words, sizeof(words));
	deliver(f);
	assert_int_equal(f->calls, 1);
	for (uint64_t i = 0; i < ABI_MAX_FRAMES; i++)
		assert_int_equal(f->frames[i],
			i < ABI_INNER_FRAMES ? i : ABI_INNER_FRAMES + (i + 5) % ABI_OUTER_FRAMES);
}

static void short_stack_without_its_middle_is_refused(void **state)
{
	struct fixture *f = *state;
	uint64_t words[3 + 200] = { 0 };
	struct abi_stack head = { ABI_STACK, ABI_STACK_MIDDLE, 99, 3, 200 };

	memcpy(words, &head, sizeof(head));
	perf_ring_raw(&f->w, TIME, words, sizeof(words));
	expect_refused(f);
}

static void stack_with_more_frames_than_bytes_is_refused(void **state)
{
	struct fixture *f = *state;
	struct abi_stack head = { .kind = ABI_STACK, .frame_count = 2 };

	begin_raw(f, sizeof(head) + 12);
	perf_ring_bytes(&f->w, &head, sizeof(head));
	perf_ring_bytes(&f->w, "frame 1!frag", 12);
	expect_refused(f);
}

static void stack_with_too_many_frames_is_refused(void **state)
{
	struct fixture *f = *state;
	uint64_t words[3 + ABI_MAX_FRAMES + 1] = { 0 };
	struct abi_stack head = { .kind = ABI_STACK, .frame_count = ABI_MAX_FRAMES + 1 };

	memcpy(words, &head, sizeof(head));
	perf_ring_raw(&f->w, TIME, words, sizeof(words));
	expect_refused(f);
}

/* A sample followed by the COUNT frames of its stack, of which FRAME_BYTES are present. */
static void write_sample_with_stack(
	struct fixture *f, uint32_t kind, uint32_t count, uint32_t frame_bytes)
{
	const struct abi_tick tick = {
		.sample = { .kind = ABI_TICK, .user_stack = 99, .tid = 7 },
	};
	const struct abi_stack head = { .kind = kind, .id = 99, .frame_count = count };
	const uint64_t frames[] = { 0x1000, 0x2000, 0x3000 };

	begin_raw(f, sizeof(tick) + sizeof(head) + frame_bytes);
	perf_ring_bytes(&f->w, &tick, sizeof(tick));
	perf_ring_bytes(&f->w, &head, sizeof(head));
	perf_ring_bytes(&f->w, frames, frame_bytes);
	perf_ring_u32(&f->w, 0);
}

static void stack_comes_with_its_sample(void **state)
{
	struct fixture *f = *state;

	write_sample_with_stack(f, ABI_STACK, 3, 24);
	deliver(f);
	assert_int_equal(f->calls, 2);
	assert_int_equal(f->stack_id, 99);
	assert_int_equal(f->stack_frame_count, 3);
	assert_int_equal(f->frames[2], 0x3000);
	assert_int_equal(f->tick.sample.tid, 7);
	assert_int_equal(f->tick.sample.user_stack, 99);
}

static void sample_with_half_a_stack_is_refused(void **state)
{
	struct fixture *f = *state;

	write_sample_with_stack(f, ABI_STACK, 3, 16);
	expect_refused(f);
}

static void sample_followed_by_another_record_is_refused(void **state)
{
	struct fixture *f = *state;

	write_sample_with_stack(f, ABI_WAKE, 3, 24);
	expect_refused(f);
}

static void short_sample_is_refused(void **state)
{
	struct fixture *f = *state;
	struct abi_tick tick = { .sample.kind = ABI_TICK };

	perf_ring_raw(&f->w, TIME, &tick, sizeof(tick) - 8);
	expect_refused(f);
}

static void raw_size_beyond_the_record_is_refused(void **state)
{
	struct fixture *f = *state;
	struct abi_tick tick = { .sample.kind = ABI_TICK };

	begin_raw(f, sizeof(tick) + 4096);
	perf_ring_bytes(&f->w, &tick, sizeof(tick));
	perf_ring_u32(&f->w, 0);
	expect_refused(f);
}

static void unknown_kind_is_refused(void **state)
{
	struct fixture *f = *state;
	struct abi_tick tick = { .sample.kind = 99 };

	perf_ring_raw(&f->w, TIME, &tick, sizeof(tick));
	expect_refused(f);
}

static void sample_without_raw_data_is_refused(void **state)
{
	struct fixture *f = *state;

	perf_ring_begin(&f->w, PERF_RECORD_SAMPLE, 0);
	perf_ring_u64(&f->w, TIME);
	expect_refused(f);
}

static void begin_mmap_of(struct fixture *f, uint16_t misc, uint32_t tgid, uint32_t tid)
{
	perf_ring_begin(&f->w, PERF_RECORD_MMAP2, misc);
	perf_ring_u32(&f->w, tgid);
	perf_ring_u32(&f->w, tid);
	perf_ring_u64(&f->w, 0x7f0000001000);
	perf_ring_u64(&f->w, 0x2000);
	perf_ring_u64(&f->w, 0x3000);
}

static void begin_mmap(struct fixture *f, uint16_t misc, uint32_t tgid)
{
	begin_mmap_of(f, misc, tgid, 12);
}

/* What stands there without a build ID, up to the path. */
static void write_file(struct fixture *f)
{
	perf_ring_u32(&f->w, 8);
	perf_ring_u32(&f->w, 1);
	perf_ring_u64(&f->w, 4711);
	perf_ring_u64(&f->w, 77);
	perf_ring_u32(&f->w, 5);
	perf_ring_u32(&f->w, 2);
}

static void end_mmap(struct fixture *f, const char *path)
{
	perf_ring_string(&f->w, path);
	perf_ring_u64(&f->w, TIME);
	deliver(f);
}

static void mapping_with_device_and_inode(void **state)
{
	struct fixture *f = *state;

	begin_mmap(f, 0, 11);
	write_file(f);
	end_mmap(f, "/usr/lib/libc.so.6");
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->mmap.time_ns, TIME);
	assert_int_equal(f->mmap.tgid, 11);
	assert_int_equal(f->mmap.tid, 12);
	assert_int_equal(f->mmap.start, 0x7f0000001000);
	assert_int_equal(f->mmap.length, 0x2000);
	assert_int_equal(f->mmap.file_off, 0x3000);
	assert_int_equal(f->mmap.protection, 5);
	assert_int_equal(f->mmap.build_id.size, 0);
	assert_int_equal(f->mmap.device, makedev(8, 1));
	assert_int_equal(f->mmap.inode, 4711);
	assert_string_equal(f->text, "/usr/lib/libc.so.6");
}

static void write_build_id(struct fixture *f, uint8_t size)
{
	uint8_t head[4] = { size };

	perf_ring_bytes(&f->w, head, sizeof(head));
	perf_ring_bytes(&f->w, "0123456789abcdefghij", 20);
	perf_ring_u32(&f->w, 5);
	perf_ring_u32(&f->w, 2);
}

static void deliver_build_id(struct fixture *f, uint32_t tgid, uint8_t size, const char *path)
{
	begin_mmap(f, PERF_RECORD_MISC_MMAP_BUILD_ID, tgid);
	write_build_id(f, size);
	end_mmap(f, path);
}

static void mapping_with_a_build_id(void **state)
{
	struct fixture *f = *state;

	deliver_build_id(f, 11, 20, "[vdso]");
	assert_int_equal(f->mmap.build_id.size, 20);
	assert_memory_equal(f->mmap.build_id.bytes, "0123456789abcdefghij", 20);
	assert_int_equal(f->mmap.inode, 0);
	assert_string_equal(f->text, "[vdso]");
}

/* A record of the event for files; the kernel leaves other events' flags in it. */
static void write_file_half(struct fixture *f, uint32_t tid)
{
	begin_mmap_of(f, PERF_RECORD_MISC_MMAP_BUILD_ID, 11, tid);
	write_file(f);
	perf_ring_string(&f->w, "/bin/x");
	perf_ring_u32(&f->w, 11);
	perf_ring_u32(&f->w, tid);
	perf_ring_u64(&f->w, TIME);
	deliver(f);
}

static void a_mapping_in_two_halves_is_one(void **state)
{
	struct fixture *f = *state;
	struct mapped_files files = { 0 };

	f->events.files = &files;
	write_file_half(f, 12);
	assert_int_equal(f->calls, 0);
	deliver_build_id(f, 11, 20, "/bin/x");
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->mmap.build_id.size, 20);
	assert_int_equal(f->mmap.device, makedev(8, 1));
	assert_int_equal(f->mmap.inode, 4711);
	assert_int_equal(f->mmap.generation, 77);
	/* It is not there for another one. */
	deliver_build_id(f, 11, 20, "/bin/x");
	assert_int_equal(f->calls, 2);
	assert_int_equal(f->mmap.inode, 0);
	assert_int_equal(bad(f), 0);
}

static void halves_of_two_threads_are_not_joined(void **state)
{
	struct fixture *f = *state;
	struct mapped_files files = { 0 };

	f->events.files = &files;
	write_file_half(f, 12 + MAPPED_FILES);
	deliver_build_id(f, 11, 20, "/bin/x");
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->mmap.inode, 0);
}

/* A file without a build ID is recorded twice but delivered once. */
static void a_mapping_without_a_build_id_is_delivered_once(void **state)
{
	struct fixture *f = *state;
	struct mapped_files files = { 0 };

	f->events.files = &files;
	write_file_half(f, 12);
	begin_mmap(f, 0, 11);
	write_file(f);
	end_mmap(f, "/bin/x");
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->mmap.build_id.size, 0);
	assert_int_equal(f->mmap.inode, 4711);
}

/* Up to the identity of the event. */
static void begin_fork(struct fixture *f)
{
	perf_ring_begin(&f->w, PERF_RECORD_FORK, 0);
	for (uint32_t number = 31; number <= 34; number++)
		perf_ring_u32(&f->w, number);
	perf_ring_u64(&f->w, 1);
}

static void write_fork(struct fixture *f, bool of_file)
{
	begin_fork(f);
	if (of_file) {
		perf_ring_u32(&f->w, 30);
		perf_ring_u32(&f->w, 30);
	}
	perf_ring_u64(&f->w, TIME);
	deliver(f);
}

/* The kernel sends fork records to every event that asks for mappings. */
static void task_records_of_the_file_event_are_ignored(void **state)
{
	struct fixture *f = *state;
	struct mapped_files files = { 0 };

	f->events.files = &files;
	write_fork(f, true);
	assert_int_equal(f->calls, 0);
	write_fork(f, false);
	assert_int_equal(f->calls, 1);
	assert_int_equal(bad(f), 0);
}

static void build_id_longer_than_its_field_is_ignored(void **state)
{
	struct fixture *f = *state;

	deliver_build_id(f, 11, 21, "/bin/x");
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->mmap.build_id.size, 0);
}

static void mapping_without_a_path_is_refused(void **state)
{
	struct fixture *f = *state;

	begin_mmap(f, PERF_RECORD_MISC_MMAP_BUILD_ID, 11);
	write_build_id(f, 20);
	perf_ring_u64(&f->w, TIME);
	expect_refused(f);
}

/* The path's NUL is missing; the time that follows has one, but is not part of it. */
static void unterminated_path_is_refused(void **state)
{
	struct fixture *f = *state;

	begin_mmap(f, PERF_RECORD_MISC_MMAP_BUILD_ID, 11);
	write_build_id(f, 20);
	perf_ring_bytes(&f->w, "/bin/abc", 8);
	perf_ring_u64(&f->w, TIME);
	expect_refused(f);
}

static void truncated_mapping_is_refused(void **state)
{
	struct fixture *f = *state;

	perf_ring_begin(&f->w, PERF_RECORD_MMAP2, 0);
	perf_ring_u64(&f->w, 11);
	perf_ring_u64(&f->w, TIME);
	expect_refused(f);
}

static void mapping_outside_our_pid_namespace_is_left_out(void **state)
{
	struct fixture *f = *state;
	const uint32_t living_and_ended[] = { 0, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(living_and_ended); i++)
		deliver_build_id(f, living_and_ended[i], 20, "/bin/x");
	assert_int_equal(f->calls, 0);
	assert_int_equal(bad(f), 0);
}

static void write_comm_of(struct fixture *f, uint16_t misc, uint32_t tgid)
{
	perf_ring_begin(&f->w, PERF_RECORD_COMM, misc);
	perf_ring_u32(&f->w, tgid);
	perf_ring_u32(&f->w, 22);
	perf_ring_string(&f->w, "worker");
	perf_ring_u64(&f->w, TIME);
	deliver(f);
}

static void write_comm(struct fixture *f, uint16_t misc)
{
	write_comm_of(f, misc, 21);
}

static void name_outside_our_pid_namespace_is_left_out(void **state)
{
	struct fixture *f = *state;

	write_comm_of(f, PERF_RECORD_MISC_COMM_EXEC, 0);
	write_comm_of(f, PERF_RECORD_MISC_COMM_EXEC, UINT32_MAX);
	assert_int_equal(f->calls, 0);
	assert_int_equal(bad(f), 0);
}

static void comm_distinguishes_a_rename_from_an_exec(void **state)
{
	struct fixture *f = *state;

	write_comm(f, 0);
	assert_int_equal(f->pids[0], 21);
	assert_int_equal(f->pids[1], 22);
	assert_string_equal(f->text, "worker");
	assert_false(f->flag_a);
	write_comm(f, PERF_RECORD_MISC_COMM_EXEC);
	assert_true(f->flag_a);
	assert_int_equal(f->calls, 2);
}

static void fork_names_child_and_parent(void **state)
{
	struct fixture *f = *state;

	write_fork(f, false);
	assert_int_equal(f->time_ns, TIME);
	assert_int_equal(f->pids[0], 31);
	assert_int_equal(f->pids[1], 33);
	assert_int_equal(f->pids[2], 32);
	assert_int_equal(f->pids[3], 34);
}

static void exit_names_the_thread(void **state)
{
	struct fixture *f = *state;

	perf_ring_exit(&f->w, TIME, 41);
	deliver(f);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->pids[0], 41);
	assert_int_equal(f->pids[1], 41);
}

static void truncated_fork_is_refused(void **state)
{
	struct fixture *f = *state;

	perf_ring_begin(&f->w, PERF_RECORD_FORK, 0);
	perf_ring_u64(&f->w, 31);
	perf_ring_u64(&f->w, TIME);
	expect_refused(f);
}

static void ksymbol_is_added_and_removed(void **state)
{
	struct fixture *f = *state;

	for (uint16_t gone = 0; gone < 2; gone++) {
		perf_ring_begin(&f->w, PERF_RECORD_KSYMBOL, 0);
		perf_ring_u64(&f->w, 0xffffffffc0001000);
		perf_ring_u32(&f->w, 300);
		perf_ring_u16(
			&f->w, gone ? PERF_RECORD_KSYMBOL_TYPE_OOL : PERF_RECORD_KSYMBOL_TYPE_BPF);
		perf_ring_u16(&f->w, gone);
		perf_ring_string(&f->w, "bpf_prog_1_x");
		perf_ring_u64(&f->w, TIME);
		deliver(f);
		assert_int_equal(f->number, 0xffffffffc0001000);
		assert_int_equal(f->count, 300);
		assert_string_equal(f->text, "bpf_prog_1_x");
		assert_int_equal(f->flag_a, !gone);
		assert_int_equal(f->flag_b, gone);
	}
}

static void lost_records_are_counted(void **state)
{
	struct fixture *f = *state;

	perf_ring_begin(&f->w, PERF_RECORD_LOST, 0);
	perf_ring_u64(&f->w, 1);
	perf_ring_u64(&f->w, 17);
	perf_ring_u64(&f->w, TIME);
	deliver(f);
	assert_int_equal(metrics_get(&f->metrics, METRIC_LOST_SIDEBAND), 17);
}

static void unknown_record_types_are_skipped(void **state)
{
	struct fixture *f = *state;

	perf_ring_begin(&f->w, 77, 0);
	perf_ring_u64(&f->w, TIME);
	deliver(f);
	assert_int_equal(f->calls, 0);
	assert_int_equal(bad(f), 0);
}

static void handlers_may_be_null(void **state)
{
	struct fixture *f = *state;

	f->events.handlers = (struct collect_handlers){ 0 };
	perf_ring_exit(&f->w, TIME, 41);
	deliver(f);
	write_comm(f, 0);
	assert_int_equal(bad(f), 0);
}

#define EVENTS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EVENTS_TEST(tick_is_delivered),
		EVENTS_TEST(sightings_are_delivered),
		EVENTS_TEST(short_sightings_are_refused),
		EVENTS_TEST(more_sightings_than_possible_are_refused),
		EVENTS_TEST(stack_is_delivered),
		EVENTS_TEST(stack_without_its_middle_is_in_order),
		EVENTS_TEST(short_stack_without_its_middle_is_refused),
		EVENTS_TEST(stack_with_more_frames_than_bytes_is_refused),
		EVENTS_TEST(stack_with_too_many_frames_is_refused),
		EVENTS_TEST(stack_comes_with_its_sample),
		EVENTS_TEST(sample_with_half_a_stack_is_refused),
		EVENTS_TEST(sample_followed_by_another_record_is_refused),
		EVENTS_TEST(short_sample_is_refused),
		EVENTS_TEST(raw_size_beyond_the_record_is_refused),
		EVENTS_TEST(unknown_kind_is_refused),
		EVENTS_TEST(sample_without_raw_data_is_refused),
		EVENTS_TEST(mapping_with_device_and_inode),
		EVENTS_TEST(mapping_with_a_build_id),
		EVENTS_TEST(a_mapping_in_two_halves_is_one),
		EVENTS_TEST(halves_of_two_threads_are_not_joined),
		EVENTS_TEST(a_mapping_without_a_build_id_is_delivered_once),
		EVENTS_TEST(task_records_of_the_file_event_are_ignored),
		EVENTS_TEST(build_id_longer_than_its_field_is_ignored),
		EVENTS_TEST(mapping_without_a_path_is_refused),
		EVENTS_TEST(unterminated_path_is_refused),
		EVENTS_TEST(truncated_mapping_is_refused),
		EVENTS_TEST(mapping_outside_our_pid_namespace_is_left_out),
		EVENTS_TEST(name_outside_our_pid_namespace_is_left_out),
		EVENTS_TEST(comm_distinguishes_a_rename_from_an_exec),
		EVENTS_TEST(fork_names_child_and_parent),
		EVENTS_TEST(exit_names_the_thread),
		EVENTS_TEST(truncated_fork_is_refused),
		EVENTS_TEST(ksymbol_is_added_and_removed),
		EVENTS_TEST(lost_records_are_counted),
		EVENTS_TEST(unknown_record_types_are_skipped),
		EVENTS_TEST(handlers_may_be_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
