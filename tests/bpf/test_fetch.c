/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches at the entry of a function of this process: every kind, and what cannot be read. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/abi/fetch.h"
#include "tests/bpf/programs/fetches.skel.h"

/* Where a C function has its first two integers. */
#if defined(__aarch64__)
enum { FIRST = 0, SECOND = 1 };
#else
enum { FIRST = 14, SECOND = 13 };
#endif

enum { NO_REGISTER = ABI_FETCH_REGISTERS };

struct fixture {
	struct fetches_bpf *skeleton;
	struct bpf_link *link;
	struct abi_fetched *fetched;
	uint32_t count;
};

__attribute__((noinline)) static void probed(const void *first, uint64_t second)
{
	asm volatile("" : : "r"(first), "r"(second) : "memory");
}

/* ---- the fixture ---------------------------------------------------------------------------- */

struct place {
	uint64_t address, file_off;
};

/* Where the mapping of this program's code is in its file. */
static uint64_t offset_of(const void *code)
{
	struct place place = { .address = (uint64_t)code };
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to, off;

		if (sscanf(line, "%lx-%lx %*s %lx", &from, &to, &off) == 3 &&
			place.address >= from && place.address < to)
			place.file_off = place.address - from + off;
	}
	fclose(maps);
	return place.file_off;
}

static int fixture_begin(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .skeleton = fetches_bpf__open_and_load() };
	assert_non_null(f.skeleton);
	f.link = bpf_program__attach_uprobe(f.skeleton->progs.fetch_at_entry, false, getpid(),
		"/proc/self/exe", offset_of(probed));
	assert_non_null(f.link);
	f.fetched = &f.skeleton->bss->room.fetched;
	*state = &f;
	return 0;
}

static int fixture_end(void **state)
{
	struct fixture *f = *state;

	bpf_link__destroy(f->link);
	fetches_bpf__destroy(f->skeleton);
	return 0;
}

/* Adds a fetch. Returns its number. */
static uint32_t add(struct fixture *f, struct abi_fetch fetch)
{
	int map = bpf_map__fd(f->skeleton->maps.fetches);

	assert_int_equal(bpf_map_update_elem(map, &f->count, &fetch, BPF_ANY), 0);
	return f->count++;
}

/* Calls the function, and expects STATUS of the last fetch that was added. */
static void call(
	struct fixture *f, const void *first, uint64_t second, enum abi_fetch_status status)
{
	uint64_t before = f->skeleton->bss->hits;

	memset(f->fetched, 0xee, sizeof(*f->fetched));
	f->skeleton->bss->set = (struct abi_fetch_set){ .count = f->count };
	probed(first, second);
	assert_int_equal(f->skeleton->bss->hits, before + 1);
	assert_int_equal(f->fetched->status[f->count - 1], status);
}

static uint64_t word_at(const struct fixture *f, uint32_t at)
{
	uint64_t word;

	memcpy(&word, &f->fetched->bytes[at], sizeof(word));
	return word;
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void registers_are_values(void **state)
{
	struct fixture *f = *state;

	add(f, (struct abi_fetch){ .origin = FIRST, .at = 0, .size = 8 });
	add(f, (struct abi_fetch){ .origin = SECOND, .at = 8, .size = 8 });
	add(f, (struct abi_fetch){ .origin = ABI_FETCH_SP, .at = 16, .size = 8 });
	add(f, (struct abi_fetch){ .origin = ABI_FETCH_PC, .at = 24, .size = 8 });
	call(f, f, 0x1122334455667788, ABI_FETCHED_OK);
	assert_int_equal(word_at(f, 0), (uint64_t)f);
	assert_int_equal(word_at(f, 8), 0x1122334455667788);
	assert_in_range(word_at(f, 16), (uint64_t)__builtin_frame_address(0) - 65536,
		(uint64_t)__builtin_frame_address(0));
	assert_int_equal(word_at(f, 24), (uint64_t)probed);
}

static void register_that_does_not_exist_is_unreadable(void **state)
{
	struct fixture *f = *state;

	add(f, (struct abi_fetch){ .origin = NO_REGISTER, .size = 8 });
	call(f, f, 0, ABI_FETCHED_UNREADABLE);
}

static void steps_add_and_dereference(void **state)
{
	static const uint64_t values[] = { 7, 8, 9, 10 };
	const uint64_t *first = &values[1];
	const void *table[] = { NULL, &first };
	struct fixture *f = *state;

	/* *(*(*(table + 8) + 0) + 8), then 8 back and 16 on. */
	add(f, (struct abi_fetch){ .origin = FIRST,
		       .size = 8,
		       .step_count = 4,
		       .dereferences = 0x3,
		       .offsets = { 8, 0, (uint32_t)-8, 16 } });
	call(f, table, 0, ABI_FETCHED_OK);
	assert_int_equal(word_at(f, 0), 9);
}

static void eight_steps_are_followed(void **state)
{
	struct fixture *f = *state;
	const void *chain[8];
	uint64_t end = 4711;

	for (int i = 0; i < 7; i++)
		chain[i] = &chain[i + 1];
	chain[7] = &end;
	add(f, (struct abi_fetch){
		       .origin = FIRST, .size = 8, .step_count = 8, .dereferences = 0xff });
	call(f, chain, 0, ABI_FETCHED_OK);
	assert_int_equal(word_at(f, 0), 4711);
}

static void unmapped_memory_is_unreadable_and_the_next_value_is_read(void **state)
{
	struct fixture *f = *state;

	add(f, (struct abi_fetch){ .origin = FIRST, .at = 0, .size = 8, .step_count = 1 });
	add(f, (struct abi_fetch){
		       .origin = FIRST, .at = 8, .size = 8, .step_count = 2, .dereferences = 1 });
	add(f, (struct abi_fetch){ .origin = SECOND, .at = 16, .size = 8 });
	call(f, (void *)0x10, 5, ABI_FETCHED_OK);
	assert_int_equal(f->fetched->status[0], ABI_FETCHED_UNREADABLE);
	assert_int_equal(f->fetched->status[1], ABI_FETCHED_UNREADABLE);
	assert_int_equal(word_at(f, 16), 5);
}

static struct abi_fetch array_of(uint32_t element_bytes, uint32_t size)
{
	return (struct abi_fetch){ .kind = ABI_FETCH_ARRAY,
		.origin = FIRST,
		.at = 8,
		.size = size,
		.step_count = 1,
		.element_bytes = element_bytes,
		.length_of = 0 };
}

static void array_has_as_many_elements_as_its_length(void **state)
{
	const uint32_t numbers[] = { 1, 2, 3, 4 };
	struct fixture *f = *state;

	add(f, (struct abi_fetch){ .origin = SECOND, .size = 8 });
	add(f, array_of(4, 64));
	call(f, numbers, 3, ABI_FETCHED_OK);
	assert_memory_equal(&f->fetched->bytes[8], numbers, 12);
	assert_int_equal(f->fetched->bytes[8 + 12], 0xee);
	call(f, (void *)0x10, 0, ABI_FETCHED_OK);
	call(f, (void *)0x10, 1, ABI_FETCHED_UNREADABLE);
}

static void array_is_cut_at_its_size(void **state)
{
	static const char text[300] = "a long one";
	struct fixture *f = *state;

	add(f, (struct abi_fetch){ .origin = SECOND, .size = 8 });
	add(f, array_of(1, 8));
	call(f, text, 8, ABI_FETCHED_OK);
	call(f, text, 9, ABI_FETCHED_CUT);
	call(f, text, UINT64_MAX, ABI_FETCHED_CUT);
	assert_memory_equal(&f->fetched->bytes[8], text, 8);
	assert_int_equal(f->fetched->bytes[16], 0xee);
}

/* 2^61 elements of 8 bytes are 0 bytes in 64 bits. */
static void array_whose_size_overflows_is_cut(void **state)
{
	static const uint64_t numbers[4] = { 1, 2, 3, 4 };
	struct fixture *f = *state;

	add(f, (struct abi_fetch){ .origin = SECOND, .size = 8 });
	add(f, array_of(8, 16));
	call(f, numbers, UINT64_C(1) << 61, ABI_FETCHED_CUT);
	assert_int_equal(word_at(f, 16), 2);
}

static void array_without_its_length_is_unreadable(void **state)
{
	struct fixture *f = *state;
	struct abi_fetch none = array_of(1, 8);

	add(f, (struct abi_fetch){ .origin = SECOND, .size = 8, .step_count = 1 });
	add(f, array_of(1, 8));
	call(f, "text", 0x10, ABI_FETCHED_UNREADABLE);
	none.length_of = ABI_FETCHES;
	add(f, none);
	call(f, "text", (uint64_t)&none, ABI_FETCHED_UNREADABLE);
}

static void c_string_ends_at_its_nul_or_is_cut(void **state)
{
	/* On the stack: a literal's page may not have been read from the file yet. */
	const char seven[] = "seven..", six[] = "six...", none[] = "";
	struct fixture *f = *state;

	add(f, (struct abi_fetch){
		       .kind = ABI_FETCH_C_STRING, .origin = FIRST, .size = 8, .step_count = 1 });
	call(f, seven, 0, ABI_FETCHED_CUT); /* as BPF cannot tell it from a longer one */
	call(f, six, 0, ABI_FETCHED_OK);
	assert_string_equal((const char *)f->fetched->bytes, "six...");
	call(f, none, 0, ABI_FETCHED_OK);
	assert_int_equal(f->fetched->bytes[0], 0);
	call(f, (void *)0x10, 0, ABI_FETCHED_UNREADABLE);
}

/* Types as Go writes them: flags at 20, the name's offset from the types at 40. */
static void go_type_has_its_name_if_it_is_among_the_types(void **state)
{
	struct {
		char before[64];
		unsigned char type[48];
		char name[16];
	} types = { .name = "\1\4*int" };
	const uint32_t name_off = offsetof(typeof(types), name);
	struct fixture *f = *state;

	types.type[20] = 0x42;
	memcpy(&types.type[40], &name_off, sizeof(name_off));
	f->skeleton->bss->entry_pc = (uint64_t)probed;
	add(f, (struct abi_fetch){ .kind = ABI_FETCH_GO_TYPE_NAME,
		       .origin = FIRST,
		       .size = 8,
		       .types_off = (uint64_t)&types - (uint64_t)probed,
		       .types_bytes = sizeof(types) });
	call(f, types.type, 0, ABI_FETCHED_OK);
	assert_memory_equal(f->fetched->bytes, "\x42\1\4*int", 7);
	call(f, (char *)&types + sizeof(types), 0, ABI_FETCHED_UNREADABLE);
	call(f, (void *)((uintptr_t)&types - 1), 0, ABI_FETCHED_UNREADABLE);
	f->skeleton->bss->entry_pc = 0;
	call(f, types.type, 0, ABI_FETCHED_UNREADABLE);
	f->skeleton->bss->entry_pc = (uint64_t)probed;
	memset(&types.type[40], 0xff, 4);
	call(f, types.type, 0, ABI_FETCHED_UNREADABLE);
}

/* A description by which BPF would write beyond the bytes. */
static void size_and_place_beyond_the_limits_do_no_harm(void **state)
{
	struct fixture *f = *state;
	char text[512] = "";

	add(f, (struct abi_fetch){ .origin = FIRST, .at = 0xffffff, .size = 8, .step_count = 1 });
	add(f, (struct abi_fetch){
		       .origin = FIRST, .size = ABI_FETCH_VALUE_BYTES + 1, .step_count = 1 });
	call(f, text, 0, ABI_FETCHED_UNREADABLE);
	assert_int_equal(f->fetched->status[0], ABI_FETCHED_OK);
	assert_int_equal(f->fetched->bytes[0], 0xee);
}

static void no_more_than_the_limit_are_read(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < ABI_FETCHES; i++)
		add(f, (struct abi_fetch){ .origin = SECOND, .at = 8, .size = 8 });
	call(f, f, 3, ABI_FETCHED_OK);
	f->count = 1;
	memset(&f->skeleton->bss->room.spare, 0xee, 8);
	f->skeleton->bss->set.count = UINT32_MAX;
	probed(f, 4);
	assert_int_equal(word_at(f, 8), 4);
	assert_int_equal(f->skeleton->bss->room.spare[0], 0xee);
}

/* A page of a file that nobody has touched is not there for BPF; what is beside it is. */
static void value_across_a_page_that_is_gone_is_unreadable(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fixture *f = *state;

	assert_ptr_not_equal(pages, MAP_FAILED);
	memset(pages, 'x', page);
	munmap(pages + page, page);
	add(f, (struct abi_fetch){ .origin = SECOND, .size = 8 });
	add(f, array_of(1, 16));
	call(f, pages + page - 8, 8, ABI_FETCHED_OK);
	call(f, pages + page - 8, 9, ABI_FETCHED_UNREADABLE);
	munmap(pages, page);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(registers_are_values),
		CASE(register_that_does_not_exist_is_unreadable),
		CASE(steps_add_and_dereference),
		CASE(eight_steps_are_followed),
		CASE(unmapped_memory_is_unreadable_and_the_next_value_is_read),
		CASE(array_has_as_many_elements_as_its_length),
		CASE(array_is_cut_at_its_size),
		CASE(array_whose_size_overflows_is_cut),
		CASE(array_without_its_length_is_unreadable),
		CASE(c_string_ends_at_its_nul_or_is_cut),
		CASE(go_type_has_its_name_if_it_is_among_the_types),
		CASE(size_and_place_beyond_the_limits_do_no_harm),
		CASE(no_more_than_the_limit_are_read),
		CASE(value_across_a_page_that_is_gone_is_unreadable),
	};

	if (geteuid() != 0) {
		puts("needs root: loading BPF programs");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
