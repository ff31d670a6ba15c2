/* SPDX-License-Identifier: Apache-2.0 */
/* Walks that wait for a module's index are finished once, whatever happens to the module. */
#include "bpf/unwind/arch.bpf.h"
#include "tests/unit/walks_fixture.h"

static void a_walk_through_known_modules_is_added_at_once(void **state)
{
	struct walks_fixture *w = *state;

	walk_finish(w, WALK_WINDOW, 1);
	assert_walked(w, 1, 1, ABI_UNWIND_GAP);
	assert_int_equal(w->requests, 0);
	assert_int_equal(w->wants, 0);
	assert_int_equal(w->lookups, 1);
	assert_int_equal(count(w->f, METRIC_UNWIND_FINISHED), 1);
}

static void without_tables_the_frames_of_the_kernel_are_all(void **state)
{
	struct walks_fixture *w = *state;

	walks_begin(w, NULL, 1 << 20);
	walk_finish(w, WALK_WINDOW, 1);
	assert_int_equal(w->added_count, 1);
	assert_false(w->added[0].walked);
	assert_int_equal(w->added[0].record.sample.tid, 1);
	assert_int_equal(count(w->f, METRIC_UNWIND_FINISHED), 0);
}

static void a_walk_whose_first_frames_were_lost_is_not_finished(void **state)
{
	struct walks_fixture *w = *state;
	struct abi_unfinished *u = walk_unfinished(WALK_WINDOW, 1);

	pending_walks_finish(&w->walks, w->process, u, NULL);
	free(u);
	assert_int_equal(w->added_count, 1);
	assert_false(w->added[0].walked);
}

static void a_walk_waits_for_the_module_that_it_needs(void **state)
{
	struct walks_fixture *w = *state;
	struct abi_unfinished *u = walk_unfinished(WALK_WINDOW, 1);

	w->waiting[0] = walk_program(w);
	walk_finish(w, WALK_WINDOW, 1);
	assert_int_equal(w->added_count, 0);
	assert_int_equal(w->requests, 1);
	assert_ptr_equal(w->last_request, walk_program(w));
	assert_int_equal(w->wants, 1);
	assert_ptr_equal(w->last_want, walk_program(w));
	walk_modules_come(w);
	assert_int_equal(w->added_count, 0);
	pending_walks_retry(&w->walks, 10);
	assert_walked(w, 1, 1, ABI_UNWIND_GAP);
	assert_memory_equal(&w->added[0].record, &u->tick, sizeof(u->tick));
	free(u);
	pending_walks_flush(&w->walks, 0);
	assert_int_equal(w->added_count, 1);
	assert_int_equal(w->walks.waiting_bytes, 0);
}

/* A walk that waits and is resumed; returns how many bytes waited. */
static size_t wait_and_resume(struct walks_fixture *w, bool whole_stacks)
{
	size_t waited;

	walks_begin(w, w->unwind, 1 << 20);
	w->walks.options.whole_stacks = whole_stacks;
	w->waiting[0] = walk_program(w);
	walk_finish(w, WALK_WINDOW, 1);
	waited = w->walks.waiting_bytes;
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	return waited;
}

static void a_stack_that_waits_unpacked_only_takes_more_room(void **state)
{
	struct walks_fixture *w = *state;
	size_t packed = wait_and_resume(w, false), whole;

	assert_walked(w, 1, 1, ABI_UNWIND_GAP);
	whole = wait_and_resume(w, true);
	assert_walked(w, 2, 1, ABI_UNWIND_GAP);
	assert_memory_equal(&w->added[1].record, &w->added[0].record, sizeof(w->added[0].record));
	assert_true(whole > packed);
}

static void a_retry_waits_for_the_message_that_a_module_is_known(void **state)
{
	struct walks_fixture *w = *state;

	w->waiting[0] = walk_program(w);
	walk_finish(w, WALK_WINDOW, 1);
	w->waiting[0] = NULL;
	pending_walks_retry(&w->walks, 10);
	assert_int_equal(w->added_count, 0);
	pending_walks_module_known(&w->walks);
	pending_walks_retry(&w->walks, 10);
	assert_walked(w, 1, 1, ABI_UNWIND_GAP);
}

static void another_module_that_comes_resumes_nobody_else(void **state)
{
	struct walks_fixture *w = *state;

	w->waiting[0] = walk_program(w);
	walk_finish(w, WALK_WINDOW, 1);
	pending_walks_module_known(&w->walks);
	pending_walks_retry(&w->walks, 10);
	assert_int_equal(w->added_count, 0);
	assert_int_equal(w->requests, 1);
}

static void a_resumed_walk_may_wait_for_its_next_module(void **state)
{
	struct walks_fixture *w = *state;

	w->waiting[0] = walk_program(w);
	w->waiting[1] = walk_libc(w);
	walk_finish(w, WALK_WINDOW, 1);
	w->waiting[0] = NULL;
	pending_walks_module_known(&w->walks);
	pending_walks_retry(&w->walks, 10);
	assert_int_equal(w->added_count, 0);
	assert_int_equal(w->requests, 2);
	assert_ptr_equal(w->last_want, walk_libc(w));
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	assert_walked(w, 1, 1, ABI_UNWIND_GAP);
}

static void an_index_that_comes_with_the_request_is_not_waited_for(void **state)
{
	struct walks_fixture *w = *state;

	w->waiting[0] = walk_program(w);
	w->comes_at_once = true;
	walk_finish(w, WALK_WINDOW, 1);
	assert_walked(w, 1, 1, ABI_UNWIND_GAP);
	assert_int_equal(w->wants, 0);
}

static void a_module_whose_file_is_not_to_be_had_is_not_waited_for(void **state)
{
	struct walks_fixture *w = *state;

	w->waiting[0] = walk_program(w);
	w->refused = true;
	walk_finish(w, WALK_WINDOW, 1);
	assert_walked(w, 1, 1, ABI_UNWIND_NOT_LOADED);
	assert_int_equal(w->wants, 0);
}

static void walks_are_resumed_in_portions(void **state)
{
	struct walks_fixture *w = *state;

	w->waiting[0] = walk_program(w);
	for (uint32_t tid = 1; tid <= 10; tid++)
		walk_finish(w, WALK_WINDOW, tid);
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 3);
	assert_int_equal(w->added_count, 3);
	pending_walks_retry(&w->walks, 3);
	assert_int_equal(w->added_count, 6);
	pending_walks_retry(&w->walks, 0);
	assert_int_equal(w->added_count, 6);
	pending_walks_retry(&w->walks, SIZE_MAX);
	assert_int_equal(w->added_count, 10);
	assert_int_equal(w->walks.waiting_bytes, 0);
}

static void a_sealed_window_waits_for_nothing(void **state)
{
	struct walks_fixture *w = *state;

	w->waiting[0] = walk_program(w);
	walk_finish(w, WALK_WINDOW, 1);
	walk_finish(w, WALK_WINDOW + 1, 2);
	pending_walks_flush(&w->walks, WALK_WINDOW);
	assert_walked(w, 1, 1, ABI_UNWIND_NOT_LOADED);
	pending_walks_flush(&w->walks, WALK_WINDOW);
	assert_int_equal(w->added_count, 1);
	/* The walk of the other window goes on as before. */
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	assert_walked(w, 2, 2, ABI_UNWIND_GAP);
}

static void a_module_that_never_comes_is_given_up_at_the_end(void **state)
{
	struct walks_fixture *w = *state;

	w->waiting[0] = walk_program(w);
	w->waiting[1] = walk_libc(w);
	walk_finish(w, WALK_WINDOW, 1);
	walk_finish(w, WALK_WINDOW + 1, 2);
	pending_walks_flush(&w->walks, 0);
	assert_int_equal(w->added_count, 2);
	assert_int_equal(w->added[0].stack.end, ABI_UNWIND_NOT_LOADED);
	assert_int_equal(w->added[1].stack.end, ABI_UNWIND_NOT_LOADED);
	assert_int_equal(w->walks.waiting_bytes, 0);
}

/* ---- limits --------------------------------------------------------------------------------- */

static size_t bytes_of_one_walk(struct walks_fixture *w)
{
	size_t bytes;

	w->waiting[0] = walk_program(w);
	walk_finish(w, WALK_WINDOW, 1);
	bytes = w->walks.waiting_bytes;
	walks_begin(w, w->unwind, 1 << 20);
	w->requests = w->wants = 0;
	return bytes;
}

static void what_finds_no_room_goes_on_without_the_module(void **state)
{
	struct walks_fixture *w = *state;

	walks_begin(w, w->unwind, bytes_of_one_walk(w));
	walk_finish(w, WALK_WINDOW, 1);
	assert_int_equal(w->added_count, 0);
	walk_finish(w, WALK_WINDOW, 2);
	assert_walked(w, 1, 2, ABI_UNWIND_NOT_LOADED);
	assert_int_equal(count(w->f, METRIC_UNWIND_WAITING_REFUSED), 1);
	/* The first walk still waits; its end makes room. */
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	assert_walked(w, 2, 1, ABI_UNWIND_GAP);
	w->waiting[0] = walk_program(w);
	walk_finish(w, WALK_WINDOW, 3);
	assert_int_equal(w->added_count, 2);
	assert_int_equal(count(w->f, METRIC_UNWIND_WAITING_REFUSED), 1);
}

static void the_kernel_pauses_before_the_room_is_full_and_until_half_is_free(void **state)
{
	struct walks_fixture *w = *state;

	walks_begin(w, w->unwind, 4 * bytes_of_one_walk(w));
	walk_finish(w, 1, 1);
	walk_finish(w, 2, 2);
	assert_false(w->full);
	walk_finish(w, 3, 3);
	assert_true(w->full);
	pending_walks_flush(&w->walks, 3);
	assert_true(w->full);
	pending_walks_flush(&w->walks, 2);
	assert_false(w->full);
}

static void what_waits_at_the_end_is_dropped_and_the_kernel_goes_on(void **state)
{
	struct walks_fixture *w = *state;

	walks_begin(w, w->unwind, 4 * bytes_of_one_walk(w));
	for (uint32_t tid = 1; tid <= 3; tid++)
		walk_finish(w, WALK_WINDOW, tid);
	assert_true(w->full);
	walks_begin(w, w->unwind, 1 << 20);
	assert_false(w->full);
	assert_int_equal(w->added_count, 0);
}

static void stacks_wait_packed_and_come_back_whole(void **state)
{
	enum { WORDS = ABI_UNFINISHED_STACK_BYTES / 8 };
	struct walks_fixture *w = *state;
	struct abi_unfinished *u =
		realloc(walk_unfinished(WALK_WINDOW, 1), sizeof(*u) + ABI_UNFINISHED_STACK_BYTES);
	uint64_t words[WORDS];

	assert_non_null(u);
	/* Pointers into the stack, zeroes and noise; the frame is at the far end. */
	for (uint64_t i = 0; i < WORDS; i++)
		words[i] = i % 3 == 0   ? WALK_STACK + 8 * i
			   : i % 3 == 1 ? 0
					: i * UINT64_C(0x9e3779b97f4a7c15);
	words[WORDS - 2] = 0;
	words[WORDS - 1] = WALK_LIBC_PC;
	memcpy(u->stack, words, sizeof(words));
	u->rest.stack_bytes = sizeof(words);
	u->rest.fp = WALK_STACK + 8 * (WORDS - 2);
	w->waiting[0] = walk_program(w);
	walk_finish_made(w, u);
	free(u);
	assert_in_range(w->walks.waiting_bytes, 1, sizeof(words) * 3 / 4);
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	assert_walked(w, 1, 1, ABI_UNWIND_GAP);
}

enum { DEEP_IDS = 2, DEEP_CHUNK_WORDS = ABI_UNFINISHED_CHUNK_BYTES / 8 };

/* A walk whose frame lies at the end of the second chunk behind its stack. */
static struct abi_unfinished *deep_unfinished(void)
{
	static const uint64_t ids[DEEP_IDS] = { 11, 12 };
	struct abi_unfinished *u = realloc(walk_unfinished(WALK_WINDOW, 1),
		sizeof(*u) + ABI_UNFINISHED_STACK_BYTES + sizeof(ids));

	assert_non_null(u);
	memset(u->stack, 0, ABI_UNFINISHED_STACK_BYTES);
	memcpy(u->stack + ABI_UNFINISHED_STACK_BYTES, ids, sizeof(ids));
	u->rest.stack_bytes = ABI_UNFINISHED_STACK_BYTES;
	u->rest.deep_count = DEEP_IDS;
	u->rest.fp = WALK_STACK + ABI_UNFINISHED_STACK_BYTES +
		     DEEP_IDS * ABI_UNFINISHED_CHUNK_BYTES - 16;
	return u;
}

static void give_chunk(struct walks_fixture *w, uint64_t id)
{
	struct abi_chunk chunk = { .kind = ABI_CHUNK, .id = id };
	uint64_t words[DEEP_CHUNK_WORDS] = { [DEEP_CHUNK_WORDS - 1] = id == 12 ? WALK_LIBC_PC : 0 };

	memcpy(chunk.bytes, words, sizeof(words));
	pending_walks_chunk(&w->walks, &chunk);
}

static void a_deep_stack_goes_on_in_the_chunks_that_came_before(void **state)
{
	struct walks_fixture *w = *state;
	struct abi_unfinished *u = deep_unfinished();

	give_chunk(w, 11);
	give_chunk(w, 12);
	walk_finish_made(w, u);
	free(u);
	assert_walked(w, 1, 1, ABI_UNWIND_GAP);
}

static void a_deep_stack_ends_at_the_first_chunk_that_is_missing(void **state)
{
	struct walks_fixture *w = *state;
	struct abi_unfinished *u = deep_unfinished();

	give_chunk(w, 12);
	walk_finish_made(w, u);
	free(u);
	assert_int_equal(w->added_count, 1);
	assert_int_equal(w->added[0].stack.count, 1);
	assert_int_equal(w->added[0].stack.end, ABI_UNWIND_UNREADABLE);
}

static void chunks_stay_while_a_walk_that_waits_needs_them(void **state)
{
	struct walks_fixture *w = *state;
	struct abi_unfinished *u = deep_unfinished();

	give_chunk(w, 11);
	give_chunk(w, 12);
	give_chunk(w, 13);
	w->waiting[0] = walk_program(w);
	walk_finish_made(w, u);
	free(u);
	for (int i = 0; i < 10; i++)
		pending_walks_tick(&w->walks);
	assert_non_null(stack_chunks_get(&w->walks.chunks, 11));
	assert_null(stack_chunks_get(&w->walks.chunks, 13));
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	assert_walked(w, 1, 1, ABI_UNWIND_GAP);
	pending_walks_tick(&w->walks);
	assert_null(stack_chunks_get(&w->walks.chunks, 11));
}

static void the_room_grows_with_off_cpu_samples_and_not_beyond_our_memory(void **state)
{
	const size_t mib = 1 << 20;

	(void)state;
	assert_int_equal(pending_walks_limit(97, 0, 0), 2 * mib);
	assert_int_equal(pending_walks_limit(0, 0.5, 0), 18 * mib);
	assert_int_equal(pending_walks_limit(19, 1, 0), 34 * mib);
	assert_int_equal(pending_walks_limit(19, 1, 64 * mib), 8 * mib);
	assert_int_equal(pending_walks_limit(97, 0, 1024 * mib), 2 * mib);
	assert_int_equal(pending_walks_limit(999, 0, 0), 8 * mib);
	assert_int_equal(pending_walks_limit(50000, 0, 0), 16 * mib);
}

/* ---- the process meanwhile ------------------------------------------------------------------ */

static void a_walk_is_resolved_with_the_mappings_of_its_instant(void **state)
{
	struct walks_fixture *w = *state;
	const struct module *program = walk_program(w);

	w->waiting[0] = program;
	walk_finish(w, WALK_WINDOW, 1);
	map(w->f, 3000, WALK_PID, 0x400000, &w->f->other);
	assert_ptr_not_equal(walk_program(w), program);
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	assert_walked(w, 1, 1, ABI_UNWIND_GAP);
	assert_ptr_equal(w->added[0].first_module, program);
}

static void a_walk_of_a_process_that_has_ended_is_still_finished(void **state)
{
	struct walks_fixture *w = *state;

	w->waiting[0] = walk_program(w);
	walk_finish(w, WALK_WINDOW, 1);
	processes_exit(w->f->ps, 3000, WALK_PID, WALK_PID);
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	assert_walked(w, 1, 1, ABI_UNWIND_GAP);
}

static void a_walk_of_a_process_that_is_forgotten_is_lost(void **state)
{
	struct walks_fixture *w = *state;

	w->waiting[0] = walk_program(w);
	walk_finish(w, WALK_WINDOW, 5);
	processes_exit(w->f->ps, 3000, WALK_PID, WALK_PID);
	processes_sweep(w->f->ps, later);
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	assert_int_equal(w->added_count, 0);
	assert_int_equal(w->lost, 1);
	assert_int_equal(w->last_lost.tid, 5);
	assert_int_equal(w->walks.waiting_bytes, 0);
}

/* Walks in user space do not know this code either, so the kernel need not ask for it. */
static void code_of_no_file_settles_its_process(void **state)
{
	struct walks_fixture *w = *state;
	struct abi_unfinished *u = walk_unfinished(WALK_WINDOW, 1);

	assert_int_equal(unwind_sync(w->unwind, w->process, w->process->exec_id), 0);
	assert_false(w->written.settled);
	u->rest.pc = 0x1234000;
	u->rest.fp = 0;
	walk_finish_made(w, u);
	free(u);
	assert_int_equal(w->added[0].stack.end, ABI_UNWIND_UNKNOWN_MAPPING);
	assert_true(w->written.settled);
}

/* ---- code without a table ------------------------------------------------------------------- */

static void finish_untabled(struct walks_fixture *w, uint32_t tid)
{
	struct abi_unfinished *u = walk_untabled(WALK_WINDOW, tid);

	walk_finish_made(w, u);
	free(u);
}

static void expect_no_caller(const struct added_sample *added)
{
	assert_int_equal(added->stack.end, ABI_UNWIND_GAP);
	assert_int_equal(added->stack.count, 1);
	assert_int_equal(added->stack.guessed, 0);
}

static void a_caller_is_found_among_the_returns_that_came_before(void **state)
{
	struct walks_fixture *w = *state;

	if (!UNWIND_FINDS_RETURNS)
		skip();
	walks_give_tables(w);
	finish_untabled(w, 1);
	expect_no_caller(&w->added[0]);
	walk_give_returns(w, 1);
	finish_untabled(w, 1);
	assert_guessed(&w->added[1]);
	/* They are of that sample only. */
	finish_untabled(w, 1);
	expect_no_caller(&w->added[2]);
}

static void returns_of_another_stack_are_of_no_use(void **state)
{
	struct walks_fixture *w = *state;
	struct abi_unfinished *u = walk_untabled(WALK_WINDOW, 1);

	if (!UNWIND_FINDS_RETURNS)
		skip();
	walks_give_tables(w);
	walk_give_returns(w, 1 + PENDING_RETURNS);
	finish_untabled(w, 1);
	expect_no_caller(&w->added[0]);
	walk_give_returns(w, 1);
	u->rest.sp += 8;
	walk_finish_made(w, u);
	free(u);
	expect_no_caller(&w->added[1]);
}

/* A walk waits for the first module, is resumed, and waits for the next. */
static void returns_wait_with_their_walk(void **state)
{
	struct walks_fixture *w = *state;

	if (!UNWIND_FINDS_RETURNS)
		skip();
	walks_give_tables(w);
	w->waiting[0] = walk_program(w);
	w->waiting[1] = walk_libc(w);
	walk_give_returns(w, 1);
	finish_untabled(w, 1);
	/* Another thread's, at the same place in the table. */
	walk_give_returns(w, 1 + PENDING_RETURNS);
	w->waiting[0] = NULL;
	pending_walks_module_known(&w->walks);
	pending_walks_retry(&w->walks, 10);
	assert_int_equal(w->added_count, 0);
	assert_ptr_equal(w->last_want, walk_libc(w));
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	assert_int_equal(w->added_count, 1);
	assert_guessed(&w->added[0]);
	assert_int_equal(w->walks.waiting_bytes, 0);
}

/* ---- what the kernel learns ------------------------------------------------------------------ */

static void the_kernel_is_told_of_a_module_that_came(void **state)
{
	struct walks_fixture *w = *state;

	w->waiting[0] = walk_program(w);
	assert_int_equal(unwind_sync(w->unwind, w->process, w->process->exec_id), 0);
	assert_int_equal(unwind_sync(w->unwind, w->process, w->process->exec_id), 0);
	assert_int_equal(w->writes, 1);
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	assert_int_equal(unwind_sync(w->unwind, w->process, w->process->exec_id), 0);
	assert_int_equal(w->writes, 2);
}

static void a_file_that_the_kernel_did_not_know_is_learned(void **state)
{
	const uint64_t vdso = 0x7fff00000000;
	struct walks_fixture *w = *state;
	struct abi_unfinished *u = walk_unfinished(WALK_WINDOW, 1);

	walks_unwind_by_file(w);
	u->rest.pc = vdso + 8;
	u->rest.mapping = (struct abi_mapping){
		.start = vdso, .end = vdso + 0x1000, .file = { .inode = ABI_FILE_VDSO }
	};
	walk_finish_made(w, u);
	assert_int_equal(w->learned, 1);
	walk_finish_made(w, u);
	assert_int_equal(w->learned, 1);
	free(u);
}

/* ---- what is stored while walks wait -------------------------------------------------------- */

static void modules_that_a_waiting_walk_may_need_are_in_use(void **state)
{
	struct walks_fixture *w = *state;

	pending_walks_mark_modules(&w->walks, 5000);
	assert_int_equal(walk_libc(w)->used_ns, 0);
	w->waiting[0] = walk_program(w);
	walk_finish(w, WALK_WINDOW, 1);
	pending_walks_mark_modules(&w->walks, 5000);
	assert_int_equal(walk_libc(w)->used_ns, 5000);
	assert_int_equal(walk_program(w)->used_ns, 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WALKS_CASE(a_walk_through_known_modules_is_added_at_once),
		WALKS_CASE(without_tables_the_frames_of_the_kernel_are_all),
		WALKS_CASE(a_walk_whose_first_frames_were_lost_is_not_finished),
		WALKS_CASE(a_walk_waits_for_the_module_that_it_needs),
		WALKS_CASE(a_retry_waits_for_the_message_that_a_module_is_known),
		WALKS_CASE(a_stack_that_waits_unpacked_only_takes_more_room),
		WALKS_CASE(another_module_that_comes_resumes_nobody_else),
		WALKS_CASE(a_resumed_walk_may_wait_for_its_next_module),
		WALKS_CASE(an_index_that_comes_with_the_request_is_not_waited_for),
		WALKS_CASE(a_module_whose_file_is_not_to_be_had_is_not_waited_for),
		WALKS_CASE(walks_are_resumed_in_portions),
		WALKS_CASE(a_sealed_window_waits_for_nothing),
		WALKS_CASE(a_module_that_never_comes_is_given_up_at_the_end),
		WALKS_CASE(what_finds_no_room_goes_on_without_the_module),
		WALKS_CASE(the_kernel_pauses_before_the_room_is_full_and_until_half_is_free),
		WALKS_CASE(what_waits_at_the_end_is_dropped_and_the_kernel_goes_on),
		WALKS_CASE(stacks_wait_packed_and_come_back_whole),
		WALKS_CASE(a_deep_stack_goes_on_in_the_chunks_that_came_before),
		WALKS_CASE(a_deep_stack_ends_at_the_first_chunk_that_is_missing),
		WALKS_CASE(chunks_stay_while_a_walk_that_waits_needs_them),
		WALKS_CASE(the_room_grows_with_off_cpu_samples_and_not_beyond_our_memory),
		WALKS_CASE(a_walk_is_resolved_with_the_mappings_of_its_instant),
		WALKS_CASE(a_walk_of_a_process_that_has_ended_is_still_finished),
		WALKS_CASE(a_walk_of_a_process_that_is_forgotten_is_lost),
		WALKS_CASE(code_of_no_file_settles_its_process),
		WALKS_CASE(a_caller_is_found_among_the_returns_that_came_before),
		WALKS_CASE(returns_of_another_stack_are_of_no_use),
		WALKS_CASE(returns_wait_with_their_walk),
		WALKS_CASE(the_kernel_is_told_of_a_module_that_came),
		WALKS_CASE(a_file_that_the_kernel_did_not_know_is_learned),
		WALKS_CASE(modules_that_a_waiting_walk_may_need_are_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
