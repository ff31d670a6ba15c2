/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/walks_fixture.h"

#include "tests/unit/small_index.h"
#include "tests/unit/unwind_page_writer.h"

/* ---- the kernel's maps ---------------------------------------------------------------------- */

static int write_ranges(
	void *context, uint32_t first, const struct abi_unwind_range *ranges, uint32_t count)
{
	(void)context;
	(void)first;
	(void)ranges;
	(void)count;
	return 0;
}

static int write_pool(void *context, uint32_t offset, const void *bytes, size_t size)
{
	(void)context;
	(void)offset;
	(void)bytes;
	(void)size;
	return 0;
}

static int set_process(void *context, uint32_t tgid, const struct abi_unwind_process *process)
{
	struct walks_fixture *w = context;

	(void)tgid;
	w->written = *process;
	w->writes++;
	return 0;
}

static int set_file(
	void *context, const struct abi_file *file, const struct abi_unwind_process *ranges)
{
	struct walks_fixture *w = context;

	(void)file;
	(void)ranges;
	w->learned++;
	return 0;
}

static void remove_file(void *context, const struct abi_file *file)
{
	(void)context;
	(void)file;
}

static void remove_process(void *context, uint32_t tgid)
{
	(void)context;
	(void)tgid;
}

static void set_number(void *context, uint32_t number)
{
	(void)context;
	(void)number;
}

static void set_full(void *context, bool full)
{
	struct walks_fixture *w = context;

	w->full = full;
}

/* ---- the owner ------------------------------------------------------------------------------ */

static enum unwind_module module_state(
	void *context, const struct module *module, const struct index **ret_index)
{
	const struct walks_fixture *w = context;

	if (module == w->waiting[0] || module == w->waiting[1])
		return UNWIND_MODULE_WAITING;
	if (!w->index)
		return UNWIND_MODULE_NONE;
	*ret_index = w->index;
	return UNWIND_MODULE_READY;
}

static bool request_module(void *context, struct process *p, const struct mapping *mapping)
{
	struct walks_fixture *w = context;

	assert_ptr_equal(p, w->process);
	w->requests++;
	w->last_request = mapping->module;
	if (w->comes_at_once)
		walk_modules_come(w);
	return !w->refused;
}

static void want_module(void *context, const struct module *module)
{
	struct walks_fixture *w = context;

	w->wants++;
	w->last_want = module;
}

static void walked(void *context)
{
	struct walks_fixture *w = context;

	w->lookups++;
}

static void add(void *context, const struct attributed_sample *sample)
{
	struct walks_fixture *w = context;
	struct added_sample *added;
	const struct mapping *mapping;

	assert_true(w->added_count < WALK_ADDED);
	added = &w->added[w->added_count++];
	*added = (struct added_sample){
		.process = sample->process,
		.record = *(const struct abi_tick *)sample->record,
		.walked = sample->walked,
		.mappings = sample->mappings,
	};
	if (!sample->walked)
		return;
	added->stack = *sample->walked;
	mapping = mappings_find(sample->mappings, sample->walked->frames[0]);
	added->first_module = mapping ? mapping->module : NULL;
}

static void lost(void *context, const struct abi_sample *sample)
{
	struct walks_fixture *w = context;

	w->lost++;
	w->last_lost = *sample;
}

void walks_begin(struct walks_fixture *w, struct unwind *unwind, size_t limit_bytes)
{
	pending_walks_deinit(&w->walks);
	pending_walks_init(&w->walks, &(struct pending_walks_options){
					      .unwind = unwind,
					      .processes = w->f->ps,
					      .metrics = &w->f->metrics,
					      .limit_bytes = limit_bytes,
					      .module_state = module_state,
					      .request_module = request_module,
					      .want_module = want_module,
					      .walked = walked,
					      .add = add,
					      .lost = lost,
					      .context = w,
				      });
}

static void make_unwind(struct walks_fixture *w, bool by_file)
{
	struct unwind_options options = {
		.target = {
			.slots = w->slots,
			.write_ranges = write_ranges,
			.write_pool = write_pool,
			.set_process = set_process,
			.remove_process = remove_process,
			.set_epoch = set_number,
			.set_rules_epoch = set_number,
			.set_full = set_full,
			.context = w,
		},
		.metrics = &w->f->metrics,
		.module = module_state,
		.context = w,
	};

	if (by_file) {
		options.target.set_file = set_file;
		options.target.remove_file = remove_file;
		options.target.set_files_epoch = set_number;
	}
	assert_int_equal(unwind_create(&options, &w->unwind), 0);
}

void walks_unwind_by_file(struct walks_fixture *w)
{
	walks_begin(w, NULL, 1 << 20);
	unwind_destroy(w->unwind);
	make_unwind(w, true);
	walks_begin(w, w->unwind, 1 << 20);
}

int walks_set_up(void **state)
{
	struct walks_fixture *w = calloc(1, sizeof(*w));
	void *process_state = NULL;

	if (!w || process_set_up(&process_state))
		return -1;
	w->f = process_state;
	w->slots = calloc(ABI_UNWIND_SLOTS, sizeof(*w->slots));
	if (!w->slots)
		return -1;
	exec(w->f, 1000, WALK_PID, &w->f->program);
	w->process = sampled(w->f, WALK_PID, 2000);
	*state = w;
	make_unwind(w, false);
	walks_begin(w, w->unwind, 1 << 20);
	return 0;
}

int walks_tear_down(void **state)
{
	struct walks_fixture *w = *state;
	void *process_state = w->f;

	pending_walks_deinit(&w->walks);
	unwind_destroy(w->unwind);
	process_tear_down(&process_state);
	index_destroy(w->index);
	free(w->slots);
	free(w);
	return 0;
}

/* ---- walks ---------------------------------------------------------------------------------- */

const struct module *walk_program(const struct walks_fixture *w)
{
	return module_at(w->process, WALK_PROGRAM_PC);
}

const struct module *walk_libc(const struct walks_fixture *w)
{
	return module_at(w->process, WALK_LIBC_PC);
}

void walk_modules_come(struct walks_fixture *w)
{
	w->waiting[0] = w->waiting[1] = NULL;
	pending_walks_module_known(&w->walks);
}

struct abi_unfinished *walk_unfinished(uint32_t window, uint32_t tid)
{
	uint64_t words[WALK_STACK_WORDS] = { [WALK_FRAME_WORD + 1] = WALK_LIBC_PC };
	struct abi_unfinished *u = calloc(1, sizeof(*u) + sizeof(words));

	assert_non_null(u);
	u->tick = (struct abi_tick){
		.sample = {
			.kind = ABI_TICK,
			.window = window,
			.tgid = WALK_PID,
			.tid = tid,
			.user_stack = 77,
		},
		.period = 1000 + tid,
	};
	u->rest = (struct abi_unwind_rest){
		.pc = WALK_PROGRAM_PC,
		.sp = WALK_STACK,
		.fp = WALK_STACK + 8 * WALK_FRAME_WORD,
		.stack_bytes = sizeof(words),
		.stack_address = WALK_STACK,
	};
	memcpy(u->stack, words, sizeof(words));
	return u;
}

/* ---- code without a table ------------------------------------------------------------------- */

/* Frames of two words, the return address second; the root, and behind it code without a table. */
void walks_give_tables(struct walks_fixture *w)
{
	struct index_writer *writer = create();
	struct page_writer *page = calloc(1, sizeof(*page));
	const struct abi_unwind_page *made;

	assert_non_null(page);
	function(writer, "inner", 0x100, 0x200);
	function(writer, "outer", 0x200, 0x300);
	function(writer, "untabled", 0xc00, 0xd00);
	page_begin(page, rule_none());
	page_row(page, 0x1000, rule_sp(16));
	page_row(page, 0x1800, rule_of(ABI_CFA_END));
	page_row(page, 0x1c00, rule_none());
	made = page_finish(page);
	assert_int_equal(writer_unwind_page(writer, 0x400000, made, made->size), 0);
	w->index = finish(writer);
	free(page);
}

struct abi_unfinished *walk_untabled(uint32_t window, uint32_t tid)
{
	const uint64_t words[WALK_STACK_WORDS] = { WALK_IN_INNER, 0, WALK_IN_OUTER, 0,
		WALK_IN_ROOT };
	struct abi_unfinished *u = walk_unfinished(window, tid);

	memcpy(u->stack, words, sizeof(words));
	u->rest.pc = WALK_UNTABLED_PC;
	u->rest.fp = 0;
	return u;
}

/* The last bytes of a direct call of TARGET that returns to ADDRESS. */
static uint64_t call_of(uint64_t target, uint64_t address)
{
	return (target - address) << 32 | 0xe8000000;
}

void walk_give_returns(struct walks_fixture *w, uint32_t tid)
{
	const struct abi_returns returns = {
		.kind = ABI_RETURNS_RECORD,
		.tid = tid,
		.sp = WALK_STACK,
		.count = 3,
		.words = WALK_STACK_WORDS,
		.of = { { 0, call_of(0x400c00, WALK_IN_INNER) },
			{ 2, call_of(0x400100, WALK_IN_OUTER) },
			{ 4, UINT64_C(0xd0ff) << 48 /* call *%rax */ } },
	};

	pending_walks_returns(&w->walks, &returns);
}

void assert_guessed(const struct added_sample *added)
{
	const uint64_t frames[] = { WALK_UNTABLED_PC, WALK_IN_INNER, WALK_IN_OUTER, WALK_IN_ROOT };

	assert_true(added->walked);
	assert_int_equal(added->stack.end, ABI_UNWIND_ROOT);
	assert_int_equal(added->stack.guessed, 1);
	assert_int_equal(added->stack.count, ARRAY_SIZE(frames));
	assert_memory_equal(added->stack.frames, frames, sizeof(frames));
}

void walk_finish_made(struct walks_fixture *w, const struct abi_unfinished *unfinished)
{
	const struct {
		struct abi_stack head;
		uint64_t frame;
	} raw = { { .kind = ABI_STACK, .id = 77, .frame_count = 1 }, unfinished->rest.pc };

	pending_walks_finish(&w->walks, w->process, unfinished, &raw.head);
}

void walk_finish(struct walks_fixture *w, uint32_t window, uint32_t tid)
{
	struct abi_unfinished *u = walk_unfinished(window, tid);

	walk_finish_made(w, u);
	free(u);
}

void assert_walked(
	const struct walks_fixture *w, size_t count, uint32_t tid, enum abi_unwind_end end)
{
	const struct added_sample *last = &w->added[w->added_count - 1];

	assert_int_equal(w->added_count, count);
	assert_ptr_equal(last->process, w->process);
	assert_int_equal(last->record.sample.tid, tid);
	assert_int_equal(last->record.sample.tgid, WALK_PID);
	assert_true(last->walked);
	assert_int_equal(last->stack.end, end);
	assert_int_equal(last->stack.frames[0], WALK_PROGRAM_PC);
	/* Without the program's table nobody knows its caller. */
	assert_int_equal(last->stack.count, end == ABI_UNWIND_NOT_LOADED ? 1 : 2);
	if (end != ABI_UNWIND_NOT_LOADED)
		assert_true(last->stack.frames[1] == WALK_LIBC_PC);
}
