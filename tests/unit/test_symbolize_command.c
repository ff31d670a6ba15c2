/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fathom symbolize` of a file, a process, the kernel and a profile. The file and the process are
 * this test, whose addresses and lines the compiler gives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "agent/commands/symbolize.h"
#include "agent/commands/upload.h"
#include "agent/sampler/files/file_child.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "pprof/pprof.h"
#include "symbolizer/indexer/elf/build_id.h"
#include "symbolizer/sandboxed/main.h"
#include "tests/unit/command_fixture.h"

extern const char __executable_start[];

static struct command_run run;
static char directory[] = "/tmp/fathom-test-XXXXXX";
static char self[PATH_MAX];

/* In optimized code the function begins at the line of its body. */
enum { SOUGHT_LINE = __LINE__ + 1, SOUGHT_END = SOUGHT_LINE + 3 };
static __attribute__((noinline, used)) int symbolize_me(int number)
{
	return number * 3;
}

static uint64_t elf_address_of_sought(void)
{
	return (uint64_t)(uintptr_t)symbolize_me - (uint64_t)(uintptr_t)__executable_start;
}

static const char *below(const char *name)
{
	static char paths[4][PATH_MAX + 64];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static int setup(void **state)
{
	(void)state;
	run = (struct command_run){ 0 };
	return 0;
}

static const char *words_for(const char *format, ...) __attribute__((format(printf, 1, 2)));

static const char *words_for(const char *format, ...)
{
	static char words[2 * PATH_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(words, sizeof(words), format, arguments);
	va_end(arguments);
	return words;
}

static const char *hex_of(uint64_t address)
{
	static char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64 "\n", address);
	return text;
}

static void out_contains(const char *wanted)
{
	if (!strstr(run.out, wanted))
		fail_msg("'%s' is not in '%s' (%s)", wanted, run.out, run.err);
}

/* Without -g the test has no lines. */
static bool has_lines(void)
{
	return !system(words_for("readelf -SW %s | grep -q debug_line", self));
}

static void sought_line_is(int64_t line)
{
	if (has_lines())
		assert_in_range(line, SOUGHT_LINE, SOUGHT_END);
}

/* The output begins with the name and the line of symbolize_me. */
static void out_is_of_sought(void)
{
	static const char file[] = "tests/unit/test_symbolize_command.c:";
	const char *at = strstr(run.out, file);

	assert_memory_equal(run.out, "symbolize_me\n", 13);
	assert_int_equal(at != NULL, has_lines());
	if (at)
		sought_line_is(strtol(at + strlen(file), NULL, 10));
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void invalid_arguments_are_bad_usage(void **state)
{
	static const struct {
		const char *words, *message;
	} cases[] = {
		{ "symbolize",
			"say what the addresses belong to: a file (-e FILE), a process (-p PID)" },
		{ "symbolize -k 0x12",
			"addresses are read from standard input, not from arguments" },
		{ "symbolize -k -e x", "only one of -e, -p, -k and --profile" },
		{ "symbolize -p 1 -e x", "only one of -e, -p, -k and --profile" },
		{ "symbolize -k --profile x -o y", "only one of -e, -p, -k and --profile" },
		{ "symbolize --profile x", "--profile needs an output file: -o FILE" },
		{ "symbolize -k -o x", "-o is only for --profile: results go to standard output" },
		{ "symbolize -k --output-style GNU", "--output-style must be LLVM or JSON" },
		{ "symbolize -p 0", "-p takes the pid of one process" },
		{ "symbolize -p 1,2", "fathom: --pid" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		command_expect(&run, cases[i].words, EXIT_USAGE, cases[i].message);
		assert_string_equal(run.out, "");
		assert_memory_equal(run.err, "fathom", 6);
	}
}

static void a_file_that_is_not_a_program_fails(void **state)
{
	static const struct {
		const char *file, *message;
	} cases[] = {
		{ "/no/such", "cannot open /no/such: No such file or directory\n" },
		{ "/dev/null", "/dev/null is not a regular file\n" },
		{ "/tmp", "/tmp is not a regular file\n" },
		{ "/proc/self/cmdline", "is not a readable ELF file" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		command_expect(&run, words_for("symbolize -e %s", cases[i].file), EXIT_FAILED,
			cases[i].message);
		assert_string_equal(run.out, "");
	}
}

/* ---- a file ---------------------------------------------------------------------------------- */

static void an_address_of_a_file(void **state)
{
	(void)state;
	run.input = hex_of(elf_address_of_sought());
	/* The second run uses the cache, the third has none. */
	for (int i = 0; i < 3; i++) {
		command_expect(&run,
			words_for("symbolize -e %s --cache-directory=%s", self,
				i < 2 ? directory : "/proc/none"),
			EXIT_DONE, "");
		out_is_of_sought();
		assert_string_equal(run.out + strlen(run.out) - 2, "\n\n");
		assert_string_equal(run.err, "");
	}
}

static void lines_that_are_addresses(void **state)
{
	static const struct {
		const char *line;
		bool is_address;
	} cases[] = { { "0x1", true }, { "  0x1  ", true }, { "CODE 0x1", true },
		{ "CODE  0x1", true }, { "17", true }, { "0", true },
		{ "0xffffffffffffffff", true }, { "0x10000000000000000", false }, { "0x", false },
		{ "x", false }, { "-1", false }, { "", false }, { "0x1 2", false },
		{ "DATA 0x1", false }, { "CODE", false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char input[64], expected[64];

		snprintf(input, sizeof(input), "%s\n", cases[i].line);
		snprintf(expected, sizeof(expected), "%s\n",
			cases[i].is_address ? "??\n??:0:0\n" : cases[i].line);
		run.input = input;
		command_expect(&run,
			words_for("symbolize -e %s --cache-directory=%s", self, directory),
			EXIT_DONE, "");
		assert_string_equal(run.out, expected);
	}
	/* The last line may lack a newline; without lines there is no output. */
	run.input = "0x1";
	command_expect(&run, words_for("symbolize -e %s --cache-directory=%s", self, directory),
		EXIT_DONE, "");
	assert_string_equal(run.out, "??\n??:0:0\n\n");
	run.input = "";
	command_expect(&run, words_for("symbolize -e %s --cache-directory=%s", self, directory),
		EXIT_DONE, "");
	assert_string_equal(run.out, "");
}

static void json_has_one_object_a_line(void **state)
{
	char expected[PATH_MAX + 128];

	(void)state;
	run.input = "0x1\nx\n";
	command_expect(&run,
		words_for("symbolize -e %s --output-style=json --cache-directory=%s", self,
			directory),
		EXIT_DONE, "");
	snprintf(expected, sizeof(expected), "{\"Address\":\"0x1\",\"ModuleName\":\"%s\",", self);
	assert_memory_equal(run.out, expected, strlen(expected));
	snprintf(expected, sizeof(expected),
		"{\"Error\":{\"Message\":\"unable to parse the address\"},\"ModuleName\":\"%s\"}\n",
		self);
	assert_string_equal(strchr(run.out, '\n') + 1, expected);
}

static void output_to_full(void *context)
{
	int full = open("/dev/full", O_WRONLY);

	(void)context;
	dup2(full, STDOUT_FILENO);
	close(full);
}

static void input_from_directory(void *context)
{
	int input = open("/", O_RDONLY);

	(void)context;
	dup2(input, STDIN_FILENO);
	close(input);
}

static void read_and_write_errors_are_reported(void **state)
{
	(void)state;
	run.input = "0x1\n";
	run.prepare = output_to_full;
	command_expect(&run, words_for("symbolize -e %s --cache-directory=%s", self, directory),
		EXIT_FAILED, "fathom symbolize: standard output: No space left on device\n");
	run.prepare = input_from_directory;
	command_expect(&run, words_for("symbolize -e %s --cache-directory=%s", self, directory),
		EXIT_FAILED, "fathom symbolize: standard input: Is a directory\n");
}

/* ---- what is printed ------------------------------------------------------------------------- */

static const struct symbolize_answer chain = {
	.module = "/bin/app",
	.count = 2,
	.frames = {
		{ .name = "in(int)", .linkage = "_Z2ini", .file = "in.h", .line = 7, .column = 3,
			.start_line = 5 },
		{ .name = "out()", .linkage = "_Z3outv", .file = "", .line = 9, .column = 1,
			.start_line = 8 },
	},
};

static const char *printed(const struct symbolize_style *style, const struct symbolize_answer *a)
{
	static char text[4096];
	FILE *out = fmemopen(text, sizeof(text), "w");

	memset(text, 0, sizeof(text));
	symbolize_print(out, style, 0xabc, a);
	fclose(out);
	return text;
}

static void answers_are_printed_as_llvm_does(void **state)
{
	static const struct symbolize_answer unknown = { .module = "" };
	struct symbolize_answer kernel = { .module = "[ext4]", .name_module = true, .count = 1 };

	(void)state;
	kernel.frames[0] = (struct index_frame){ .name = "f", .linkage = "f", .file = "" };
	assert_string_equal(printed(&(struct symbolize_style){ 0 }, &chain),
		"in(int)\nin.h:7:3\nout()\n??:9:1\n\n");
	assert_string_equal(printed(&(struct symbolize_style){ .linkage_names = true }, &chain),
		"_Z2ini\nin.h:7:3\n_Z3outv\n??:9:1\n\n");
	/* Without inlines: the outer function at the line of the inner one. */
	assert_string_equal(printed(&(struct symbolize_style){ .no_inlines = true }, &chain),
		"out()\nin.h:7:3\n\n");
	assert_string_equal(
		printed(&(struct symbolize_style){ .no_inlines = true, .linkage_names = true },
			&chain),
		"_Z3outv\nin.h:7:3\n\n");
	assert_string_equal(printed(&(struct symbolize_style){ 0 }, &unknown), "??\n??:0:0\n\n");
	assert_string_equal(
		printed(&(struct symbolize_style){ 0 }, &kernel), "f [ext4]\n??:0:0\n\n");
	assert_string_equal(printed(&(struct symbolize_style){ .no_inlines = true }, &kernel),
		"f [ext4]\n??:0:0\n\n");
}

static void answers_are_printed_as_json(void **state)
{
	static const struct symbolize_answer unknown = { .module = "" };

	(void)state;
	assert_string_equal(printed(&(struct symbolize_style){ .json = true }, &chain),
		"{\"Address\":\"0xabc\",\"ModuleName\":\"/bin/app\",\"Symbol\":["
		"{\"Column\":3,\"Discriminator\":0,\"FileName\":\"in.h\",\"FunctionName\":\"in(int)"
		"\","
		"\"Line\":7,\"StartAddress\":\"\",\"StartFileName\":\"\",\"StartLine\":5},"
		"{\"Column\":1,\"Discriminator\":0,\"FileName\":\"\",\"FunctionName\":\"out()\","
		"\"Line\":9,\"StartAddress\":\"\",\"StartFileName\":\"\",\"StartLine\":8}]}\n");
	assert_non_null(strstr(
		printed(&(struct symbolize_style){ .json = true, .no_inlines = true }, &chain),
		"\"FileName\":\"in.h\",\"FunctionName\":\"out()\",\"Line\":7,\"StartAddress\":\"\","
		"\"StartFileName\":\"\",\"StartLine\":8}]}\n"));
	assert_string_equal(printed(&(struct symbolize_style){ .json = true }, &unknown),
		"{\"Address\":\"0xabc\",\"ModuleName\":\"\",\"Symbol\":["
		"{\"Column\":0,\"Discriminator\":0,\"FileName\":\"\",\"FunctionName\":\"\","
		"\"Line\":0,\"StartAddress\":\"\",\"StartFileName\":\"\",\"StartLine\":0}]}\n");
}

/* ---- a process ------------------------------------------------------------------------------- */

static void addresses_of_a_process(void **state)
{
	char input[256], map[64];
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *perf_map;

	(void)state;
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", getpid());
	perf_map = fopen(map, "w");
	fprintf(perf_map, "%" PRIxPTR " 100 compiled\n", (uintptr_t)code);
	fclose(perf_map);
	snprintf(input, sizeof(input), "%p\n%p\n%p\n0x10\n", (void *)(uintptr_t)symbolize_me, code,
		(void *)((char *)code + 0x100));
	run.input = input;
	command_expect(&run, words_for("symbolize -p %d --cache-directory=%s", getpid(), directory),
		EXIT_DONE, "");
	unlink(map);
	out_is_of_sought();
	out_contains("\n\ncompiled\n??:0:0\n\n??\n??:0:0\n\n??\n??:0:0\n\n");
	command_expect(&run,
		words_for("symbolize -p %d --output-style JSON --cache-directory=%s", getpid(),
			directory),
		EXIT_DONE, "");
	out_contains("\"ModuleName\":\"[anon]\"");
	out_contains("\"ModuleName\":\"\"");
	out_contains(words_for("\"ModuleName\":\"%s\"", self));
	munmap(code, 4096);
}

static void a_process_that_does_not_exist(void **state)
{
	(void)state;
	command_expect(&run, "symbolize -p 4194305", EXIT_FAILED,
		"fathom symbolize: there is no process 4194305\n");
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* The address of NAME in /proc/kallsyms; false if it hides them. */
static bool kernel_function(const char *wanted, uint64_t *ret_address)
{
	autofclose FILE *file = fopen("/proc/kallsyms", "re");
	char line[512], name[128], type;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 " %c %127s", ret_address, &type, name) == 3 &&
			!strcmp(name, wanted))
			return *ret_address > 0;
	}
	return false;
}

static void an_address_of_the_kernel(void **state)
{
	static const char expected[] = "vfs_read\n??:0:0\n\n";
	uint64_t address;

	(void)state;
	if (!kernel_function("vfs_read", &address)) {
		command_expect(&run, "symbolize -k", EXIT_FAILED, "the kernel hides its addresses");
		return;
	}
	run.input = hex_of(address + 1);
	command_expect(&run, "symbolize -k --raw", EXIT_DONE, "");
	assert_string_equal(run.out, expected);
	command_expect(&run, "symbolize -k --raw --output-style JSON", EXIT_DONE, "");
	out_contains("\"ModuleName\":\"[kernel.kallsyms]\"");
	/* Kernel addresses are resolved with a process, too. */
	command_expect(&run, words_for("symbolize -p %d --raw", getpid()), EXIT_DONE, "");
	assert_string_equal(run.out, expected);
	run.input = "0x1234\n";
	command_expect(&run, "symbolize -k", EXIT_DONE, "");
	assert_string_equal(run.out, "??\n??:0:0\n\n");
	command_expect(&run, "symbolize -k --output-style JSON", EXIT_DONE, "");
	out_contains("\"ModuleName\":\"\"");
}

/* ---- a profile ------------------------------------------------------------------------------- */

struct shape {
	const char *path, *build_id;
	uint64_t start, limit, offset, address; /* as in the profile */
	const char *name; /* name in the profile; NULL = none */
	bool nameless; /* it stands in for one */
};

/* The segment of symbolize_me. */
static void own_mapping(struct shape *shape)
{
	uint64_t sought = (uint64_t)(uintptr_t)symbolize_me, start, end, offset;
	autofclose FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 128];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) ==
				3 &&
			sought >= start && sought < end) {
			*shape = (struct shape){
				.start = start, .limit = end, .offset = offset, .address = sought
			};
			return;
		}
	}
	fail();
}

static const char *own_build_id(void)
{
	static char text[2 * BUILD_ID_MAX_BYTES + 1];
	autoclose int fd = open(self, O_RDONLY | O_CLOEXEC);
	struct build_id id;

	assert_int_equal(build_id_read(fd, &id), 0);
	for (size_t i = 0; i < id.size; i++)
		snprintf(text + 2 * i, 3, "%02x", id.bytes[i]);
	return text;
}

static void write_profile(const char *path, const struct shape *shape)
{
	const struct pprof_options options = { .types = { { "samples", "count" } },
		.type_count = 1,
		.default_type = "samples",
		.period_type = { "cpu", "nanoseconds" },
		.period = 1,
		.limit_bytes = 1 << 20 };
	const struct pprof_mapping mapping = { shape->start, shape->limit, shape->offset,
		shape->path, shape->build_id };
	const struct pprof_line line = {
		.name = shape->name,
		.system_name = shape->nameless ? "" : shape->name,
		.file = "",
		.nameless = shape->nameless,
	};
	uint64_t mapping_id, location;
	const int64_t value = 5;
	struct pprof *p;
	struct buffer out;

	assert_int_equal(pprof_create(&options, &p), 0);
	assert_int_equal(pprof_mapping(p, &mapping, &mapping_id), 0);
	assert_int_equal(pprof_location(p, mapping_id, shape->address, &line, shape->name != NULL,
				 &location),
		0);
	assert_int_equal(pprof_sample(p, &location, 1, &value, NULL, 0), 0);
	buffer_init(&out, 1 << 20);
	assert_int_equal(pprof_encode(p, true, &out), 0);
	assert_int_equal(io_replace_file(AT_FDCWD, path, out.bytes, out.size, 0600), 0);
	buffer_deinit(&out);
	pprof_destroy(p);
}

/* The name of the innermost function of the profile's location, "" without one. */
static void name_in(const char *path, char name[128], int64_t *ret_line)
{
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	const Perftools__Profiles__Location *location;
	const char *why = "";
	uint64_t index;

	*name = 0;
	*ret_line = 0;
	assert_int_equal(pprof_read_file(path, &profile, &why), 0);
	assert_int_equal(profile.message->n_sample, 1);
	assert_int_equal(profile.message->sample[0]->value[0], 5);
	location = profile.message->location[0];
	if (!location->n_line)
		return;
	assert_true(pprof_ids_get(&profile.functions, location->line[0]->function_id, &index));
	snprintf(
		name, 128, "%s", pprof_read_text(&profile, profile.message->function[index]->name));
	*ret_line = location->line[0]->line;
}

static void names_for(const struct shape *shape, const char *options, const char *expected)
{
	char name[128];
	int64_t line;

	write_profile(below("in"), shape);
	unlink(below("out"));
	command_expect(&run,
		words_for("symbolize --profile %s -o %s --cache-directory=%s%s", below("in"),
			below("out"), directory, options),
		EXIT_DONE, "addresses without one\n");
	assert_string_equal(run.out, "");
	name_in(below("out"), name, &line);
	assert_string_equal(name, expected);
	if (!strcmp(expected, "symbolize_me"))
		sought_line_is(line);
	unlink(below("in"));
	unlink(below("out"));
}

static void a_profile_gets_the_names_of_its_files(void **state)
{
	struct shape shape;

	(void)state;
	own_mapping(&shape);
	shape.path = self;
	shape.build_id = own_build_id();
	names_for(&shape, "", "symbolize_me");
	assert_memory_equal(run.err, "added names to 1 of 1 ", 22);
	/* The build ID is enough, as the index is in the cache. */
	shape.path = "/gone";
	names_for(&shape, "", "symbolize_me");
	/* An ELF address works outside of the mapping, or in a mapping that equals a segment. */
	shape.path = self;
	shape.address = elf_address_of_sought();
	names_for(&shape, "", "symbolize_me");
	shape.address = shape.limit;
	names_for(&shape, "", "");
}

static int find_segment(struct dl_phdr_info *info, size_t size, void *context)
{
	uint64_t sought = elf_address_of_sought();
	struct shape *shape = context;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && sought >= segment->p_vaddr &&
			sought < segment->p_vaddr + segment->p_memsz) {
			shape->start = segment->p_vaddr;
			shape->limit = segment->p_vaddr + segment->p_memsz;
		}
	}
	return 1; /* the program is the first object */
}

/* As in fathom's own profiles: a mapping that equals a segment has ELF addresses at any offset. */
static void mappings_in_elf_addresses(void **state)
{
	struct shape shape = { .path = self,
		.build_id = own_build_id(),
		.offset = UINT64_C(1) << 40,
		.address = elf_address_of_sought() };

	(void)state;
	dl_iterate_phdr(find_segment, &shape);
	names_for(&shape, "", "symbolize_me");
	/* If the mapping does not equal a segment, its addresses are the process's. */
	shape.limit += 0x1000;
	names_for(&shape, "", "");
	shape.limit -= 0x1000;
	shape.start -= 0x1000;
	names_for(&shape, "", "");
}

static void another_build_gets_no_names(void **state)
{
	struct shape shape;

	(void)state;
	own_mapping(&shape);
	shape.path = self;
	shape.build_id = "0123456789abcdef0123456789abcdef01234567";
	names_for(&shape, "", "");
	assert_memory_equal(run.err, "added names to 0 of 1 ", 22);
	assert_non_null(
		strstr(run.err, words_for("not found: %s, build ID 0123456789abcdef", self)));
	shape.build_id = "";
	names_for(&shape, "", "");
	assert_non_null(strstr(run.err, words_for("not found: %s, build ID unknown\n", self)));
	shape.build_id = "go/build/id";
	names_for(&shape, "", "");
	shape.build_id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123";
	names_for(&shape, "", "");
	/* A relative path would name another file here. */
	shape.build_id = own_build_id();
	shape.path = "test_symbolize";
	names_for(&shape, " --cache-max-bytes=1", "symbolize_me");
}

static void existing_names_are_kept(void **state)
{
	struct shape shape;

	(void)state;
	own_mapping(&shape);
	shape.path = self;
	shape.build_id = own_build_id();
	shape.name = "theirs";
	names_for(&shape, "", "theirs");
	assert_memory_equal(run.err, "added names to 0 of 0 ", 22);
}

/* The start of a function without a symbol: a debug file may have come since. */
static void what_stands_in_for_a_name_is_replaced(void **state)
{
	struct shape shape;

	(void)state;
	own_mapping(&shape);
	shape.path = self;
	shape.build_id = own_build_id();
	shape.name = "test_symbolize_command+0x1000";
	shape.nameless = true;
	names_for(&shape, "", "symbolize_me");
	assert_memory_equal(run.err, "added names to 1 of 1 ", 22);
	shape.build_id = "ffffffffffffffffffff";
	names_for(&shape, "", "test_symbolize_command+0x1000");
}

/* As they are in profiles, with the mapping or, for the kernel's own, without. */
static void a_link_address_of_the_kernel(void **state)
{
	static const char *const unknown[] = { "0xffffffff00000010 [no_such_module]\n",
		"0x10 [kernel.kallsyms]\n", "0x8000000000000000 [kernel.kallsyms]\n" };
	static const char *const wrong[] = { "0x10 []\n", "0x10 [x\n", "0x10 x]\n", "0x10 x\n" };
	uint64_t address, text, linked;
	char line[64];

	(void)state;
	if (!kernel_function("vfs_read", &address) || !kernel_function("_text", &text))
		return;
	linked = address - text +
		 (text >> 31 == 0x1ffffffff ? UINT64_C(0xffffffff81000000)
					    : UINT64_C(0xffff800080000000));
	snprintf(line, sizeof(line), "0x%" PRIx64 " [kernel.kallsyms] \n0x%" PRIx64 "\n",
		linked + 1, linked);
	run.input = line;
	for (int i = 0; i < 2; i++) {
		command_run(&run, i ? "symbolize -k" : words_for("symbolize -p %d", getpid()));
		assert_int_equal(run.status, EXIT_DONE);
		assert_string_equal(run.out, "vfs_read\n??:0:0\n\nvfs_read\n??:0:0\n\n");
	}
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		run.input = unknown[i];
		command_expect(&run, "symbolize -k", EXIT_DONE, "");
		assert_string_equal(run.out, "??\n??:0:0\n\n");
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		run.input = wrong[i];
		command_expect(&run, "symbolize -k", EXIT_DONE, "");
		assert_string_equal(run.out, wrong[i]);
	}
	/* A file has no such mappings. */
	run.input = "0x10 [ext4]\n";
	command_expect(&run, words_for("symbolize -e %s", self), EXIT_DONE, "");
	assert_string_equal(run.out, run.input);
	command_expect(&run, words_for("symbolize -e %s --raw", self), EXIT_USAGE,
		"--raw is only for addresses of the kernel");
}

static void the_kernels_addresses_need_its_build_id(void **state)
{
	struct shape shape = { .path = "[kernel.kallsyms]",
		.build_id = "0123456789abcdef0123456789abcdef01234567",
		.start = UINT64_C(0xffffffff81000000),
		.limit = UINT64_C(0xffffffff82000000),
		.address = UINT64_C(0xffffffff81100000) };

	(void)state;
	names_for(&shape, "", "");
	shape.path = "[no_such_module]";
	names_for(&shape, "", "");
	shape.path = "[vdso]";
	names_for(&shape, "", "");
}

static void a_profile_that_cannot_be_read_or_written(void **state)
{
	struct shape shape = { .path = "/x", .build_id = "", .limit = 0x1000, .address = 0x10 };

	(void)state;
	command_expect(&run, words_for("symbolize --profile /no/such -o %s", below("out")),
		EXIT_FAILED, "fathom symbolize: /no/such: No such file or directory\n");
	command_expect(&run, words_for("symbolize --profile %s -o %s", self, below("out")),
		EXIT_FAILED, ": it is neither pprof nor gzip-compressed pprof\n");
	write_profile(below("in"), &shape);
	command_expect(&run, words_for("symbolize --profile %s -o /no/such/out", below("in")),
		EXIT_FAILED, "fathom symbolize: /no/such/out: No such file or directory\n");
	command_expect(&run, words_for("symbolize --profile %s -o /dev/full", below("in")),
		EXIT_FAILED, "fathom symbolize: /dev/full: No space left on device\n");
	unlink(below("in"));
	assert_int_equal(access(below("out"), F_OK), -1);
}

static void remove_directory(void)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf %s", directory);
	(void)!system(command);
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		CASE(invalid_arguments_are_bad_usage),
		CASE(a_file_that_is_not_a_program_fails),
		CASE(an_address_of_a_file),
		CASE(lines_that_are_addresses),
		CASE(json_has_one_object_a_line),
		CASE(read_and_write_errors_are_reported),
		CASE(answers_are_printed_as_llvm_does),
		CASE(answers_are_printed_as_json),
		CASE(addresses_of_a_process),
		CASE(a_process_that_does_not_exist),
		CASE(an_address_of_the_kernel),
		CASE(a_link_address_of_the_kernel),
		CASE(a_profile_gets_the_names_of_its_files),
		CASE(mappings_in_elf_addresses),
		CASE(another_build_gets_no_names),
		CASE(existing_names_are_kept),
		CASE(what_stands_in_for_a_name_is_replaced),
		CASE(the_kernels_addresses_need_its_build_id),
		CASE(a_profile_that_cannot_be_read_or_written),
	};
	int failed;

	if (argc > 1 && file_child_is_command(argv[1]))
		return file_child_main(argc, argv);
	if (argc > 1 && sandboxed_is_command(argv[1]))
		return sandboxed_main(argc, argv);
	if (!realpath("/proc/self/exe", self) || !mkdtemp(directory))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_directory();
	return failed;
}
