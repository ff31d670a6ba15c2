/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/builds/function_arguments.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/foreign.h"
#include "base/io.h"
#include "symbolizer/sandbox/arguments_wire.h"
#include "symbolizer/sandbox/sandbox.h"

enum {
	LOOK_MS = 1000,
	MAX_IDLE_LOOKS = 10,
	/* What a plan may take at most, and so all answers. */
	PLAN_MAX_BYTES = sizeof(struct argument_plan) + ABI_FETCHES * sizeof(struct abi_fetch) +
			 ARGUMENTS_MAX * sizeof(struct argument) + ARGUMENT_NAMES_BYTES,
};

static const struct sandbox_limits limits = {
	.task = SANDBOX_READ_ARGUMENTS,
	.memory_bytes = 4UL << 30,
	.cpu_seconds = 60,
	.output_bytes = 64UL << 20,
};

/* What the child is asked, and with what. */
struct arguments_job {
	const struct debug_search *search;
	struct sandbox_files files;
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

static void arguments_offer(struct arguments_job *job, struct sandbox *sandbox)
{
	const struct sandbox_question *question = sandbox_question(sandbox);
	struct debug_files *known = &job->files.debug_files;
	struct debug_files found = { .count = 0 };

	if (question->of == SANDBOX_OF_MODULE)
		(void)debug_search_find(job->search, job->files.elf_fd, &question->names, &found);
	else if (question->of < known->count)
		(void)debug_search_find_alternate(
			job->search, &known->items[question->of], &question->names, &found);
	sandbox_answer(sandbox, &found);
	for (size_t i = 0; i < found.count; i++)
		if (known->count < DEBUG_FILES_MAX)
			known->items[known->count++] = found.items[i];
		else
			close(found.items[i].fd);
}

static int arguments_wait_for(struct arguments_job *job, struct sandbox *sandbox)
{
	struct sandbox_result result;
	enum sandbox_outcome outcome;

	for (;;) {
		struct pollfd waited = { .fd = sandbox->result_fd, .events = POLLIN };

		if (!poll(&waited, 1, LOOK_MS)) {
			if (sandbox_idle_looks(sandbox) < MAX_IDLE_LOOKS)
				continue;
			(void)sandbox_kill(sandbox);
			return -EAGAIN;
		}
		if (sandbox_receive(sandbox) && sandbox_is_gone(sandbox))
			break;
		if (!sandbox->ends && sandbox_question(sandbox))
			arguments_offer(job, sandbox);
	}
	outcome = sandbox_finish(sandbox, &result);
	if (outcome == SANDBOX_OK)
		return 0;
	if (outcome == SANDBOX_LIMIT || outcome == SANDBOX_NO_SPACE)
		return -E2BIG;
	return outcome == SANDBOX_CRASH || !result.error ? -EBADMSG : result.error;
}

static int arguments_ask(struct arguments_job *job)
{
	struct sandbox sandbox;
	struct stat st;
	int err = foreign_look(job->files.elf_fd, &st);

	if (err)
		return err;
	job->files.elf_bytes = (uint64_t)st.st_size;
	err = sandbox_start_files(&job->files, &limits, &sandbox);
	if (!err)
		err = arguments_wait_for(job, &sandbox);
	debug_files_close(&job->files.debug_files);
	return err;
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

int function_arguments_read(int elf_fd, const struct debug_search *search, const uint64_t *entries,
	size_t count, struct function_arguments *ret_items)
{
	autoclose int fd = memfd_create("fathom-arguments", MFD_CLOEXEC);
	struct arguments_job job = {
		.search = search,
		.files = { .elf_fd = elf_fd, .output_fd = fd, .may_ask = true },
		.count = count,
	};
	int err;

	for (size_t i = 0; i < count; i++)
		ret_items[i] = (struct function_arguments){ NULL, NULL };
	if (fd < 0)
		return -errno;
	if (count > ARGUMENTS_FUNCTIONS_MAX)
		return -E2BIG;
	err = arguments_write_question(fd, entries, count);
	if (!err)
		err = arguments_ask(&job);
	if (!err)
		err = arguments_take_all(fd, count, ret_items);
	for (size_t i = 0; err && i < count; i++)
		function_arguments_deinit(&ret_items[i]);
	return err;
}
