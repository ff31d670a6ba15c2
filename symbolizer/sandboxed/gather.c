/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sandboxed/gather.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/indexer/elf/debug_names.h"
#include "symbolizer/sandbox/sandbox_wire.h"

static int receive_answer(struct sandbox_answer *answer, int fds[SANDBOX_OFFER_MAX])
{
	union {
		char bytes[CMSG_SPACE(SANDBOX_OFFER_MAX * sizeof(int))];
		struct cmsghdr header;
	} control;
	struct iovec bytes = { .iov_base = answer, .iov_len = sizeof(*answer) };
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	const struct cmsghdr *c;
	ssize_t got;

	do
		got = recvmsg(SANDBOX_RESULT_FD, &message, 0);
	while (got < 0 && errno == EINTR);
	if (got != sizeof(*answer) || answer->magic != SANDBOX_ANSWER_MAGIC || !answer->count)
		return -ENOENT;
	c = CMSG_FIRSTHDR(&message);
	if (answer->count > SANDBOX_OFFER_MAX || !c || c->cmsg_type != SCM_RIGHTS ||
		c->cmsg_len != CMSG_LEN(answer->count * sizeof(int)))
		return -EBADMSG;
	memcpy(fds, CMSG_DATA(c), answer->count * sizeof(int));
	return 0;
}

static void ask_parent(struct sandbox_question *question, struct debug_files *debug_files)
{
	struct sandbox_answer answer;
	int fds[SANDBOX_OFFER_MAX];

	question->magic = SANDBOX_QUESTION_MAGIC;
	if (io_write_all(SANDBOX_RESULT_FD, question, sizeof(*question)) ||
		receive_answer(&answer, fds))
		return;
	for (uint32_t i = 0; i < answer.count && debug_files->count < DEBUG_FILES_MAX; i++)
		debug_files->items[debug_files->count++] = (struct debug_file){
			.fd = fds[i],
			.role = (enum debug_file_role)answer.items[i].role,
			.crc = answer.items[i].crc,
		};
}

static bool has_supplementary(const struct debug_files *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->items[i].role == DEBUG_FILE_SUPPLEMENTARY)
			return true;
	return false;
}

/* Asks for the alternate (dwz) files of the debug files. */
static void gather_alternates(struct sandbox_question *question, struct debug_files *debug_files)
{
	size_t count = debug_files->count;

	for (size_t i = 0; i < count; i++) {
		const struct debug_file *c = &debug_files->items[i];

		if (c->role != DEBUG_FILE_SEPARATE && c->role != DEBUG_FILE_LINKED)
			continue;
		question->of = (uint32_t)i;
		if (!debug_names_read(c->fd, &question->names) && question->names.alternate[0])
			ask_parent(question, debug_files);
	}
}

void gather_debug_files(struct sandbox_files *files)
{
	autofree struct sandbox_question *question = calloc(1, sizeof(*question));
	/* The parent already has the alternate file, from a server. */
	bool complete = has_supplementary(&files->debug_files);

	if (!question || debug_names_read(files->elf_fd, &question->names))
		return;
	question->of = SANDBOX_OF_MODULE;
	ask_parent(question, &files->debug_files);
	if (!complete)
		gather_alternates(question, &files->debug_files);
}
