/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One question to debuginfod servers: the debug file of a build ID. A short-lived child asks them
 * (`fathom` itself with the hidden command `fetch-debuginfo`; debuginfod_child.c has the order of
 * servers), so that neither libcurl nor a server's data is ever in the agent. The child has no
 * capabilities and the limits of debuginfod_child.c. The file it fetches is untrusted and only read
 * in the sandbox.
 *
 * elfutils' own libdebuginfod is not used: 0.188 treats a server's error 500 as "no such file" and
 * caches that, follows redirects without a limit, and has a cache that only it bounds.
 * DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME and DEBUGINFOD_MAXSIZE have their usual meaning where they
 * are stricter than our own limits; proxies and certificates come from libcurl's and OpenSSL's
 * environment.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/module_id.h"
#include "symbolizer/sandbox/sandbox.h"

struct debuginfod_question {
	const char *urls; /* of the servers, separated by blanks or commas */
	const struct build_id *id;
	uint64_t limit_bytes; /* of the file */
	int output_fd; /* empty; holds the file if the answer's error is 0 */
};

struct debuginfod_answer {
	/*
	 * 0: the file has been fetched. -ENOENT: no server has it. -EFBIG: it is larger than the
	 * limit. -EBADMSG: the data is not an ELF file. Else no server could be asked:
	 * -EHOSTUNREACH (no such host), -ECONNREFUSED, -ETIMEDOUT, -EKEYREJECTED (its certificate),
	 * -EACCES (401 or 403), -EREMOTEIO (another status), -ENOSYS (libcurl is not installed),
	 * -EIO …
	 */
	int error;
	unsigned int http_status; /* of the last server that sent one; 0 = none */
	bool answered; /* some server gave a valid answer */
};

/* Returns true if TEXT is a list of http:// and https:// URLs; elfutils' ima:… is skipped. */
bool debuginfod_urls_are_valid(const char *text);
/*
 * Returns the next URL in *AT, without trailing slashes, and advances *AT; NULL at the end.
 * *RET_LENGTH is the URL's length.
 */
const char *debuginfod_next_url(const char **at, size_t *ret_length);

int debuginfod_fetch_start(const struct debuginfod_question *question, struct sandbox *ret_child);
/* To be called when sandbox_receive() returns true: the child has ended. */
void debuginfod_fetch_finish(struct sandbox *child, struct debuginfod_answer *ret_answer);
