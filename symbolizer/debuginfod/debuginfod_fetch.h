/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One question to debuginfod servers: the debug file of a build ID. A short-lived child asks them
 * (`fathom` itself with the hidden command `fetch-debuginfo`; in what order: debuginfod_child.c),
 * so that neither libcurl nor what a server sends is ever in the agent. The child has no
 * capabilities and the limits of debuginfod_child.c; what it brings is as foreign as any file, and
 * is looked at in the sandbox only.
 *
 * elfutils' own libdebuginfod is not used: 0.188 takes a server's error 500 for "there is no such
 * file" and remembers that, follows redirects without end, and has a cache that only it bounds.
 * DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME and DEBUGINFOD_MAXSIZE mean here what they mean there, as
 * far as they are stricter than our own limits; proxies and certificates are as in libcurl's and
 * OpenSSL's environment.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/module_id.h"
#include "symbolizer/sandbox/sandbox.h"

struct debuginfod_question {
	const char *urls; /* of the servers, separated by blanks or commas */
	const struct build_id *id;
	uint64_t limit_bytes; /* of the file */
	int output_fd; /* empty; the file, when the answer is 0 */
};

struct debuginfod_answer {
	/*
	 * 0: there it is. -ENOENT: all servers say that they do not have it. -EFBIG: it is larger
	 * than the limit. -EBADMSG: no ELF file came. Else no server could be asked: -EHOSTUNREACH
	 * (no such host), -ECONNREFUSED, -ETIMEDOUT, -EKEYREJECTED (its certificate), -EACCES (401
	 * or 403), -EREMOTEIO (another status), -ENOSYS (libcurl is not installed), -EIO …
	 */
	int error;
	unsigned int http_status; /* of the last server that sent one; 0 = none */
	bool answered; /* some server gave an answer that makes sense */
};

/* Whether TEXT is a list of http:// and https:// URLs (and elfutils' ima:…, which is passed over).
 */
bool debuginfod_urls_are_valid(const char *text);
/*
 * The next URL in *AT, which moves on, without slashes at its end; NULL at the end. Its length is
 * *RET_LENGTH.
 */
const char *debuginfod_next_url(const char **at, size_t *ret_length);

int debuginfod_fetch_start(const struct debuginfod_question *question, struct sandbox *ret_child);
/* When sandbox_receive() says that the child has ended. */
void debuginfod_fetch_finish(struct sandbox *child, struct debuginfod_answer *ret_answer);
