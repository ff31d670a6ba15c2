/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandboxed child asks for debug files, from both sides: this program is its own child. As the
 * parent it answers with files in memory and opens none.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/sandbox/sandbox.h"
#include "symbolizer/sandbox/sandbox_wire.h"
#include "symbolizer/sandboxed/main.h"
#include "tests/unit/elf_writer.h"

enum { PATIENCE_MS = 20000, MAX_ANSWERS = 16 };

static const uint8_t id[] = { 0xab, 0xcd, 0xef };
static const char link_bytes[] = "x.debug\0\x78\x56\x34\x12";
static const char alternate_bytes[] = "/alt.debug\0\x11\x22";

/* ---- the child's side ----------------------------------------------------------------------- */

/* The debug files that the child received, as it reports them in the output. */
struct seen {
	uint32_t count;
	struct {
		uint32_t role, crc;
		char byte; /* last byte of the file */
	} items[MAX_ANSWERS];
};

static int note_debug_files(const struct sandbox_files *files)
{
	struct seen seen = { .count = (uint32_t)files->debug_files.count };

	for (uint32_t i = 0; i < seen.count && i < MAX_ANSWERS; i++) {
		const struct debug_file *c = &files->debug_files.items[i];
		off_t end = lseek(c->fd, 0, SEEK_END);

		seen.items[i].role = c->role;
		seen.items[i].crc = c->crc;
		if (pread(c->fd, &seen.items[i].byte, 1, end - 1) != 1)
			return -EIO;
	}
	return io_write_all(files->output_fd, &seen, sizeof(seen));
}

/* A compromised child may send values that are outside of their types. */
static int say_broken_words(void)
{
	static struct sandbox_question question;

	memset(&question, 0xff, sizeof(question));
	question.magic = SANDBOX_QUESTION_MAGIC;
	question.of = 12345;
	return io_write_all(SANDBOX_RESULT_FD, &question, sizeof(question));
}

static int say_path(void)
{
	static struct sandbox_question question = {
		.magic = SANDBOX_QUESTION_MAGIC,
		.names.link = "../secret",
	};

	return io_write_all(SANDBOX_RESULT_FD, &question, sizeof(question));
}

static int ask_without_end(void)
{
	static struct sandbox_question question = { .magic = SANDBOX_QUESTION_MAGIC };
	struct sandbox_answer answer;

	while (!io_write_all(SANDBOX_RESULT_FD, &question, sizeof(question)))
		if (read(SANDBOX_RESULT_FD, &answer, sizeof(answer)) != sizeof(answer))
			return -EIO;
	return 0;
}

static int ask_by_halves(void)
{
	static struct sandbox_question question = { .magic = SANDBOX_QUESTION_MAGIC };

	if (io_write_all(SANDBOX_RESULT_FD, &question, sizeof(question) / 2))
		return -EIO;
	_exit(0);
}

/* A file that is no ELF file causes no question by itself; its first letter says what to do. */
static int act(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	char what = 0;

	(void)ret_result;
	if (pread(files->elf_fd, &what, 1, 0) != 1)
		return -EIO;
	switch (what) {
	case 'b':
		return say_broken_words();
	case 'p':
		return say_path();
	case 'm':
		return ask_without_end();
	case 'h':
		return ask_by_halves();
	default:
		return note_debug_files(files);
	}
}

/* ---- the parent's side ---------------------------------------------------------------------- */

static int text_file(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	return fd;
}

/* An ELF file that names debug files; END is its last byte. */
static int elf_file(
	const char *link, size_t link_size, const char *alternate, size_t alternate_size, char end)
{
	struct elf_writer w;
	int fd;

	elf_writer_init(&w);
	elf_writer_code(&w, ".text", 0x1000, 0x10);
	elf_writer_build_id(&w, 0x300, id, sizeof(id));
	if (link)
		elf_writer_section(&w, &(struct elf_section_spec){ ".gnu_debuglink", .bytes = link,
					       .size = link_size });
	if (alternate)
		elf_writer_section(&w, &(struct elf_section_spec){ ".gnu_debugaltlink",
					       .bytes = alternate, .size = alternate_size });
	fd = elf_writer_file(&w);
	elf_writer_deinit(&w);
	assert_true(lseek(fd, 0, SEEK_END) > 0);
	assert_int_equal(io_write_all(fd, &end, 1), 0);
	return fd;
}

struct dialogue {
	struct sandbox sandbox;
	int elf_fd, output_fd;
	struct sandbox_result result;
};

static void dialogue_start(struct dialogue *d, int elf_fd, bool may_ask)
{
	const struct sandbox_limits limits = { .memory_bytes = 256 << 20, .cpu_seconds = 5 };
	struct sandbox_files files = { .elf_fd = elf_fd, .may_ask = may_ask };

	d->elf_fd = elf_fd;
	d->output_fd = files.output_fd = memfd_create("output", MFD_CLOEXEC);
	assert_int_equal(sandbox_start_files(&files, &limits, &d->sandbox), 0);
}

/* Returns the next question; NULL = the child has ended. */
static const struct sandbox_question *dialogue_next(struct dialogue *d)
{
	struct pollfd waited = { .fd = d->sandbox.result_fd, .events = POLLIN };

	for (;;) {
		assert_int_equal(poll(&waited, 1, PATIENCE_MS), 1);
		if (sandbox_receive(&d->sandbox))
			return NULL;
		if (sandbox_question(&d->sandbox))
			return sandbox_question(&d->sandbox);
	}
}

static enum sandbox_outcome dialogue_end(struct dialogue *d)
{
	enum sandbox_outcome outcome = sandbox_finish(&d->sandbox, &d->result);

	close(d->elf_fd);
	return outcome;
}

static struct seen dialogue_seen(struct dialogue *d)
{
	struct seen seen;

	assert_int_equal(dialogue_end(d), SANDBOX_OK);
	assert_int_equal(pread(d->output_fd, &seen, sizeof(seen), 0), sizeof(seen));
	close(d->output_fd);
	return seen;
}

static void answer_nothing(struct dialogue *d)
{
	sandbox_answer(&d->sandbox, &(struct debug_files){ .count = 0 });
}

static void answer_file(struct dialogue *d, int fd, enum debug_file_role role)
{
	autocall(debug_files_close) struct debug_files found = {
		.items = { { .fd = fd, .role = role, .crc = 7 } },
		.count = 1,
	};

	sandbox_answer(&d->sandbox, &found);
}

/* ---- the cases ------------------------------------------------------------------------------ */

static void test_it_asks_by_what_the_module_says(void **state)
{
	const struct sandbox_question *question;
	struct dialogue d;
	struct seen seen;

	(void)state;
	dialogue_start(&d, elf_file(link_bytes, sizeof(link_bytes) - 1, NULL, 0, 'e'), true);
	question = dialogue_next(&d);
	assert_non_null(question);
	assert_int_equal(question->of, SANDBOX_OF_MODULE);
	assert_string_equal(question->names.link, "x.debug");
	assert_int_equal(question->names.link_crc, 0x12345678);
	assert_int_equal(question->names.build_id.size, sizeof(id));
	assert_memory_equal(question->names.build_id.bytes, id, sizeof(id));
	answer_nothing(&d);
	assert_null(dialogue_next(&d));
	seen = dialogue_seen(&d);
	assert_int_equal(seen.count, 0);
}

static void test_it_has_what_it_is_offered(void **state)
{
	struct debug_files offered = { .count = 0 };
	struct dialogue d;
	struct seen seen;

	(void)state;
	dialogue_start(&d, elf_file(NULL, 0, NULL, 0, 'e'), true);
	assert_non_null(dialogue_next(&d));
	for (char c = 'a'; offered.count < SANDBOX_OFFER_MAX; c++)
		offered.items[offered.count++] = (struct debug_file){
			.fd = text_file((char[]){ c, 0 }),
			.role = c == 'a' ? DEBUG_FILE_LINKED : DEBUG_FILE_SPLIT,
			.crc = (uint32_t)c,
		};
	sandbox_answer(&d.sandbox, &offered);
	debug_files_close(&offered);
	assert_null(dialogue_next(&d));
	seen = dialogue_seen(&d);
	assert_int_equal(seen.count, SANDBOX_OFFER_MAX);
	assert_int_equal(seen.items[0].role, DEBUG_FILE_LINKED);
	for (uint32_t i = 0; i < seen.count; i++) {
		assert_int_equal(seen.items[i].byte, 'a' + i);
		assert_int_equal(seen.items[i].crc, 'a' + i);
	}
}

static void test_it_asks_for_what_a_debug_file_shares(void **state)
{
	const struct sandbox_question *question;
	struct dialogue d;
	struct seen seen;

	(void)state;
	dialogue_start(&d, elf_file(NULL, 0, NULL, 0, 'e'), true);
	assert_non_null(dialogue_next(&d));
	answer_file(&d, elf_file(NULL, 0, alternate_bytes, sizeof(alternate_bytes) - 1, 'd'),
		DEBUG_FILE_SEPARATE);
	question = dialogue_next(&d);
	assert_non_null(question);
	assert_int_equal(question->of, 0);
	assert_string_equal(question->names.alternate, "/alt.debug");
	assert_int_equal(question->names.alternate_id.size, 2);
	answer_file(&d, text_file("s"), DEBUG_FILE_SUPPLEMENTARY);
	assert_null(dialogue_next(&d));
	seen = dialogue_seen(&d);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.items[0].byte, 'd');
	assert_int_equal(seen.items[1].role, DEBUG_FILE_SUPPLEMENTARY);
	assert_int_equal(seen.items[1].byte, 's');
}

/* A mere path to a file with TEXT whose name leads to another file by now. */
static int path_to(const char *text)
{
	char name[] = "/tmp/fathom-test-XXXXXX";
	autoclose int fd = mkostemp(name, O_CLOEXEC), other_fd = -1;
	int path_fd;

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	path_fd = open(name, O_PATH | O_CLOEXEC);
	assert_int_equal(unlink(name), 0);
	other_fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(io_write_all(other_fd, "bad", 3), 0);
	assert_int_equal(unlink(name), 0);
	return path_fd;
}

/* Of two debug files, one is open already, like a server's. */
static void test_mere_paths_are_reopened(void **state)
{
	const struct sandbox_limits limits = { .memory_bytes = 256 << 20, .cpu_seconds = 5 };
	struct sandbox_files files = { .elf_fd = path_to("n"),
		.output_fd = memfd_create("output", MFD_CLOEXEC),
		.debug_files = { .items = { { .fd = path_to("1") }, { .fd = text_file("2") } },
			.count = 2 } };
	struct dialogue d = { .elf_fd = files.elf_fd, .output_fd = files.output_fd };
	struct seen seen;

	(void)state;
	assert_int_equal(sandbox_start_files(&files, &limits, &d.sandbox), 0);
	debug_files_close(&files.debug_files);
	assert_null(dialogue_next(&d));
	seen = dialogue_seen(&d);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.items[0].byte, '1');
	assert_int_equal(seen.items[1].byte, '2');
}

static void test_a_path_to_no_regular_file_is_not_opened(void **state)
{
	struct dialogue d;

	(void)state;
	dialogue_start(&d, open("/dev/null", O_PATH | O_CLOEXEC), false);
	assert_null(dialogue_next(&d));
	assert_int_equal(dialogue_end(&d), SANDBOX_INTERRUPTED);
	close(d.output_fd);
}

static void test_a_child_that_may_not_ask_does_not(void **state)
{
	struct dialogue d;
	struct seen seen;

	(void)state;
	dialogue_start(&d, elf_file(link_bytes, sizeof(link_bytes) - 1, NULL, 0, 'e'), false);
	assert_null(dialogue_next(&d));
	seen = dialogue_seen(&d);
	assert_int_equal(seen.count, 0);
}

static void test_an_unexpected_question_is_a_protocol_error(void **state)
{
	struct dialogue d;

	(void)state;
	dialogue_start(&d, text_file("p"), false);
	assert_null(dialogue_next(&d));
	assert_int_equal(dialogue_end(&d), SANDBOX_CRASH);
	close(d.output_fd);
}

static void test_malformed_questions_name_no_file(void **state)
{
	const struct sandbox_question *question;
	struct dialogue d;

	(void)state;
	dialogue_start(&d, text_file("b"), true);
	question = dialogue_next(&d);
	assert_non_null(question);
	assert_string_equal(question->names.link, "");
	assert_string_equal(question->names.alternate, "");
	assert_int_equal(question->names.build_id.size, 0);
	assert_int_equal(question->names.alternate_id.size, 0);
	assert_int_equal(question->names.has_dwarf, 1);
	answer_nothing(&d);
	assert_null(dialogue_next(&d));
	assert_int_equal(dialogue_end(&d), SANDBOX_OK);
	close(d.output_fd);
}

static void test_a_link_is_not_a_path(void **state)
{
	const struct sandbox_question *question;
	struct dialogue d;

	(void)state;
	dialogue_start(&d, text_file("p"), true);
	question = dialogue_next(&d);
	assert_non_null(question);
	assert_string_equal(question->names.link, "");
	while (!sandbox_kill(&d.sandbox))
		;
	close(d.elf_fd);
	close(d.output_fd);
}

static void test_questions_without_end_end_it(void **state)
{
	unsigned int questions = 0;
	struct dialogue d;

	(void)state;
	dialogue_start(&d, text_file("m"), true);
	while (dialogue_next(&d)) {
		questions++;
		answer_nothing(&d);
	}
	assert_true(questions >= 2 && questions < 32);
	assert_int_equal(dialogue_end(&d), SANDBOX_CRASH);
	close(d.output_fd);
}

static void test_half_a_question_is_a_crash(void **state)
{
	struct dialogue d;

	(void)state;
	dialogue_start(&d, text_file("h"), true);
	assert_null(dialogue_next(&d));
	assert_int_equal(dialogue_end(&d), SANDBOX_CRASH);
	close(d.output_fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_asks_by_what_the_module_says),
		cmocka_unit_test(test_it_has_what_it_is_offered),
		cmocka_unit_test(test_it_asks_for_what_a_debug_file_shares),
		cmocka_unit_test(test_mere_paths_are_reopened),
		cmocka_unit_test(test_a_path_to_no_regular_file_is_not_opened),
		cmocka_unit_test(test_a_child_that_may_not_ask_does_not),
		cmocka_unit_test(test_an_unexpected_question_is_a_protocol_error),
		cmocka_unit_test(test_malformed_questions_name_no_file),
		cmocka_unit_test(test_a_link_is_not_a_path),
		cmocka_unit_test(test_questions_without_end_end_it),
		cmocka_unit_test(test_half_a_question_is_a_crash),
	};

	if (argc > 1 && sandboxed_is_command(argv[1]))
		return sandboxed_run(argc, argv, act);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
