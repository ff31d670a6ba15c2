/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The page as one HTML text: for an agent, which hands out its profiles later, or with profiles in
 * it, as a file that needs no server. Nothing in it refers to anything outside.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum { PAGE_POLICY_BYTES = 320 };

/* One profile that a page contains. */
struct page_profile {
	const char *name; /* a file's: any bytes */
	const void *bytes; /* pprof, gzip-compressed or not */
	size_t size;
	bool base; /* what the others are compared with */
};

/*
 * Appends the page of an agent to OUT. POLICY is the Content-Security-Policy it must be sent with.
 * Returns -EIO without random bytes, -E2BIG over OUT's limit, or -ENOMEM.
 */
int page_of_agent(struct buffer *out, char policy[PAGE_POLICY_BYTES]);
/*
 * Appends a page that contains COUNT profiles, at least one, and its own policy in a <meta>, which
 * forbids it to load or send anything. POLICY is the same for those who serve it. Errors as above.
 */
int page_of_files(const struct page_profile *profiles, size_t count, struct buffer *out,
	char policy[PAGE_POLICY_BYTES]);
