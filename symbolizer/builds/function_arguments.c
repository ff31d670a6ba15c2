/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/builds/function_arguments.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/foreign.h"
#include "base/io.h"
#include "symbolizer/builds/kept_arguments.h"
#include "symbolizer/sandbox/arguments_wire.h"
#include "symbolizer/sandbox/sandbox.h"

enum { MAX_IDLE_LOOKS = 10 };

static const uint64_t LOOK_NS = UINT64_C(1000000000);

static const struct sandbox_limits limits = {
	.task = SANDBOX_READ_ARGUMENTS,
	.memory_bytes = 4UL << 30,
	.cpu_seconds = 60,
	.output_bytes = ARGUMENTS_ANSWERS_MAX_BYTES,
};

struct arguments_reading {
	struct debug_search search;
	struct sandbox_files files; /* owned */
	struct sandbox child;
	bool started, ended;
	uint64_t looked_ns; /* CLOCK_MONOTONIC */
	int error; /* once it has ended */
	struct arguments_wanted wanted;
};

/* ---- the question --------------------------------------------------------------------------- */

static int arguments_write_question(int fd, const uint64_t *entries, size_t count)
{
	const struct arguments_question question = {
		.magic = ARGUMENTS_QUESTION_MAGIC,
		.count = (uint32_t)count,
	};
	int err = io_write_at(fd, 0, &question, sizeof(question));

	return err ?: io_write_at(fd, sizeof(question), entries, count * sizeof(entries[0]));
}

/* ---- while the child reads ------------------------------------------------------------------ */

static void arguments_offer(struct arguments_reading *r)
{
	const struct sandbox_question *question = sandbox_question(&r->child);
	struct debug_files *known = &r->files.debug_files;
	struct debug_files found = { .count = 0 };

	if (question->of == SANDBOX_OF_MODULE)
		(void)debug_search_find(&r->search, r->files.elf_fd, &question->names, &found);
	else if (question->of < known->count)
		(void)debug_search_find_alternate(
			&r->search, &known->items[question->of], &question->names, &found);
	sandbox_answer(&r->child, &found);
	for (size_t i = 0; i < found.count; i++)
		if (known->count < DEBUG_FILES_MAX)
			known->items[known->count++] = found.items[i];
		else
			close(found.items[i].fd);
}

static void arguments_end(struct arguments_reading *r)
{
	struct sandbox_result result;
	enum sandbox_outcome outcome = sandbox_finish(&r->child, &result);

	r->ended = true;
	if (outcome == SANDBOX_OK)
		r->error = 0;
	else if (outcome == SANDBOX_LIMIT || outcome == SANDBOX_NO_SPACE)
		r->error = -E2BIG;
	else
		r->error = outcome == SANDBOX_CRASH || !result.error ? -EBADMSG : result.error;
}

/* The child has not said anything: perhaps its files do not answer. */
static void arguments_look(struct arguments_reading *r)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (now_ns - r->looked_ns < LOOK_NS)
		return;
	r->looked_ns = now_ns;
	if (sandbox_idle_looks(&r->child) < MAX_IDLE_LOOKS)
		return;
	(void)sandbox_kill(&r->child);
	r->ended = true;
	r->error = -EAGAIN;
}

bool arguments_reading_step(struct arguments_reading *r)
{
	while (!r->ended) {
		struct pollfd asked = { .fd = r->child.result_fd, .events = POLLIN };

		if (poll(&asked, 1, 0) <= 0) {
			arguments_look(r);
			break;
		}
		if (sandbox_receive(&r->child) && sandbox_is_gone(&r->child))
			arguments_end(r);
		else if (!r->child.ends && sandbox_question(&r->child))
			arguments_offer(r);
	}
	return r->ended;
}

/* ---- the answer ----------------------------------------------------------------------------- */

/*
 * What was read is kept for the next run, unless the file was written to meanwhile. Errors are
 * ignored: then that reads it again.
 */
static void arguments_keep(const struct arguments_reading *r, const void *answers, size_t size)
{
	struct file_id now;

	if (kept_arguments_is_wanted(&r->wanted) && !foreign_state(r->files.elf_fd, &now) &&
		file_id_equal(&now, &r->wanted.id->file))
		(void)kept_arguments_write(&r->wanted, answers, size);
}

int arguments_reading_finish(struct arguments_reading *r, struct function_arguments *ret_items)
{
	void *bytes = NULL;
	off_t size = 0;
	int err = r->error;

	if (!err && (size = lseek(r->files.output_fd, 0, SEEK_END)) < 0)
		err = -errno;
	if (!err && size) {
		bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, r->files.output_fd, 0);
		err = bytes == MAP_FAILED ? -errno : 0;
	}
	if (err)
		size = 0;
	if (!err)
		err = arguments_answer_take(bytes, (size_t)size, r->wanted.count, ret_items);
	else
		memset(ret_items, 0, r->wanted.count * sizeof(ret_items[0]));
	if (!err)
		arguments_keep(r, bytes, (size_t)size);
	if (size)
		munmap(bytes, (size_t)size);
	return err;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int arguments_start(struct arguments_reading *r)
{
	struct stat st;
	int err;

	if (r->files.elf_fd < 0 || r->files.output_fd < 0)
		return -errno;
	err = arguments_write_question(r->files.output_fd, r->wanted.entries, r->wanted.count);
	if (!err)
		err = foreign_look(r->files.elf_fd, &st);
	if (err)
		return err;
	r->files.elf_bytes = (uint64_t)st.st_size;
	err = sandbox_start_files(&r->files, &limits, &r->child);
	r->started = !err;
	return err;
}

int arguments_reading_begin(int elf_fd, const struct debug_search *search,
	const struct arguments_wanted *wanted, struct arguments_reading **ret_reading)
{
	struct arguments_reading *r;
	int err;

	if (wanted->count > ARGUMENTS_FUNCTIONS_MAX)
		return -E2BIG;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->search = *search;
	r->wanted = *wanted;
	r->looked_ns = clock_monotonic_ns();
	r->files.may_ask = true;
	r->files.output_fd = memfd_create("fathom-arguments", MFD_CLOEXEC);
	r->files.elf_fd = fcntl(elf_fd, F_DUPFD_CLOEXEC, 0);
	err = arguments_start(r);
	if (err)
		arguments_reading_destroy(r);
	else
		*ret_reading = r;
	return err;
}

void arguments_reading_destroy(struct arguments_reading *r)
{
	if (!r)
		return;
	if (r->started && !r->ended)
		(void)sandbox_kill(&r->child);
	debug_files_close(&r->files.debug_files);
	if (r->files.elf_fd >= 0)
		close(r->files.elf_fd);
	if (r->files.output_fd >= 0)
		close(r->files.output_fd);
	free(r);
}
