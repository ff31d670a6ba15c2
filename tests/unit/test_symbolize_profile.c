/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where `fathom symbolize --profile` finds names: a fake kernel, this machine's vDSO, debug files,
 * and cached indexes. The program that the profiles are of is this test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "agent/commands/symbolize.h"
#include "agent/commands/upload.h"
#include "agent/sampler/process/modules.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "pprof/pprof.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/indexer/elf/build_id.h"
#include "symbolizer/kallsyms/link_address.h"
#include "symbolizer/kernel_image.h"
#include "symbolizer/sandboxed/main.h"
#include "symbolizer/vdso.h"
#include "tests/unit/direct_build_ids.h"
#include "tests/unit/small_index.h"

enum { MAX_PLACES = 16, OUTPUT_BYTES = 16 << 10 };

static const uint64_t KERNEL = UINT64_C(0xffffffff81000000), KERNEL_BYTES = 0x2000;
static const uint64_t MODULE = UINT64_C(0xffffffffc0000000), MODULE_BYTES = 0x1000;
static const uint64_t KASLR = 2 << 20;
#define RUNNING "0a0b0c0d0e0f10111213"
#define ANOTHER "ffffffffffffffffffff"

extern const char __executable_start[];

static char directory[] = "/tmp/fathom-test-XXXXXX";
static char self[PATH_MAX];
static struct symbolize_indexes indexes = { .debug_directories = "" };

static __attribute__((noinline, used)) int symbolize_me(int number)
{
	return number * 3;
}

static uint64_t elf_address_of_sought(void)
{
	return (uint64_t)(uintptr_t)symbolize_me - (uint64_t)(uintptr_t)__executable_start;
}

/* ---- the fake kernel ------------------------------------------------------------------------- */

static struct {
	bool hidden; /* its symbols */
	unsigned int opened; /* times that its symbols were */
	char asked[128]; /* the module whose build ID was read last; "" = none */
} kernel;

static int running_build_id(struct build_id *ret_id)
{
	*ret_id = (struct build_id){ .size = 10,
		.bytes = { 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 } };
	return 0;
}

int kernel_build_id(struct build_id *ret_id)
{
	return running_build_id(ret_id);
}

int kernel_module_build_id(const char *name, struct build_id *ret_id)
{
	snprintf(kernel.asked, sizeof(kernel.asked), "%s", name);
	return strcmp(name, "gone") ? running_build_id(ret_id) : -ENOENT;
}

int symbolize_kernel_open(bool raw, struct symbolize_kernel *ret_kernel)
{
	static const char text[] = "ffffffff81000000 T _stext\nffffffff81000100 t schedule\n"
				   "ffffffff81002000 T _etext\n"
				   "ffffffffc0000000 t ext4_init\t[ext4]\n"
				   "ffffffffc0000100 t ext4_work\t[ext4]\n";
	autoclose int fd = memory_file(text, sizeof(text) - 1);

	kernel.opened++;
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	ret_kernel->raw = raw;
	return kernel.hidden ? -EACCES : kallsyms_create(fd, &ret_kernel->kallsyms);
}

void symbolize_kernel_close(struct symbolize_kernel *k)
{
	kallsyms_destroy(k->kallsyms);
}

/* ---- profiles -------------------------------------------------------------------------------- */

/* A mapping and the one address in it that has samples. */
struct place {
	const char *path, *build_id;
	uint64_t start, limit, offset, address;
};

static struct place kernel_place(const char *path, const char *build_id, uint64_t moved)
{
	return (struct place){ path, build_id, KERNEL + moved, KERNEL + moved + KERNEL_BYTES, 0,
		KERNEL + moved + 0x110 };
}

static struct place module_place(const char *path, const char *build_id, uint64_t moved)
{
	return (struct place){ path, build_id, MODULE + moved, MODULE + moved + MODULE_BYTES, 0,
		MODULE + moved + 0x110 };
}

static const char *below(const char *name)
{
	static char paths[4][PATH_MAX + 64];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static void remove_files(const char *name)
{
	char command[PATH_MAX + 64];

	snprintf(command, sizeof(command), "rm -rf %s/%s", directory, name);
	(void)!system(command);
}

static void add_place(struct pprof *p, const struct place *place)
{
	const struct pprof_mapping mapping = { place->start, place->limit, place->offset,
		place->path, place->build_id };
	uint64_t mapping_id, location;
	const int64_t value = 5;

	assert_int_equal(pprof_mapping(p, &mapping, &mapping_id), 0);
	assert_int_equal(pprof_location(p, mapping_id, place->address, NULL, 0, &location), 0);
	assert_int_equal(pprof_sample(p, &location, 1, &value, NULL, 0), 0);
}

static void write_profile(const char *path, const struct place *places, size_t count)
{
	const struct pprof_options options = { .types = { { "samples", "count" } },
		.type_count = 1,
		.default_type = "samples",
		.period_type = { "cpu", "nanoseconds" },
		.period = 1,
		.limit_bytes = 1 << 20 };
	struct pprof *p;
	struct buffer out;

	assert_int_equal(pprof_create(&options, &p), 0);
	for (size_t i = 0; i < count; i++)
		add_place(p, &places[i]);
	buffer_init(&out, 1 << 20);
	assert_int_equal(pprof_encode(p, true, &out), 0);
	assert_int_equal(io_replace_file(AT_FDCWD, path, out.bytes, out.size, 0600), 0);
	buffer_deinit(&out);
	pprof_destroy(p);
}

/* Of the last run: what it said, and the name in each place, "" without one. */
static char said[OUTPUT_BYTES];
static char found[MAX_PLACES][128];

static void read_names(const char *path, const struct place *places, size_t count)
{
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	const char *why = "";
	uint64_t function;

	memset(found, 0, sizeof(found));
	assert_int_equal(pprof_read_file(path, &profile, &why), 0);
	for (size_t i = 0; i < profile.message->n_location; i++) {
		const Perftools__Profiles__Location *l = profile.message->location[i];

		for (size_t j = 0; j < count; j++) {
			if (l->address != places[j].address || !l->n_line)
				continue;
			assert_true(pprof_ids_get(
				&profile.functions, l->line[0]->function_id, &function));
			snprintf(found[j], sizeof(found[j]), "%s",
				pprof_read_text(
					&profile, profile.message->function[function]->name));
		}
	}
}

static void add_names(const struct place *places, size_t count)
{
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO), status;
	size_t size;

	write_profile(below("in"), places, count);
	fflush(NULL);
	dup2(fileno(file), STDERR_FILENO);
	status = symbolize_profile(
		&indexes, &(struct symbolize_style){ 0 }, below("in"), below("out"));
	fflush(NULL);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(file);
	size = fread(said, 1, sizeof(said) - 1, file);
	said[size] = 0;
	fclose(file);
	assert_int_equal(status, EXIT_DONE);
	read_names(below("out"), places, count);
}

static const char *name_in(struct place place)
{
	add_names(&place, 1);
	return found[0];
}

static int setup(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	return 0;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static void the_running_kernel_has_names_under_each_of_its_paths(void **state)
{
	static const char *const paths[] = { "[kernel.kallsyms]", "[kernel.kallsyms]_stext",
		"[kernel]", "[guest.kernel.kallsyms]" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_string_equal(name_in(kernel_place(paths[i], RUNNING, 0)), "schedule");
	assert_string_equal(
		name_in(kernel_place("[kernel]", "0A0B0C0D0E0F10111213", 0)), "schedule");
	assert_string_equal(said, "added names to 1 of 1 addresses without one\n");
}

/* A reboot moves the kernel by a multiple of two megabytes. */
static void a_profile_from_before_a_reboot_has_names(void **state)
{
	(void)state;
	assert_string_equal(name_in(kernel_place("[kernel]", RUNNING, 5 * KASLR)), "schedule");
	assert_string_equal(name_in(kernel_place("[kernel]", RUNNING, -3 * KASLR)), "schedule");
	assert_string_equal(name_in(kernel_place("[kernel]", RUNNING, KASLR / 2)), "");
	assert_string_equal(name_in(kernel_place("[kernel]", RUNNING, 0x1000)), "");
}

static void another_build_of_the_kernel_has_no_names(void **state)
{
	(void)state;
	assert_string_equal(name_in(kernel_place("[kernel]", ANOTHER, 0)), "");
	assert_string_equal(name_in(kernel_place("[kernel]", "", 0)), "");
	assert_string_equal(name_in(module_place("[ext4]", ANOTHER, 0)), "");
	assert_string_equal(said, "added names to 0 of 1 addresses without one\n"
				  "not found: [ext4], build ID " ANOTHER "\n");
}

/* Modules are not loaded at a fixed distance, so a module that moved has no names. */
static void a_kernel_module_has_names_where_it_is_loaded(void **state)
{
	(void)state;
	assert_string_equal(name_in(module_place("[ext4]", RUNNING, 0)), "ext4_work");
	assert_string_equal(kernel.asked, "ext4");
	assert_string_equal(name_in(module_place("[ext4]", RUNNING, KASLR)), "");
	assert_string_equal(name_in(module_place("[gone]", RUNNING, 0)), "");
	assert_string_equal(kernel.asked, "gone");
	assert_string_equal(name_in(module_place("[other]", RUNNING, 0)), "");
}

/* Our own profiles have the addresses that a module has in its file, the same at each boot. */
static void a_kernel_module_has_names_at_its_link_addresses(void **state)
{
	struct place place = module_place("[ext4]", RUNNING, LINK_IMAGES - MODULE);

	(void)state;
	assert_string_equal(name_in(place), "ext4_work");
	place.path = "[other]";
	assert_string_equal(name_in(place), "");
}

static void only_a_name_in_brackets_is_a_modules(void **state)
{
	static const char *const others[] = { "ext4]", "[ext4", "[]", "[", "" };
	char path[80];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_string_equal(name_in(module_place(others[i], RUNNING, 0)), "");
	assert_string_equal(kernel.asked, "");
	name_in(module_place("[x]", RUNNING, 0));
	assert_string_equal(kernel.asked, "x");
	memset(path, 'm', sizeof(path));
	path[0] = '[';
	path[65] = ']';
	path[66] = 0;
	name_in(module_place(path, RUNNING, 0));
	assert_string_equal(kernel.asked, "x");
	path[64] = ']';
	path[65] = 0;
	name_in(module_place(path, RUNNING, 0));
	assert_int_equal(strlen(kernel.asked), 63);
}

static void the_kernels_symbols_are_read_once(void **state)
{
	const struct place places[] = { kernel_place("[kernel]", RUNNING, 0),
		module_place("[ext4]", RUNNING, 0), module_place("[other]", RUNNING, 0x4000) };

	(void)state;
	add_names(places, 3);
	assert_string_equal(found[0], "schedule");
	assert_string_equal(found[1], "ext4_work");
	assert_string_equal(found[2], "");
	assert_int_equal(kernel.opened, 1);
	kernel.hidden = true;
	add_names(places, 3);
	assert_string_equal(found[0], "");
	assert_string_equal(found[1], "");
	assert_int_equal(kernel.opened, 2);
}

static uint64_t vdso_address(const char *name)
{
	void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *address = vdso ? dlsym(vdso, name) : NULL;

	return (uint64_t)(uintptr_t)address;
}

static const char *hex_of(const struct build_id *id)
{
	static char text[2 * BUILD_ID_MAX_BYTES + 1];

	build_id_format(id, text, sizeof(text));
	return text;
}

static void the_vdso_has_the_names_of_this_machines(void **state)
{
	uint64_t start = getauxval(AT_SYSINFO_EHDR), sought = vdso_address("__vdso_clock_gettime");
	struct place place = { "[vdso]", ANOTHER, start, start + 0x2000, 0, sought };
	struct module_id id;
	int fd;

	(void)state;
	if (!start || !sought)
		skip();
	assert_int_equal(vdso_open(&fd, &id), 0);
	close(fd);
	assert_string_equal(name_in(place), "");
	place.build_id = hex_of(&id.build_id);
	assert_non_null(strstr(name_in(place), "clock_gettime"));
}

/* ---- files ----------------------------------------------------------------------------------- */

static int find_own_segment(struct dl_phdr_info *info, size_t size, void *context)
{
	uint64_t sought = elf_address_of_sought();
	struct place *place = context;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *s = &info->dlpi_phdr[i];

		if (s->p_type == PT_LOAD && sought >= s->p_vaddr &&
			sought < s->p_vaddr + s->p_memsz)
			*place = (struct place){
				.start = (uint64_t)(uintptr_t)symbolize_me,
				.limit = (uint64_t)(uintptr_t)symbolize_me + 0x1000,
				.offset = sought - s->p_vaddr + s->p_offset,
				.address = (uint64_t)(uintptr_t)symbolize_me,
			};
	}
	return 1; /* the program is the first object */
}

static void read_build_id(struct build_id *ret_id)
{
	autoclose int fd = open(self, O_RDONLY | O_CLOEXEC);

	assert_int_equal(build_id_read(fd, ret_id), 0);
}

/* Mapped from symbolize_me on, which is sampled at its first instruction. */
static struct place own_place(void)
{
	struct build_id id;
	struct place place = { 0 };

	read_build_id(&id);
	dl_iterate_phdr(find_own_segment, &place);
	place.path = self;
	place.build_id = hex_of(&id);
	return place;
}

static void a_mapping_has_its_first_address_and_not_its_limit(void **state)
{
	struct place place = own_place();

	(void)state;
	assert_string_equal(name_in(place), "symbolize_me");
	/* Outside of its mapping an address is an ELF address. */
	place.limit = place.address = elf_address_of_sought();
	place.start = place.limit - 0x1000;
	place.offset = UINT64_C(1) << 40;
	assert_string_equal(name_in(place), "symbolize_me");
}

static void the_first_of_many_missing_files_are_listed(void **state)
{
	struct place places[MAX_PLACES];
	char paths[MAX_PLACES][32];
	unsigned int lines = 0;

	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		snprintf(paths[i], sizeof(paths[i]), "/no/such/%u", i);
		places[i] = (struct place){ paths[i], ANOTHER, 0x1000 * i, 0x1000 * (i + 1), 0,
			0x1000 * i + 16 };
	}
	add_names(places, 10);
	for (const char *at = said; (at = strstr(at, "not found: /no/such/")); at++)
		lines++;
	assert_int_equal(lines, 8);
	assert_non_null(strstr(said, "\nnot found: 2 more\n"));
	add_names(places, 8);
	assert_null(strstr(said, "more"));
}

/* Puts an index that has only the function `cached` into the cache, in the place of the program's.
 */
static void cache_index(uint32_t source)
{
	struct index_writer *w = index_writer_create();
	autoclose int fd = open(self, O_RDONLY | O_CLOEXEC);
	uint64_t address = elf_address_of_sought(), end = address + 0x100;
	uint64_t file_off = own_place().offset;
	struct cache_entry entry;
	struct module_id id;

	assert_non_null(w);
	assert_int_equal(module_identify(&direct_build_ids, fd, &id), 0);
	assert_int_equal(
		writer_segment(w, &(struct writer_segment){ address, 0x100, file_off }), 0);
	assert_int_equal(writer_code(w, address, 0x100), 0);
	assert_int_equal(
		writer_symbol(w, address, 0x100, end, string(w, "cached"), WRITER_SYMBOL_GLOBAL),
		0);
	writer_build_id(w, &id.build_id);
	writer_file_hash(w, &id.content);
	writer_source(w, source);
	assert_int_equal(cache_begin(indexes.cache, &entry), 0);
	assert_int_equal(writer_finish(w, entry.fd), 0);
	index_writer_destroy(w);
	assert_int_equal(cache_commit(indexes.cache, &entry, &id), 0);
}

static int setup_cache(void **state)
{
	(void)state;
	return cache_create(below("cache"), 64 << 20, &indexes.cache);
}

static int drop_cache(void **state)
{
	(void)state;
	cache_destroy(indexes.cache);
	indexes.cache = NULL;
	remove_files("cache");
	return 0;
}

static void a_cached_index_with_lines_is_used(void **state)
{
	(void)state;
	cache_index(INDEX_SOURCE_SYMTAB | INDEX_SOURCE_DWARF);
	assert_string_equal(name_in(own_place()), "cached");
}

/* The debug file may have been installed since. */
static void a_cached_index_without_lines_is_not_enough(void **state)
{
	(void)state;
	cache_index(INDEX_SOURCE_SYMTAB);
	assert_string_equal(name_in(own_place()), "symbolize_me");
}

/* The indexer asks for the file that .gnu_debuglink names. */
static void a_stripped_program_has_the_names_of_its_debug_file(void **state)
{
	struct place place = own_place();
	char command[3 * PATH_MAX];

	(void)state;
	snprintf(command, sizeof(command),
		"cd %s && objcopy --only-keep-debug %s bare.debug && strip -o bare %s && "
		"objcopy --add-gnu-debuglink=bare.debug bare",
		directory, self, self);
	assert_int_equal(system(command), 0);
	place.path = below("bare");
	assert_string_equal(name_in(place), "symbolize_me");
	assert_int_equal(unlink(below("bare.debug")), 0);
	assert_string_equal(name_in(place), "");
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup(name, setup)
#define CACHED(name) cmocka_unit_test_setup_teardown(name, setup_cache, drop_cache)
	const struct CMUnitTest tests[] = {
		CASE(the_running_kernel_has_names_under_each_of_its_paths),
		CASE(a_profile_from_before_a_reboot_has_names),
		CASE(another_build_of_the_kernel_has_no_names),
		CASE(a_kernel_module_has_names_where_it_is_loaded),
		CASE(a_kernel_module_has_names_at_its_link_addresses),
		CASE(only_a_name_in_brackets_is_a_modules),
		CASE(the_kernels_symbols_are_read_once),
		CASE(the_vdso_has_the_names_of_this_machines),
		CASE(a_mapping_has_its_first_address_and_not_its_limit),
		CASE(the_first_of_many_missing_files_are_listed),
		CACHED(a_cached_index_with_lines_is_used),
		CACHED(a_cached_index_without_lines_is_not_enough),
		CASE(a_stripped_program_has_the_names_of_its_debug_file),
	};
	int failed;

	if (argc > 1 && sandboxed_is_command(argv[1]))
		return sandboxed_main(argc, argv);
	if (!realpath("/proc/self/exe", self) || !mkdtemp(directory))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_files("");
	return failed;
}
