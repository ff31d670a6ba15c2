/* SPDX-License-Identifier: Apache-2.0 */
/* Raw stacks become stacks of a profile, with the mappings and kernel symbols of their time. */
#include "agent/sampler/samples/stack_resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "tests/unit/fake_proc.h"
#include "tests/unit/raw_stack.h"

enum {
	WINDOW = 3,
	USER = 11, /* ids of raw stacks */
	KERNEL = 12,
	PROGRAM = 0x400000, /* address of the program's page, and its file offset */
	PROGRAM_OFF = 0x2000,
	LIBRARY = 0x500000, /* the same for the library */
	LIBRARY_OFF = 0x7000,
	JIT = 0x600000, /* memory without a file */
	PAGE = 0x1000,
	PROGRAM_MODULE = 1, /* module numbers */
	LIBRARY_MODULE = 2,
	JIT_MODULE = 9,
};

#define SWITCH_TRACE UINT64_C(0xffffffff81000010) /* in trace_switch */
#define SCHEDULE UINT64_C(0xffffffff81000110) /* in __schedule */
#define NANOSLEEP UINT64_C(0xffffffff81000210) /* in do_nanosleep */
#define BPF_PROGRAM UINT64_C(0xffffffffc2000000)

struct fixture {
	struct fake_proc proc;
	struct metrics metrics;
	struct kernel_symbols *symbols;
	struct profile *profile;
	struct stack_resolver resolver;
	struct module program, library, anon;
	struct process process;
	/* The calls of the resolver's hooks. */
	unsigned int module_hits, stack_hits, jit_hits; /* number of calls */
	const struct module *last_module;
	const struct process *last_jit;
};

static const struct abi_stack *raw_stack(void *context, uint32_t window, uint64_t id)
{
	const struct fixture *f = context;

	return profile_get_raw(f->profile, window, id);
}

static void module_hit(void *context, struct process *p, const struct mapping *mapping)
{
	struct fixture *f = context;

	assert_non_null(p);
	f->module_hits++;
	f->last_module = mapping->module;
}

static void stack_hit(void *context, struct process *p, const struct profile_stack *stack)
{
	struct fixture *f = context;

	assert_non_null(p);
	assert_true(stack->frame_count > 0);
	f->stack_hits++;
}

static void jit_hit(void *context, struct process *p)
{
	struct fixture *f = context;

	f->jit_hits++;
	f->last_jit = p;
}

static void map_page(
	struct mappings **mappings, uint64_t start, uint64_t file_off, struct module *module)
{
	assert_int_equal(mappings_add(mappings, &(struct mapping){ .start = start,
							.end = start + PAGE,
							.file_off = file_off,
							.module = module }),
		0);
}

static void put_kallsyms(struct fixture *f)
{
	static const char text[] = "ffffffff81000000 T _stext\n"
				   "ffffffff81000000 t trace_switch\n"
				   "ffffffff81000100 t __schedule\n"
				   "ffffffff81000200 t do_nanosleep\n"
				   "ffffffff81002000 T _etext\n";
	int fd = openat(f->proc.fd, "kallsyms", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	fake_proc_init(&f->proc);
	put_kallsyms(f);
	assert_int_equal(kernel_symbols_create(f->proc.fd, &f->metrics, &f->symbols), 0);
	assert_int_equal(profile_create(1 << 20, &f->profile), 0);
	f->program = (struct module){ .number = PROGRAM_MODULE, .kind = MODULE_FILE };
	f->library = (struct module){ .number = LIBRARY_MODULE, .kind = MODULE_FILE };
	f->anon = (struct module){ .number = JIT_MODULE, .kind = MODULE_ANON };
	f->process = (struct process){ .pid = 100, .number = 1, .mappings = mappings_create() };
	map_page(&f->process.mappings, PROGRAM, PROGRAM_OFF, &f->program);
	map_page(&f->process.mappings, LIBRARY, LIBRARY_OFF, &f->library);
	map_page(&f->process.mappings, JIT, 0, &f->anon);
	stack_resolver_init(&f->resolver, &(struct stack_resolver_options){
						  .kernel_symbols = f->symbols,
						  .metrics = &f->metrics,
						  .raw_stack = raw_stack,
						  .module_hit = module_hit,
						  .stack_hit = stack_hit,
						  .jit_hit = jit_hit,
						  .context = f,
					  });
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	mappings_unref(f->process.mappings);
	profile_destroy(f->profile);
	kernel_symbols_destroy(f->symbols);
	fake_proc_deinit(&f->proc);
	free(f);
	return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static struct stack_request request_of(struct fixture *f, uint64_t user, uint64_t kernel)
{
	return (struct stack_request){
		.process = &f->process,
		.window = WINDOW,
		.user_stack = user,
		.kernel_stack = kernel,
	};
}

static struct profile_stack resolve(struct fixture *f, const struct stack_request *request)
{
	uint32_t number = UINT32_MAX;

	assert_int_equal(stack_resolver_get(&f->resolver, f->profile, request, &number), 0);
	return profile_stack_at(f->profile, number);
}

static struct profile_stack resolve_raw(struct fixture *f, uint64_t user, uint64_t kernel)
{
	const struct stack_request request = request_of(f, user, kernel);

	return resolve(f, &request);
}

static void assert_frame(
	const struct profile_stack *stack, uint32_t i, uint32_t module, uint64_t address)
{
	assert_true(i < stack->frame_count);
	assert_int_equal(stack->frames[i].module, module);
	assert_true(stack->frames[i].address == address);
}

static void both_stacks_become_one_with_kernel_frames_first(void **state)
{
	struct fixture *f = *state;
	struct profile_stack stack;

	put_raw(f->profile, WINDOW, KERNEL, ABI_STACK_KERNEL, SCHEDULE, NANOSLEEP);
	put_raw(f->profile, WINDOW, USER, 0, LIBRARY + 0x10, PROGRAM + 0x20);
	assert_false(stack_resolver_saw_kernel(&f->resolver));
	stack = resolve_raw(f, USER, KERNEL);
	assert_int_equal(stack.frame_count, 4);
	assert_int_equal(stack.kernel_count, 2);
	assert_int_equal(stack.flags, 0);
	assert_frame(&stack, 0, PROFILE_MODULE_KERNEL, SCHEDULE);
	assert_frame(&stack, 1, PROFILE_MODULE_KERNEL, NANOSLEEP);
	assert_frame(&stack, 2, LIBRARY_MODULE, LIBRARY_OFF + 0x10);
	assert_frame(&stack, 3, PROGRAM_MODULE, PROGRAM_OFF + 0x20);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(stack.frames[i].flags & PROFILE_FRAME_RETURN, i % 2);
	assert_int_equal(f->module_hits, 2);
	assert_ptr_equal(f->last_module, &f->program);
	assert_true(stack_resolver_saw_kernel(&f->resolver));
}

static void a_sample_without_stacks_has_no_frames(void **state)
{
	struct fixture *f = *state;
	const struct profile_stack stack = resolve_raw(f, 0, 0);

	assert_int_equal(stack.frame_count, 0);
	assert_int_equal(stack.flags, 0);
	assert_int_equal(metrics_get(&f->metrics, METRIC_STACK_MISSING), 0);
}

/* A call may be the last instruction: its return address is outside of the mapping. */
static void a_return_address_at_the_end_of_a_mapping_belongs_to_it(void **state)
{
	struct fixture *f = *state;
	struct profile_stack stack;

	put_raw(f->profile, WINDOW, USER, 0, PROGRAM + PAGE, PROGRAM + PAGE);
	stack = resolve_raw(f, USER, 0);
	assert_frame(&stack, 0, PROFILE_MODULE_NONE, PROGRAM + PAGE);
	assert_frame(&stack, 1, PROGRAM_MODULE, PROGRAM_OFF + PAGE);
}

static void a_pc_outside_of_all_mappings_stays_a_pc(void **state)
{
	struct fixture *f = *state;
	struct profile_stack stack;

	put_raw(f->profile, WINDOW, USER, 0, 0x1234);
	stack = resolve_raw(f, USER, 0);
	assert_frame(&stack, 0, PROFILE_MODULE_NONE, 0x1234);
	assert_int_equal(f->module_hits, 0);
}

static void a_lost_raw_stack_is_counted_and_found_when_it_comes(void **state)
{
	struct fixture *f = *state;
	struct profile_stack stack;

	put_raw(f->profile, WINDOW, KERNEL, ABI_STACK_KERNEL, SCHEDULE);
	stack = resolve_raw(f, USER, KERNEL);
	assert_int_equal(stack.frame_count, 1);
	assert_int_equal(stack.flags, PROFILE_STACK_MISSING);
	assert_int_equal(metrics_get(&f->metrics, METRIC_STACK_MISSING), 1);
	put_raw(f->profile, WINDOW, USER, 0, PROGRAM + 0x20);
	stack = resolve_raw(f, USER, KERNEL);
	assert_int_equal(stack.frame_count, 2);
	assert_int_equal(stack.flags, 0);
	assert_int_equal(metrics_get(&f->metrics, METRIC_STACK_MISSING), 1);
}

static void a_lost_kernel_stack_leaves_the_user_frames(void **state)
{
	struct fixture *f = *state;
	struct profile_stack stack;

	put_raw(f->profile, WINDOW, USER, 0, PROGRAM + 0x20);
	stack = resolve_raw(f, USER, KERNEL);
	assert_int_equal(stack.frame_count, 1);
	assert_int_equal(stack.kernel_count, 0);
	assert_int_equal(stack.flags, PROFILE_STACK_MISSING);
}

static void a_raw_stack_of_another_window_is_not_taken(void **state)
{
	struct fixture *f = *state;

	put_raw(f->profile, WINDOW + 1, USER, 0, PROGRAM + 0x20);
	assert_int_equal(resolve_raw(f, USER, 0).flags, PROFILE_STACK_MISSING);
}

static void jit_code_keeps_its_pc_and_its_process_is_reported(void **state)
{
	struct fixture *f = *state;
	struct profile_stack stack;

	put_raw(f->profile, WINDOW, USER, 0, JIT + 0x30, PROGRAM + 0x20);
	stack = resolve_raw(f, USER, 0);
	assert_frame(&stack, 0, JIT_MODULE, JIT + 0x30);
	assert_int_equal(stack.flags, PROFILE_STACK_JIT);
	assert_int_equal(f->jit_hits, 1);
	assert_ptr_equal(f->last_jit, &f->process);
}

static void the_depth_limit_shows_whichever_stack_was_cut(void **state)
{
	struct fixture *f = *state;

	put_raw(f->profile, WINDOW, KERNEL, ABI_STACK_KERNEL | ABI_STACK_DEPTH, SCHEDULE);
	put_raw(f->profile, WINDOW, KERNEL + 1, ABI_STACK_KERNEL, SCHEDULE);
	put_raw(f->profile, WINDOW, USER, ABI_STACK_DEPTH, PROGRAM + 0x20);
	put_raw(f->profile, WINDOW, USER + 10, 0, PROGRAM + 0x20);
	assert_int_equal(resolve_raw(f, USER + 10, KERNEL).flags, PROFILE_STACK_DEPTH);
	assert_int_equal(resolve_raw(f, USER, KERNEL + 1).flags, PROFILE_STACK_DEPTH);
	assert_int_equal(resolve_raw(f, USER + 10, KERNEL + 1).flags, 0);
}

static void the_end_of_a_walk_by_tables_is_kept(void **state)
{
	struct fixture *f = *state;

	put_raw(f->profile, WINDOW, USER, ABI_UNWIND_GAP << ABI_STACK_END_SHIFT, PROGRAM + 0x20);
	assert_int_equal(resolve_raw(f, USER, 0).flags, ABI_UNWIND_GAP << PROFILE_STACK_END_SHIFT);
}

static void the_deepest_stacks_of_both_kinds_fit(void **state)
{
	struct fixture *f = *state;
	uint64_t kernel[ABI_MAX_FRAMES], user[ABI_MAX_FRAMES];
	const struct abi_stack kernel_head = { .window = WINDOW, .id = KERNEL };
	const struct abi_stack user_head = { .window = WINDOW, .id = USER };
	struct profile_stack stack;

	for (uint32_t i = 0; i < ABI_MAX_FRAMES; i++) {
		kernel[i] = SCHEDULE + i;
		user[i] = PROGRAM + i;
	}
	put_raw_frames(f->profile, &kernel_head, kernel, ABI_MAX_FRAMES);
	put_raw_frames(f->profile, &user_head, user, ABI_MAX_FRAMES);
	stack = resolve_raw(f, USER, KERNEL);
	assert_int_equal(stack.frame_count, 2 * ABI_MAX_FRAMES);
	assert_frame(&stack, ABI_MAX_FRAMES, PROGRAM_MODULE, PROGRAM_OFF);
	assert_frame(
		&stack, 2 * ABI_MAX_FRAMES - 1, PROGRAM_MODULE, PROGRAM_OFF + ABI_MAX_FRAMES - 1);
}

static void the_first_frame_of_a_call_stands_for_its_function(void **state)
{
	struct fixture *f = *state;
	const struct unwind_stack walked = {
		.frames = { PROGRAM + 0x40, PROGRAM + 0x50 }, .count = 2, .flags = ABI_STACK_CALL
	};
	struct stack_request request = request_of(f, USER, 0);
	struct profile_stack stack;

	put_raw(f->profile, WINDOW, USER, ABI_STACK_CALL, PROGRAM + 0x20);
	put_raw(f->profile, WINDOW, USER + 1, 0, PROGRAM + 0x20);
	assert_int_equal(resolve_raw(f, USER, 0).frames[0].flags, PROFILE_FRAME_FUNCTION);
	assert_int_equal(resolve_raw(f, USER + 1, 0).frames[0].flags, 0);
	request.walked = &walked;
	request.mappings = f->process.mappings;
	stack = resolve(f, &request);
	assert_int_equal(stack.frames[0].flags, PROFILE_FRAME_FUNCTION);
	assert_int_equal(stack.frames[1].flags, PROFILE_FRAME_RETURN);
}

/* ---- walks of user space -------------------------------------------------------------------- */

static void a_walked_stack_is_resolved_with_the_mappings_it_was_walked_with(void **state)
{
	struct fixture *f = *state;
	const struct unwind_stack walked = {
		.frames = { PROGRAM + 0x40 }, .count = 1, .end = ABI_UNWIND_ROOT
	};
	struct mappings *then = mappings_create();
	struct stack_request request = request_of(f, USER, 0);
	struct profile_stack stack;

	map_page(&then, PROGRAM, 0, &f->library);
	put_raw(f->profile, WINDOW, USER, 0, PROGRAM + 0x20);
	request.walked = &walked;
	request.mappings = then;
	stack = resolve(f, &request);
	assert_int_equal(stack.frame_count, 1);
	assert_frame(&stack, 0, LIBRARY_MODULE, 0x40);
	assert_int_equal(stack.flags, ABI_UNWIND_ROOT << PROFILE_STACK_END_SHIFT);
	mappings_unref(then);
	/* The raw stack differs: the walked one must not have been cached for it. */
	stack = resolve_raw(f, USER, 0);
	assert_frame(&stack, 0, PROGRAM_MODULE, PROGRAM_OFF + 0x20);
}

static void a_stack_without_its_middle_says_so(void **state)
{
	struct fixture *f = *state;
	const struct unwind_stack walked = {
		.frames = { PROGRAM }, .count = 1, .flags = ABI_STACK_MIDDLE, .end = ABI_UNWIND_ROOT
	};
	struct stack_request request = request_of(f, 0, 0);

	request.walked = &walked;
	request.mappings = f->process.mappings;
	assert_int_equal(resolve(f, &request).flags,
		PROFILE_STACK_MIDDLE | ABI_UNWIND_ROOT << PROFILE_STACK_END_SHIFT);
}

static void a_caller_that_was_searched_for_is_told(void **state)
{
	struct fixture *f = *state;
	const struct unwind_stack walked = {
		.frames = { PROGRAM, PROGRAM }, .count = 2, .end = ABI_UNWIND_ROOT, .guessed = 1
	};
	struct stack_request request = request_of(f, 0, 0);

	request.walked = &walked;
	request.mappings = f->process.mappings;
	assert_int_equal(resolve(f, &request).flags,
		ABI_UNWIND_ROOT << PROFILE_STACK_END_SHIFT | 1 << PROFILE_STACK_GUESS_SHIFT);
}

static void a_walk_to_the_depth_limit_is_cut(void **state)
{
	struct fixture *f = *state;
	const struct unwind_stack walked = {
		.frames = { PROGRAM }, .count = 1, .end = ABI_UNWIND_DEPTH
	};
	struct stack_request request = request_of(f, 0, 0);

	request.walked = &walked;
	request.mappings = f->process.mappings;
	assert_int_equal(resolve(f, &request).flags,
		PROFILE_STACK_DEPTH | ABI_UNWIND_DEPTH << PROFILE_STACK_END_SHIFT);
}

/* ---- the cache ------------------------------------------------------------------------------ */

static void equal_raw_stacks_are_resolved_once(void **state)
{
	struct fixture *f = *state;
	const struct stack_request request = request_of(f, USER, 0);
	uint32_t first, second;

	put_raw(f->profile, WINDOW, USER, 0, PROGRAM + 0x20);
	assert_int_equal(stack_resolver_get(&f->resolver, f->profile, &request, &first), 0);
	assert_int_equal(f->module_hits, 1);
	assert_int_equal(f->stack_hits, 0);
	assert_int_equal(stack_resolver_get(&f->resolver, f->profile, &request, &second), 0);
	assert_int_equal(first, second);
	assert_int_equal(f->module_hits, 1);
	assert_int_equal(f->stack_hits, 1);
	assert_int_equal(f->jit_hits, 0);
}

static void a_forked_child_shares_the_stacks_but_has_jit_code_of_its_own(void **state)
{
	struct fixture *f = *state;
	struct process child = { .pid = 200, .number = 2 };
	struct stack_request request = request_of(f, USER, 0);

	child.mappings = mappings_ref(f->process.mappings);
	put_raw(f->profile, WINDOW, USER, 0, JIT + 0x30);
	(void)resolve(f, &request);
	assert_ptr_equal(f->last_jit, &f->process);
	request.process = &child;
	(void)resolve(f, &request);
	assert_int_equal(f->stack_hits, 1);
	assert_int_equal(f->jit_hits, 2);
	assert_ptr_equal(f->last_jit, &child);
	mappings_unref(child.mappings);
}

static void other_mappings_give_the_same_raw_stack_another_meaning(void **state)
{
	struct fixture *f = *state;
	struct profile_stack stack;

	put_raw(f->profile, WINDOW, USER, 0, PROGRAM + 0x20);
	(void)resolve_raw(f, USER, 0);
	map_page(&f->process.mappings, PROGRAM, 0, &f->library);
	stack = resolve_raw(f, USER, 0);
	assert_int_equal(f->stack_hits, 0);
	assert_frame(&stack, 0, LIBRARY_MODULE, 0x20);
}

static void kernel_code_that_takes_the_place_of_other_is_another_tenant(void **state)
{
	struct fixture *f = *state;
	struct kallsyms_event event = { BPF_PROGRAM, 64, true, "bpf_prog_a", 1000 };
	uint32_t tenants[2];

	assert_non_null(kernel_symbols_table(f->symbols));
	put_raw(f->profile, WINDOW, KERNEL, ABI_STACK_KERNEL, BPF_PROGRAM + 8);
	assert_int_equal(kernel_symbols_change(f->symbols, &event, false), 0);
	tenants[0] = resolve_raw(f, 0, KERNEL).frames[0].flags >> PROFILE_FRAME_TENANT_SHIFT;
	assert_int_equal(kernel_symbols_change(f->symbols, &event, true), 0);
	event.name = "bpf_prog_b";
	assert_int_equal(kernel_symbols_change(f->symbols, &event, false), 0);
	tenants[1] = resolve_raw(f, 0, KERNEL).frames[0].flags >> PROFILE_FRAME_TENANT_SHIFT;
	assert_int_not_equal(tenants[0], tenants[1]);
	assert_int_equal(f->stack_hits, 0);
}

/* A return address may be the first byte of the next mapping. */
static void a_return_address_belongs_to_the_code_before_it(void **state)
{
	struct fixture *f = *state;
	struct kallsyms_event event = { BPF_PROGRAM, 64, true, "bpf_prog_a", 1000 };
	struct profile_stack stack;
	uint32_t pc_tenant, return_tenant;

	assert_non_null(kernel_symbols_table(f->symbols));
	assert_int_equal(kernel_symbols_change(f->symbols, &event, false), 0);
	assert_int_equal(kernel_symbols_change(f->symbols, &event, true), 0);
	event.name = "bpf_prog_b";
	assert_int_equal(kernel_symbols_change(f->symbols, &event, false), 0);
	put_raw(f->profile, WINDOW, KERNEL, ABI_STACK_KERNEL, BPF_PROGRAM, BPF_PROGRAM,
		BPF_PROGRAM + 64);
	stack = resolve_raw(f, 0, KERNEL);
	pc_tenant = stack.frames[0].flags >> PROFILE_FRAME_TENANT_SHIFT;
	return_tenant = stack.frames[1].flags >> PROFILE_FRAME_TENANT_SHIFT;
	assert_int_not_equal(pc_tenant, 0);
	assert_int_equal(return_tenant, 0);
	assert_int_equal(stack.frames[2].flags >> PROFILE_FRAME_TENANT_SHIFT, pc_tenant);
}

/* ---- switches ------------------------------------------------------------------------------- */

static void the_tracing_of_a_switch_is_left_out(void **state)
{
	struct fixture *f = *state;
	struct stack_request request = request_of(f, 0, KERNEL);
	struct profile_stack stack;

	put_raw(f->profile, WINDOW, KERNEL, ABI_STACK_KERNEL, SWITCH_TRACE, SCHEDULE, NANOSLEEP);
	request.switched = true;
	stack = resolve(f, &request);
	assert_int_equal(stack.kernel_count, 2);
	assert_frame(&stack, 0, PROFILE_MODULE_KERNEL, SCHEDULE);
}

static void a_switch_whose_schedule_is_not_found_keeps_all_frames(void **state)
{
	struct fixture *f = *state;
	struct stack_request request = request_of(f, 0, KERNEL);

	put_raw(f->profile, WINDOW, KERNEL, ABI_STACK_KERNEL, SWITCH_TRACE, NANOSLEEP);
	request.switched = true;
	assert_int_equal(resolve(f, &request).kernel_count, 2);
}

/* Tracing never has so many frames before __schedule(), so this one belongs to something else. */
static void a_schedule_too_deep_keeps_all_frames(void **state)
{
	struct fixture *f = *state;
	struct stack_request request = request_of(f, 0, KERNEL);

	put_raw(f->profile, WINDOW, KERNEL, ABI_STACK_KERNEL, SWITCH_TRACE, SWITCH_TRACE,
		SWITCH_TRACE, SWITCH_TRACE, SWITCH_TRACE, SWITCH_TRACE, SWITCH_TRACE, SWITCH_TRACE,
		SWITCH_TRACE, SWITCH_TRACE, SWITCH_TRACE, SCHEDULE, NANOSLEEP);
	put_raw(f->profile, WINDOW, KERNEL + 1, ABI_STACK_KERNEL, SWITCH_TRACE, SWITCH_TRACE,
		SWITCH_TRACE, SWITCH_TRACE, SWITCH_TRACE, SWITCH_TRACE, SWITCH_TRACE, SWITCH_TRACE,
		SWITCH_TRACE, SWITCH_TRACE, SWITCH_TRACE, SWITCH_TRACE, SCHEDULE, NANOSLEEP);
	request.switched = true;
	assert_int_equal(resolve(f, &request).kernel_count, 2);
	request.kernel_stack = KERNEL + 1;
	assert_int_equal(resolve(f, &request).kernel_count, 14);
}

static void a_tick_within_the_tracing_of_a_switch_keeps_all_frames(void **state)
{
	struct fixture *f = *state;

	put_raw(f->profile, WINDOW, KERNEL, ABI_STACK_KERNEL, SWITCH_TRACE, SCHEDULE, NANOSLEEP);
	assert_int_equal(resolve_raw(f, 0, KERNEL).kernel_count, 3);
}

/* ---- limits --------------------------------------------------------------------------------- */

static void a_full_profile_refuses_a_new_stack(void **state)
{
	struct fixture *f = *state;
	struct stack_request request = request_of(f, USER, 0);
	struct profile *full;
	uint32_t number = 77;

	put_raw(f->profile, WINDOW, USER, 0, PROGRAM + 0x20);
	assert_int_equal(profile_create(1, &full), 0);
	assert_int_equal(stack_resolver_get(&f->resolver, full, &request, &number), -E2BIG);
	assert_int_equal(number, 77);
	profile_destroy(full);
}

/* Returns a profile that has room for STACK only. */
static struct profile *profile_with_room_for(const struct profile_stack *stack)
{
	struct profile *profile;
	uint32_t number;
	int err;

	for (size_t limit = 64; limit < 1 << 20; limit += 64) {
		assert_int_equal(profile_create(limit, &profile), 0);
		err = profile_stack(profile, stack, &number);
		profile_destroy(profile);
		if (err)
			continue;
		assert_int_equal(profile_create(limit, &profile), 0);
		return profile;
	}
	fail();
	return NULL;
}

static void a_cache_without_room_costs_no_sample(void **state)
{
	struct fixture *f = *state;
	struct stack_request request = request_of(f, USER, 0);
	struct profile_stack stack;
	struct profile *tight;
	uint32_t first, second;

	put_raw(f->profile, WINDOW, USER, 0, PROGRAM + 0x20);
	stack = resolve(f, &request);
	tight = profile_with_room_for(&stack);
	assert_int_equal(stack_resolver_get(&f->resolver, tight, &request, &first), 0);
	assert_int_equal(stack_resolver_get(&f->resolver, tight, &request, &second), 0);
	assert_int_equal(first, second);
	assert_int_equal(profile_stack_count(tight), 1);
	profile_destroy(tight);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(both_stacks_become_one_with_kernel_frames_first),
		CASE(a_sample_without_stacks_has_no_frames),
		CASE(a_return_address_at_the_end_of_a_mapping_belongs_to_it),
		CASE(a_pc_outside_of_all_mappings_stays_a_pc),
		CASE(a_lost_raw_stack_is_counted_and_found_when_it_comes),
		CASE(a_lost_kernel_stack_leaves_the_user_frames),
		CASE(a_raw_stack_of_another_window_is_not_taken),
		CASE(jit_code_keeps_its_pc_and_its_process_is_reported),
		CASE(the_depth_limit_shows_whichever_stack_was_cut),
		CASE(the_end_of_a_walk_by_tables_is_kept),
		CASE(the_first_frame_of_a_call_stands_for_its_function),
		CASE(the_deepest_stacks_of_both_kinds_fit),
		CASE(a_walked_stack_is_resolved_with_the_mappings_it_was_walked_with),
		CASE(a_stack_without_its_middle_says_so),
		CASE(a_caller_that_was_searched_for_is_told),
		CASE(a_walk_to_the_depth_limit_is_cut),
		CASE(equal_raw_stacks_are_resolved_once),
		CASE(a_forked_child_shares_the_stacks_but_has_jit_code_of_its_own),
		CASE(other_mappings_give_the_same_raw_stack_another_meaning),
		CASE(kernel_code_that_takes_the_place_of_other_is_another_tenant),
		CASE(the_tracing_of_a_switch_is_left_out),
		CASE(a_schedule_too_deep_keeps_all_frames),
		CASE(a_return_address_belongs_to_the_code_before_it),
		CASE(a_switch_whose_schedule_is_not_found_keeps_all_frames),
		CASE(a_tick_within_the_tracing_of_a_switch_keeps_all_frames),
		CASE(a_full_profile_refuses_a_new_stack),
		CASE(a_cache_without_room_costs_no_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
