/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page (FATHOM_PAGE), assembled and compressed by the Makefile from agent/server/serve/page/.
 * Three marks in it are replaced here: the nonce of its scripts and styles, and for a page that
 * contains profiles its policy and them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "agent/server/serve/page_file.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/utf8.h"

enum {
	NONCE_BYTES = 16,
	NONCE_TEXT_BYTES = 2 * NONCE_BYTES + 1,
	PAGE_BYTES = 4 << 20,
	NAME_BYTES = 256,
};

static const char NONCE_MARK[] = "{{nonce}}";
static const char POLICY_MARK[] = "<!-- policy -->";
static const char PROFILES_MARK[] = "<!-- profiles -->";

__asm__(".section .rodata\n"
	"fathom_page_start:\n"
	".incbin \"" FATHOM_PAGE "\"\n"
	"fathom_page_end:\n"
	".previous\n");

/* Hidden for the same reason as the BPF objects: bpf/skeleton.awk. */
extern const char fathom_page_start[] __attribute__((visibility("hidden")));
extern const char fathom_page_end[] __attribute__((visibility("hidden")));

/* What replaces the marks. */
struct page_parts {
	char nonce[NONCE_TEXT_BYTES];
	const char *policy; /* NULL = none: it is in the response's header */
	const struct page_profile *profiles;
	size_t count;
};

static int page_make_nonce(char *text)
{
	unsigned char bytes[NONCE_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* ---- the parts ------------------------------------------------------------------------------ */

/* NAME, without its directories, as the value of an attribute. */
static void page_write_name(struct buffer *out, const char *name)
{
	const char *slash = strrchr(name, '/');
	char text[NAME_BYTES];

	snprintf(text, sizeof(text), "%s", slash ? slash + 1 : name);
	utf8_clean(text, strlen(text));
	for (const char *c = text; *c; c++) {
		if (strchr("&<>\"'", *c))
			buffer_printf(out, "&#%d;", *c);
		else
			buffer_append(out, c, 1);
	}
}

/* A block of data: browsers run no script of this type. base64 has no character of HTML's. */
static void page_write_profile(struct buffer *out, const struct page_profile *profile)
{
	buffer_printf(out,
		"<script type=\"application/x-fathom-profile\" data-side=\"%s\" data-name=\"",
		profile->base ? "base" : "now");
	page_write_name(out, profile->name);
	buffer_string(out, "\">");
	base64_append(out, profile->bytes, profile->size);
	buffer_string(out, "</script>\n");
}

static void page_write_parts(struct buffer *out, const char *mark, const struct page_parts *parts)
{
	if (mark == NONCE_MARK)
		buffer_string(out, parts->nonce);
	else if (mark == POLICY_MARK && parts->policy)
		buffer_printf(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">",
			parts->policy);
	else if (mark == PROFILES_MARK)
		for (size_t i = 0; i < parts->count; i++)
			page_write_profile(out, &parts->profiles[i]);
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* The first of the marks at or after AT; NULL if there is none. */
static const char *page_next_mark(const char *at, const char *end, const char **ret_mark)
{
	static const char *const marks[] = { NONCE_MARK, POLICY_MARK, PROFILES_MARK };
	const char *first = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		const char *found = memmem(at, (size_t)(end - at), marks[i], strlen(marks[i]));

		if (found && (!first || found < first)) {
			first = found;
			*ret_mark = marks[i];
		}
	}
	return first;
}

static int page_write(struct buffer *out, const struct page_parts *parts)
{
	autocall(buffer_deinit) struct buffer page;
	const char *at, *end, *found, *mark;
	int err;

	buffer_init(&page, PAGE_BYTES);
	err = gzip_inflate(fathom_page_start, (size_t)(fathom_page_end - fathom_page_start), &page);
	if (err)
		return err;
	at = (const char *)page.bytes;
	end = at + page.size;
	while ((found = page_next_mark(at, end, &mark)) != NULL) {
		buffer_append(out, at, (size_t)(found - at));
		page_write_parts(out, mark, parts);
		at = found + strlen(mark);
	}
	buffer_append(out, at, (size_t)(end - at));
	return out->error;
}

int page_of_agent(struct buffer *out, char policy[PAGE_POLICY_BYTES])
{
	struct page_parts parts = { 0 };
	int err = page_make_nonce(parts.nonce);

	if (err)
		return err;
	snprintf(policy, PAGE_POLICY_BYTES,
		"default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; "
		"connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'",
		parts.nonce, parts.nonce);
	return page_write(out, &parts);
}

int page_of_files(const struct page_profile *profiles, size_t count, struct buffer *out,
	char policy[PAGE_POLICY_BYTES])
{
	struct page_parts parts = { .policy = policy, .profiles = profiles, .count = count };
	int err = page_make_nonce(parts.nonce);

	if (err)
		return err;
	snprintf(policy, PAGE_POLICY_BYTES,
		"default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; img-src data:; "
		"base-uri 'none'; form-action 'none'",
		parts.nonce, parts.nonce);
	return page_write(out, &parts);
}
