/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The note reader from both sides: this program is its own child, started with the hidden command.
 * If a file is no ELF file, its first letter tells the child what to do instead of reading it.
 */
#include "symbolizer/sandbox/note_reader.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/indexer/elf/build_id.h"
#include "symbolizer/sandbox/note_wire.h"
#include "symbolizer/sandboxed/note_child.h"
#include "tests/unit/bytes.h"

enum { ID_BYTES = 20 };

/* ---- the child's side ----------------------------------------------------------------------- */

/* Writes the bytes after the letter `f` instead of an answer. */
static int forge(int fd)
{
	char bytes[4096];
	ssize_t size = pread(fd, bytes, sizeof(bytes), 1);

	(void)!write(NOTE_FD, bytes, (size_t)MAX(size, 0));
	return -ENOENT;
}

/* Wants a CPU for longer than an answer may take. */
static void spend_time(void)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec < start.tv_sec + 3);
}

static int act(int fd, struct build_id *ret_id)
{
	char letter = 0;

	if (pread(fd, &letter, 1, 0) != 1)
		return build_id_read(fd, ret_id);
	switch (letter) {
	case 'd':
		abort();
	case 'e':
		_exit(0);
	case 'f':
		return forge(fd);
	case 'h':
		/* Blocks: no other question comes before this one is answered. */
		(void)!read(NOTE_FD, &letter, 1);
		return -ENOENT;
	case 's': /* gets little CPU time */
		spend_time();
		return -ENOENT;
	case 'o': /* opens a file */
		(void)!open("/etc/passwd", O_RDONLY);
		return -ENOENT;
	default:
		return build_id_read(fd, ret_id);
	}
}

/* ---- files ---------------------------------------------------------------------------------- */

static int file_of(const void *bytes, size_t size)
{
	int fd = memfd_create("note", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, bytes, size), 0);
	return fd;
}

static int file_that(const char *letter)
{
	return file_of(letter, strlen(letter));
}

struct header {
	Elf64_Ehdr elf;
	Elf64_Phdr segments[16];
	struct {
		uint32_t name_size, size, type;
		char name[4];
		uint8_t bytes[ID_BYTES];
	} note;
};

enum { FILE_BYTES = offsetof(struct header, note) + 36 }; /* without padding */

/* A file whose only segment is a note: the build ID BYTE, BYTE, … */
static struct header header_of(uint8_t byte)
{
	struct header h = {
		.elf = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
			.e_phoff = offsetof(struct header, segments),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1 },
		.note = { 4, ID_BYTES, NT_GNU_BUILD_ID, "GNU", { 0 } }
	};

	h.segments[0] = (Elf64_Phdr){ .p_type = PT_NOTE,
		.p_offset = offsetof(struct header, note),
		.p_filesz = sizeof(h.note),
		.p_align = 4 };
	memset(h.note.bytes, byte, ID_BYTES);
	return h;
}

static int good_file(uint8_t byte)
{
	struct header h = header_of(byte);

	return file_of(&h, FILE_BYTES);
}

/* ---- the reader ----------------------------------------------------------------------------- */

struct fixture {
	struct metrics metrics;
	struct note_reader reader;
	size_t descriptors; /* number of open descriptors before the test */
};

static size_t open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->descriptors = open_descriptors();
	note_reader_init(&f->reader, &f->metrics);
	*state = f;
	return 0;
}

/* Checks that no descriptor and no child is left, not even a zombie. */
static int tear_down(void **state)
{
	struct fixture *f = *state;

	note_reader_deinit(&f->reader);
	for (size_t i = 0; i < f->reader.dying_count; i++)
		assert_int_equal(waitpid(f->reader.dying[i], NULL, 0), f->reader.dying[i]);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(open_descriptors(), f->descriptors);
	free(f);
	return 0;
}

static uint64_t count(struct fixture *f, enum metric metric)
{
	return metrics_get(&f->metrics, metric);
}

static uint64_t all_failures(struct fixture *f)
{
	return count(f, METRIC_NOTE_READER_DIED) + count(f, METRIC_NOTE_READER_HUNG) +
	       count(f, METRIC_NOTE_READER_NONSENSE) + count(f, METRIC_NOTE_READER_NOT_STARTED);
}

/* The answer for FD, which is closed. */
static int answer_to(struct fixture *f, int fd_)
{
	struct build_id id = { .size = 99 };
	autoclose int fd = fd_;
	int err = note_reader_read(&f->reader, fd, &id);

	assert_true(err <= 0);
	assert_int_equal(err ? 99 : ID_BYTES, id.size);
	return err;
}

static void expect_good(struct fixture *f, uint8_t byte)
{
	struct build_id id;
	autoclose int fd = good_file(byte);

	assert_int_equal(note_reader_read(&f->reader, fd, &id), 0);
	assert_int_equal(id.size, ID_BYTES);
	for (int i = 0; i < ID_BYTES; i++)
		assert_int_equal(id.bytes[i], byte);
}

/* ---- cases: files --------------------------------------------------------------------------- */

static void one_child_reads_file_after_file(void **state)
{
	struct fixture *f = *state;
	pid_t pid;

	assert_int_equal(f->reader.pid, -1);
	expect_good(f, 1);
	pid = f->reader.pid;
	assert_true(pid > 0);
	for (uint8_t i = 2; i < 50; i++)
		expect_good(f, i);
	assert_int_equal(f->reader.pid, pid);
	assert_int_equal(all_failures(f), 0);
}

/* The child survives every malformed file. */
static void hostile_files_have_an_error_each(void **state)
{
	struct fixture *f = *state;
	struct header h;
	pid_t pid;

	expect_good(f, 1);
	pid = f->reader.pid;
	assert_int_equal(answer_to(f, file_of("", 0)), -EBADMSG);
	assert_int_equal(answer_to(f, file_that("no ELF file")), -EBADMSG);
	h = header_of(1);
	assert_int_equal(answer_to(f, file_of(&h, sizeof(h.elf) - 1)), -EBADMSG);
	assert_int_equal(answer_to(f, file_of(&h, FILE_BYTES - 1)), -ENOENT);
	h.elf.e_phnum = 65535;
	assert_int_equal(answer_to(f, file_of(&h, FILE_BYTES)), -E2BIG);
	h = header_of(1);
	h.elf.e_phoff = UINT64_MAX;
	assert_true(answer_to(f, file_of(&h, FILE_BYTES)) < 0);
	h = header_of(1);
	h.segments[0].p_offset = UINT64_MAX - 7;
	assert_true(answer_to(f, file_of(&h, FILE_BYTES)) < 0);
	h = header_of(1);
	h.note.size = UINT32_MAX;
	assert_int_equal(answer_to(f, file_of(&h, FILE_BYTES)), -ENOENT);
	h = header_of(1);
	h.note.size = 64;
	h.segments[0].p_filesz = UINT64_MAX;
	assert_int_equal(answer_to(f, file_of(&h, FILE_BYTES)), -ENOENT);
	assert_int_equal(f->reader.pid, pid);
	assert_int_equal(all_failures(f), 0);
	expect_good(f, 2);
}

/* The segment claims the largest possible size; the part inside the file counts. */
static void a_huge_segment_of_notes_is_read_as_far_as_it_goes(void **state)
{
	struct header h = header_of(7);

	h.segments[0].p_filesz = UINT64_MAX;
	assert_int_equal(answer_to(*state, file_of(&h, FILE_BYTES)), 0);
}

/* All note segments overlap, and their empty notes would never end. */
static void overlapping_notes_end(void **state)
{
	struct header h = header_of(1);

	h.elf.e_phnum = 16;
	for (int i = 0; i < 16; i++)
		h.segments[i] = (Elf64_Phdr){ .p_type = PT_NOTE,
			.p_offset = offsetof(struct header, segments) + 4,
			.p_filesz = UINT32_MAX,
			.p_align = 4 };
	assert_int_equal(answer_to(*state, file_of(&h, FILE_BYTES)), -ENOENT);
}

static void what_is_no_file_has_none(void **state)
{
	char path[] = "/tmp/fathom-fifo-XXXXXX";
	struct fixture *f = *state;

	assert_int_equal(answer_to(f, open("/tmp", O_RDONLY | O_CLOEXEC)), -EBADMSG);
	assert_non_null(mkdtemp(path));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(answer_to(f, open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)), -EBADMSG);
	assert_int_equal(answer_to(f, open(path, O_RDONLY | O_PATH | O_CLOEXEC)), -EBADMSG);
	unlink(path);
	assert_int_equal(all_failures(f), 0);
}

static void a_file_that_shrank_has_none(void **state)
{
	struct fixture *f = *state;
	int fd = good_file(1);

	assert_int_equal(ftruncate(fd, sizeof(Elf64_Ehdr)), 0);
	assert_true(answer_to(f, fd) < 0);
	expect_good(f, 2);
	assert_int_equal(all_failures(f), 0);
}

/* ---- cases: children ------------------------------------------------------------------------ */

/* FILE makes the child fail: it gives no build ID, and a new child reads the next file. */
static void expect_failure(struct fixture *f, int fd_, enum metric metric)
{
	autoclose int fd = fd_;
	uint64_t before = count(f, metric), all = all_failures(f);
	struct build_id id = { .size = 99 };

	assert_int_equal(note_reader_read(&f->reader, fd, &id), -EAGAIN);
	assert_int_equal(id.size, 99);
	assert_int_equal(f->reader.pid, -1);
	assert_int_equal(count(f, metric), before + 1);
	/* The file is not tried again at once. */
	assert_int_equal(note_reader_read(&f->reader, fd, &id), -EAGAIN);
	assert_int_equal(all_failures(f), all + 1);
	expect_good(f, 3);
}

static void a_child_that_dies_is_replaced(void **state)
{
	struct fixture *f = *state;

	expect_good(f, 1);
	expect_failure(f, file_that("d"), METRIC_NOTE_READER_DIED);
	expect_failure(f, file_that("e"), METRIC_NOTE_READER_DIED);
}

static void a_child_that_opens_a_file_dies(void **state)
{
	if (!sandbox_is_closed())
		skip();
	expect_failure(*state, file_that("o"), METRIC_NOTE_READER_DIED);
}

static void a_child_that_does_not_answer_is_replaced(void **state)
{
	expect_failure(*state, file_that("h"), METRIC_NOTE_READER_HUNG);
}

static void a_child_that_only_wants_a_cpu_is_waited_for(void **state)
{
	struct fixture *f = *state;
	autoclose int fd = file_that("s");
	struct build_id id;

	assert_int_equal(note_reader_read(&f->reader, fd, &id), -ENOENT);
	assert_int_equal(all_failures(f), 0);
}

static void a_child_that_was_stopped_is_replaced(void **state)
{
	struct fixture *f = *state;

	expect_good(f, 1);
	assert_int_equal(kill(f->reader.pid, SIGSTOP), 0);
	expect_failure(f, good_file(2), METRIC_NOTE_READER_HUNG);
}

/* A file that makes the child write the first SIZE bytes of ANSWER, zero-padded. */
static int forged_file(struct note_answer answer, size_t size)
{
	char bytes[1 + 2 * sizeof(answer)] = "f";

	memcpy(bytes + 1, &answer, sizeof(answer));
	return file_of(bytes, 1 + size);
}

static void nonsense_is_no_answer(void **state)
{
	struct fixture *f = *state;
	struct note_answer good = { .magic = NOTE_MAGIC, .number = 1, .id.size = ID_BYTES }, bad;

	for (int i = 0; i < 6; i++) {
		good.number = f->reader.number + 1;
		bad = good;
		bad.magic ^= i == 0;
		bad.number += i == 1;
		if (i == 2)
			bad.id.size = 0;
		if (i == 3)
			bad.id.size = BUILD_ID_MAX_BYTES + 1;
		if (i == 4)
			bad.error = 1;
		if (i == 5)
			bad.error = -ENOMEM; /* the child has no say in shortages of the parent */
		expect_failure(f, forged_file(bad, sizeof(bad)), METRIC_NOTE_READER_NONSENSE);
	}
	f->reader.failures = 0;
	for (size_t size = sizeof(good) - 1; size <= sizeof(good) + 1; size += 2) {
		good.number = f->reader.number + 1;
		expect_failure(f, forged_file(good, size), METRIC_NOTE_READER_NONSENSE);
	}
	/* Any other answer is believed. */
	f->reader.failures = 0;
	good.number = f->reader.number + 1;
	assert_int_equal(answer_to(f, forged_file(good, sizeof(good))), 0);
}

/* The file did not kill the child, so the next child reads it at once. */
static void a_child_that_died_between_two_files_is_replaced(void **state)
{
	struct fixture *f = *state;
	siginfo_t info;

	expect_good(f, 1);
	assert_int_equal(kill(f->reader.pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)f->reader.pid, &info, WEXITED | WNOWAIT), 0);
	expect_good(f, 2);
	assert_int_equal(count(f, METRIC_NOTE_READER_DIED), 1);
}

static void a_child_is_replaced_after_so_many_files(void **state)
{
	struct fixture *f = *state;
	pid_t first;

	expect_good(f, 0);
	first = f->reader.pid;
	for (int i = 1; i < NOTE_READER_FILES; i++)
		expect_good(f, (uint8_t)i);
	assert_int_equal(f->reader.pid, first);
	expect_good(f, 1);
	assert_true(f->reader.pid > 0 && f->reader.pid != first);
	assert_int_equal(all_failures(f), 0);
}

static void a_suspect_is_read_again_after_growing_pauses(void **state)
{
	struct fixture *f = *state;
	autoclose int fd = file_that("d");
	struct note_suspect *s = &f->reader.suspects[0];
	struct build_id id;
	uint64_t first_ns;

	assert_int_equal(note_reader_read(&f->reader, fd, &id), -EAGAIN);
	first_ns = s->until_ns;
	s->until_ns = 1;
	assert_int_equal(note_reader_read(&f->reader, fd, &id), -EAGAIN);
	assert_int_equal(all_failures(f), 2);
	assert_int_equal(s->failures, 2);
	/* The second pause is four times 10 s. */
	assert_true(s->until_ns > first_ns + UINT64_C(29000000000));
	/* The change makes it another file. */
	s->until_ns = 1;
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	assert_int_equal(note_reader_read(&f->reader, fd, &id), -EBADMSG);
	assert_int_equal(s->until_ns, 0);
}

static void files_that_kill_one_child_after_the_other_make_no_storm(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3 * NOTE_READER_FAILURES; i++)
		assert_int_equal(answer_to(f, file_that("d")), -EAGAIN);
	assert_int_equal(all_failures(f), NOTE_READER_FAILURES);
	assert_int_equal(answer_to(f, good_file(1)), -EAGAIN);
	/* Ten seconds later one more file is tried; a minute later all failures are forgotten. */
	f->reader.failed_ns -= UINT64_C(11000000000);
	expect_good(f, 1);
	assert_int_equal(answer_to(f, file_that("d")), -EAGAIN);
	assert_int_equal(answer_to(f, good_file(1)), -EAGAIN);
	f->reader.failed_ns -= UINT64_C(61000000000);
	assert_int_equal(answer_to(f, file_that("d")), -EAGAIN);
	expect_good(f, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		CASE(one_child_reads_file_after_file),
		CASE(hostile_files_have_an_error_each),
		CASE(a_huge_segment_of_notes_is_read_as_far_as_it_goes),
		CASE(overlapping_notes_end),
		CASE(what_is_no_file_has_none),
		CASE(a_file_that_shrank_has_none),
		CASE(a_child_that_dies_is_replaced),
		CASE(a_child_that_opens_a_file_dies),
		CASE(a_child_that_does_not_answer_is_replaced),
		CASE(a_child_that_only_wants_a_cpu_is_waited_for),
		CASE(a_child_that_was_stopped_is_replaced),
		CASE(nonsense_is_no_answer),
		CASE(a_child_that_died_between_two_files_is_replaced),
		CASE(a_child_is_replaced_after_so_many_files),
		CASE(a_suspect_is_read_again_after_growing_pauses),
		CASE(files_that_kill_one_child_after_the_other_make_no_storm),
	};

	if (argc > 1 && !strcmp(argv[1], NOTE_COMMAND))
		return note_child_run(argc, argv, act);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
