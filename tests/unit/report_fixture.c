/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/report_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/probes.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/writer/writer.h"
#include "tests/unit/direct_build_ids.h"

static int text_fd(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static uint32_t string(struct index_writer *w, const char *text)
{
	uint32_t number;

	assert_int_equal(writer_string(w, text, strlen(text), &number), 0);
	return number;
}

static uint32_t node(
	struct index_writer *w, uint32_t parent, const char *name, uint64_t low, uint64_t high)
{
	struct writer_node n = { .parent = parent,
		.linkage = string(w, name),
		.name = string(w, name),
		.start_line = 10 };
	uint32_t number;

	if (parent != WRITER_NONE) {
		n.call_file = string(w, "/src/main.c");
		n.call_line = 42;
	}
	assert_int_equal(writer_node(w, &n, &number), 0);
	assert_int_equal(writer_range(w, number, low, high), 0);
	return number;
}

/* main() with `inner` inlined at its second half, and _start. */
static struct index *make_index(void)
{
	struct index_writer *w = index_writer_create();
	struct writer_segment segment = { SEGMENT_ADDRESS, SEGMENT_SIZE, SEGMENT_OFFSET };
	uint64_t bias = SEGMENT_ADDRESS - SEGMENT_OFFSET;
	struct build_id id = { 4, { 0xde, 0xad, 0xbe, 0xef } };
	autoclose int fd = memfd_create("index", MFD_CLOEXEC);
	struct index *index;
	uint32_t outer;

	assert_non_null(w);
	assert_int_equal(writer_segment(w, &segment), 0);
	outer = node(w, WRITER_NONE, "main", MAIN + bias, MAIN + bias + 0x100);
	node(w, outer, "inner", MAIN + bias + 0x80, MAIN + bias + 0x100);
	node(w, WRITER_NONE, "_start", START + bias, START + bias + 0x100);
	node(w, WRITER_NONE, "__libc_start_main", LIBC_START + bias, LIBC_START + bias + 0x100);
	node(w, WRITER_NONE, "runtime.mcall", MCALL + bias, MCALL + bias + 0x80);
	assert_int_equal(writer_extent(w, UNWOUND + bias, UNWOUND + bias + 0x80), 0);
	assert_int_equal(writer_sequence_begin(w, 0), 0);
	assert_int_equal(writer_row(w, MAIN + bias, string(w, "/src/main.c"), 12, 3), 0);
	assert_int_equal(writer_row(w, MAIN + bias + 0x80, string(w, "/src/inner.h"), 7, 1), 0);
	assert_int_equal(writer_sequence_end(w, MAIN + bias + 0x100), 0);
	writer_build_id(w, &id);
	writer_file_hash(w, &(struct file_hash){ { 1, 2, 3, 4, [15] = 9 } });
	assert_int_equal(writer_finish(w, fd), 0);
	index_writer_destroy(w);
	assert_int_equal(index_open(fd, &index), 0);
	return index;
}

/*
 * What a debug file says of the kernel: `checked` is inlined in vfs_read, which the compiler has
 * split, and do_syscall_64 is somewhere else.
 */
static struct index *make_kernel_index(void)
{
	struct index_writer *w = index_writer_create();
	struct writer_segment segment = { KERNEL_LINKED, 0x3000, 0x1000 };
	const uint64_t vfs_read = KERNEL_LINKED + 0x2000;
	autoclose int fd = memfd_create("index", MFD_CLOEXEC);
	struct index *index;
	uint32_t outer;

	assert_non_null(w);
	assert_int_equal(writer_segment(w, &segment), 0);
	node(w, WRITER_NONE, "another", KERNEL_LINKED + 0x1000, KERNEL_LINKED + 0x1100);
	outer = node(w, WRITER_NONE, "vfs_read.isra.0", vfs_read, vfs_read + 0x100);
	node(w, outer, "checked", vfs_read, vfs_read + 0x100);
	assert_int_equal(writer_sequence_begin(w, 0), 0);
	assert_int_equal(writer_row(w, vfs_read, string(w, "/fs/check.h"), 7, 1), 0);
	assert_int_equal(writer_sequence_end(w, vfs_read + 0x100), 0);
	assert_int_equal(writer_finish(w, fd), 0);
	index_writer_destroy(w);
	assert_int_equal(index_open(fd, &index), 0);
	return index;
}

static const struct index *kernel_index_of(void *context)
{
	const struct fixture *f = context;

	return f->kernel_lines ? f->kernel_index : NULL;
}

static const struct index *index_of(void *context, const struct module *module)
{
	struct fixture *f = context;

	return module == f->program ? f->index : NULL;
}

static void looks_up(void *context)
{
	struct fixture *f = context;

	f->looked_up++;
}

static const struct perf_map *perf_map_of(void *context, uint32_t process)
{
	struct fixture *f = context;

	return process == f->jit_process ? f->jit : NULL;
}

static void runtime_names_of(
	void *context, uint32_t process, const struct abi_frame *frame, struct runtime_names *names)
{
	const struct fixture *f = context;

	if (f->runtime_names)
		f->runtime_names(context, process, frame, names);
}

static struct module *make_module(
	struct fixture *f, enum module_kind kind, uint8_t id, const char *path)
{
	struct module_id identity = { .build_id = { .size = id ? 4 : 0, .bytes = { id } } };
	struct module *module;

	assert_int_equal(modules_get(f->modules, kind, &identity, path, &module), 0);
	return module;
}

static void make_symbols(struct fixture *f)
{
	autoclose int kallsyms_fd = text_fd("ffffffff9a400000 T _text\n"
					    "ffffffff9a400000 T _stext\n"
					    "ffffffff9a401000 T do_syscall_64\n"
					    "ffffffff9a401ff0 t __pfx_vfs_read\n"
					    "ffffffff9a402000 T vfs_read\n"
					    "ffffffff9a402800 t kretprobe_trampoline\n"
					    "ffffffff9a402900 T __entry_text_start\n"
					    "ffffffff9a402910 T asm_exc_page_fault\n"
					    "ffffffff9a402a00 T __entry_text_end\n"
					    "ffffffff9a402a00 t put_dec\n"
					    "ffffffff9a402b00 t number\n"
					    "ffffffff9a403000 T _etext\n"
					    "ffffffffc0000000 t nf_hook\t[nf_tables]\n"
					    "ffffffffc0001000 t bpf_prog_1234\t[bpf]\n"
					    "ffffffffc0002000 t last\t[nf_tables]\n");
	autoclose int jit_fd = text_fd("7000 100 LazyCompile:*foo /src/a.js:12\n");

	assert_int_equal(kallsyms_create(kallsyms_fd, &f->kallsyms), 0);
	assert_int_equal(perf_map_create(&f->jit), 0);
	assert_int_equal(perf_map_update(f->jit, jit_fd), 0);
	f->index = make_index();
	f->kernel_index = make_kernel_index();
}

static struct process *make_process(struct fixture *f, uint32_t pid, const char *comm)
{
	struct process *p;

	processes_fork(f->processes, 10, pid, pid, 1, 1);
	processes_comm(f->processes, 11, pid, pid, comm, true);
	p = processes_get(f->processes, &(struct processes_sample){ .pid = pid, .time_ns = 12 });
	assert_non_null(p);
	p->sampled = true;
	return p;
}

struct sample_types sample_types_of(bool cycles, bool off_cpu)
{
	struct sample_types types;

	probes_sample_types(
		&(struct collect_options){
			.event = cycles ? COLLECT_CYCLES : COLLECT_CPU_CLOCK,
			.off_cpu_share = off_cpu,
		},
		&types);
	return types;
}

int report_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct processes_options options = { .metrics = &f->metrics, .limit = 100 };
	char empty[] = "/tmp/fathom-report-XXXXXX";

	assert_non_null(mkdtemp(empty));
	f->proc_fd = open(empty, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	rmdir(empty);
	assert_int_equal(modules_create(100, &f->modules), 0);
	options.proc_fd = f->proc_fd;
	options.modules = f->modules;
	options.build_ids = &direct_build_ids;
	assert_int_equal(processes_create(&options, &f->processes), 0);
	assert_int_equal(profile_create(1 << 24, &f->profile), 0);
	window_processes_init(&f->described);
	make_symbols(f);
	f->program = make_module(f, MODULE_FILE, 1, "/bin/program");
	f->library = make_module(f, MODULE_FILE, 2, "/lib/stripped;odd.so");
	f->anon = make_module(f, MODULE_ANON, 0, "//anon");
	f->vsyscall = make_module(f, MODULE_SPECIAL, 0, "[vsyscall]");
	f->one = make_process(f, 100, "one");
	f->two = make_process(f, 200, "two");
	f->jit_process = f->one->number;
	assert_int_equal(symbolize_create(
				 &(struct symbolize_options){
					 .modules = f->modules,
					 .index = index_of,
					 .kernel_index = kernel_index_of,
					 .looks_up = looks_up,
					 .perf_map = perf_map_of,
					 .runtime_names = runtime_names_of,
					 .context = f,
				 },
				 &f->symbolize),
		0);
	f->sources = (struct report_sources){
		.profile = f->profile,
		.processes = &f->described,
		.anon_module = processes_anon_module(f->processes),
		.symbolize = f->symbolize,
		.metrics = &f->metrics,
	};
	f->options = (struct report_options){
		.types = sample_types_of(false, false),
		.period = 10101010,
		.time_ns = 1,
		.duration_ns = 2,
	};
	*state = f;
	return 0;
}

int report_teardown(void **state)
{
	struct fixture *f = *state;

	profile_destroy(f->profile);
	window_processes_deinit(&f->described);
	symbolize_destroy(f->symbolize);
	processes_destroy(f->processes);
	modules_destroy(f->modules);
	kallsyms_destroy(f->kallsyms);
	perf_map_destroy(f->jit);
	index_destroy(f->index);
	index_destroy(f->kernel_index);
	close(f->proc_fd);
	free(f);
	return 0;
}

const struct window_processes *describe(struct fixture *f)
{
	window_processes_deinit(&f->described);
	window_processes_init(&f->described);
	sealing_describe(f->profile, f->processes, &f->metrics, &f->described);
	return &f->described;
}

const struct report_sources *sealed_sources(struct fixture *f)
{
	describe(f);
	symbolize_begin(f->symbolize, f->no_kernel_symbols ? NULL : f->kallsyms);
	return &f->sources;
}

const struct report_sources *known_sources(struct fixture *f)
{
	struct report_summary summary;
	autocall(buffer_deinit) struct buffer out;

	buffer_init(&out, SIZE_MAX);
	assert_int_equal(
		report_folded(sealed_sources(f), &f->options, SAMPLE_TYPE_TICKS, &out, &summary),
		0);
	return sealed_sources(f);
}

void unseal(struct fixture *f)
{
	window_processes_deinit(&f->described);
	symbolize_begin(f->symbolize, NULL);
	symbolize_shrink(f->symbolize);
}

/* ---- making samples ---- */

struct profile_frame in_program(uint64_t file_off, uint32_t flags, const struct fixture *f)
{
	return (struct profile_frame){ file_off, f->program->number, flags };
}

struct profile_frame in_kernel(unsigned int page, uint32_t flags)
{
	return (struct profile_frame){ KERNEL_BASE + page * 0x1000 + 0x10, PROFILE_MODULE_KERNEL,
		flags };
}

void add_stack(struct fixture *f, const struct process *p, const struct profile_stack *stack,
	uint64_t count)
{
	struct profile_sample sample = { .process = p->number,
		.pid = p->pid,
		.tid = p->pid + 1,
		.cpu = 0,
		.comm = "thread",
		.count = count,
		.weight = count * 10101010 };

	assert_int_equal(profile_stack(f->profile, stack, &sample.stack), 0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
}

void add_wait(struct fixture *f, const struct process *p, const struct profile_stack *stack,
	uint64_t wait_ns)
{
	struct profile_sample sample = { .process = p->number,
		.pid = p->pid,
		.tid = p->pid + 1,
		.flags = ABI_SAMPLE_KERNEL,
		.comm = "thread",
		.type = PROBE_off_cpu,
		.count = 1,
		.weight = wait_ns };

	assert_int_equal(profile_stack(f->profile, stack, &sample.stack), 0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
}

void add_user(struct fixture *f, const struct process *p, const struct profile_frame *frames,
	uint32_t count)
{
	struct profile_stack stack = { frames, count, 0, 0 };

	add_stack(f, p, &stack, 1);
}
