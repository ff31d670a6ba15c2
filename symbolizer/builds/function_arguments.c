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
#include "base/cursor.h"
#include "base/foreign.h"
#include "base/io.h"
#include "symbolizer/sandbox/arguments_wire.h"
#include "symbolizer/sandbox/sandbox.h"

enum {
	MAX_IDLE_LOOKS = 10,
	/* What a plan may take at most, and so all answers. */
	PLAN_MAX_BYTES = sizeof(struct argument_plan) + ABI_FETCHES * sizeof(struct abi_fetch) +
			 ARGUMENTS_MAX * sizeof(struct argument) + ARGUMENT_NAMES_BYTES,
};

static const uint64_t LOOK_NS = UINT64_C(1000000000);

static const struct sandbox_limits limits = {
	.task = SANDBOX_READ_ARGUMENTS,
	.memory_bytes = 4UL << 30,
	.cpu_seconds = 60,
	.output_bytes = 64UL << 20,
};

struct arguments_reading {
	struct debug_search search;
	struct sandbox_files files; /* owned */
	struct sandbox child;
	bool started, ended;
	uint64_t looked_ns; /* CLOCK_MONOTONIC */
	int error; /* once it has ended */
	size_t count; /* of functions */
};

void function_arguments_deinit(struct function_arguments *arguments)
{
	free(take(arguments->entry));
	free(take(arguments->results));
}

/* ---- the question --------------------------------------------------------------------------- */

static int arguments_write_at(int fd, const void *bytes, size_t size, off_t off)
{
	ssize_t written = pwrite(fd, bytes, size, off);

	if (written < 0)
		return -errno;
	return (size_t)written == size ? 0 : -EIO;
}

static int arguments_write_question(int fd, const uint64_t *entries, size_t count)
{
	const struct arguments_question question = {
		.magic = ARGUMENTS_QUESTION_MAGIC,
		.count = (uint32_t)count,
	};
	int err = arguments_write_at(fd, &question, sizeof(question), 0);

	return err ?: arguments_write_at(fd, entries, count * sizeof(entries[0]), sizeof(question));
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

static int arguments_take_plan(struct cursor *c, uint32_t size, struct argument_plan **ret_plan)
{
	const void *bytes;
	struct argument_plan *plan;

	if (!size)
		return 0;
	bytes = cursor_bytes(c, size);
	cursor_skip(c, -size % 8);
	if (!bytes || size > PLAN_MAX_BYTES || *ret_plan)
		return -EBADMSG;
	plan = malloc(size);
	if (!plan)
		return -ENOMEM;
	memcpy(plan, bytes, size);
	if (!argument_plan_check(plan, size)) {
		free(plan);
		return -EBADMSG;
	}
	*ret_plan = plan;
	return 0;
}

static int arguments_take(struct cursor *c, size_t count, struct function_arguments *items)
{
	while (cursor_left(c)) {
		struct arguments_answer answer;
		const void *bytes = cursor_bytes(c, sizeof(answer));
		int err;

		if (!bytes)
			return -EBADMSG;
		memcpy(&answer, bytes, sizeof(answer));
		if (answer.magic != ARGUMENTS_ANSWER_MAGIC || answer.function >= count)
			return -EBADMSG;
		err = arguments_take_plan(c, answer.entry_bytes, &items[answer.function].entry);
		if (!err)
			err = arguments_take_plan(
				c, answer.return_bytes, &items[answer.function].results);
		if (err)
			return err;
	}
	return 0;
}

static int arguments_take_all(int fd, size_t count, struct function_arguments *items)
{
	off_t size = lseek(fd, 0, SEEK_END);
	struct cursor c;
	void *bytes;
	int err;

	if (size < 0)
		return -errno;
	if (!size)
		return 0;
	bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	c = cursor_over(bytes, (size_t)size);
	err = arguments_take(&c, count, items);
	munmap(bytes, (size_t)size);
	return err;
}

int arguments_reading_finish(struct arguments_reading *r, struct function_arguments *ret_items)
{
	int err = r->error;

	for (size_t i = 0; i < r->count; i++)
		ret_items[i] = (struct function_arguments){ NULL, NULL };
	if (!err)
		err = arguments_take_all(r->files.output_fd, r->count, ret_items);
	for (size_t i = 0; err && i < r->count; i++)
		function_arguments_deinit(&ret_items[i]);
	return err;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int arguments_start(struct arguments_reading *r, const uint64_t *entries)
{
	struct stat st;
	int err;

	if (r->files.elf_fd < 0 || r->files.output_fd < 0)
		return -errno;
	err = arguments_write_question(r->files.output_fd, entries, r->count);
	if (!err)
		err = foreign_look(r->files.elf_fd, &st);
	if (err)
		return err;
	r->files.elf_bytes = (uint64_t)st.st_size;
	err = sandbox_start_files(&r->files, &limits, &r->child);
	r->started = !err;
	return err;
}

int arguments_reading_begin(int elf_fd, const struct debug_search *search, const uint64_t *entries,
	size_t count, struct arguments_reading **ret_reading)
{
	struct arguments_reading *r;
	int err;

	if (count > ARGUMENTS_FUNCTIONS_MAX)
		return -E2BIG;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->search = *search;
	r->count = count;
	r->looked_ns = clock_monotonic_ns();
	r->files.may_ask = true;
	r->files.output_fd = memfd_create("fathom-arguments", MFD_CLOEXEC);
	r->files.elf_fd = fcntl(elf_fd, F_DUPFD_CLOEXEC, 0);
	err = arguments_start(r, entries);
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
