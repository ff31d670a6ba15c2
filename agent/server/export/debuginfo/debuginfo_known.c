/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/export/debuginfo/debuginfo_known.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/io.h"

enum {
	KNOWN_LIMIT = 1 << 14,
	LINE_BYTES = 16 + 1 + 12 + 1, /* hex, blank, decimal, newline */
	FILE_LIMIT_BYTES = 2 * KNOWN_LIMIT * LINE_BYTES,
	LINES_LIMIT = KNOWN_LIMIT, /* lines appended before the file is rewritten */
	LONGEST_S = 2 * 24 * 3600, /* longer times come from a clock that was wrong */
};

static int format_line(char line[LINE_BYTES + 1], uint64_t key, int64_t until_s)
{
	int length =
		snprintf(line, LINE_BYTES + 1, "%016" PRIx64 " %012" PRId64 "\n", key, until_s);

	return length == LINE_BYTES ? 0 : -EINVAL;
}

static bool parse_line(const char *line, uint64_t *ret_key, int64_t *ret_until_s)
{
	char *end;

	if (strspn(line, "0123456789abcdef") != 16 || line[16] != ' ' ||
		strspn(line + 17, "0123456789") != 12 || line[LINE_BYTES - 1] != '\n')
		return false;
	*ret_key = strtoull(line, &end, 16);
	*ret_until_s = strtoll(line + 17, &end, 10);
	return true;
}

static bool counts(int64_t until_s, int64_t now_s)
{
	return until_s > now_s && until_s - now_s <= LONGEST_S;
}

/* Stops at the first malformed line, such as one cut short. */
static void debuginfo_known_parse(struct debuginfo_known *k, struct cursor text, int64_t now_s)
{
	char line[LINE_BYTES + 1] = "";
	uint64_t key;
	int64_t until_s;

	while (cursor_left(&text) >= LINE_BYTES) {
		memcpy(line, cursor_bytes(&text, LINE_BYTES), LINE_BYTES);
		if (!parse_line(line, &key, &until_s))
			return;
		if (!counts(until_s, now_s))
			map_remove(&k->until, key);
		else if (map_set(&k->until, key, (uint64_t)until_s))
			return;
	}
}

static int rewrite(struct debuginfo_known *k)
{
	autocall(buffer_deinit) struct buffer text;
	char line[LINE_BYTES + 1];
	uint64_t key, until_s;
	size_t i = 0;

	buffer_init(&text, FILE_LIMIT_BYTES);
	while (map_next(&k->until, &i, &key, &until_s)) {
		if (!format_line(line, key, (int64_t)until_s))
			buffer_append(&text, line, LINE_BYTES);
	}
	k->lines = 0;
	return text.error ? text.error
			  : io_replace_file(AT_FDCWD, k->path, text.bytes, text.size, 0600);
}

int debuginfo_known_init(struct debuginfo_known *k, const char *directory, int64_t now_s)
{
	autocall(buffer_deinit) struct buffer text;

	buffer_init(&text, FILE_LIMIT_BYTES);
	*k = (struct debuginfo_known){ 0 };
	map_init(&k->until, KNOWN_LIMIT);
	if (asprintf(&k->path, "%s/debuginfo-known", directory) < 0) {
		k->path = NULL;
		return -ENOMEM;
	}
	if (io_read_file(AT_FDCWD, k->path, &text))
		return 0;
	debuginfo_known_parse(k, cursor_over(text.bytes, text.size), now_s);
	/* Also if the file ends in an incomplete line. */
	if (text.size != k->until.count * LINE_BYTES)
		(void)rewrite(k);
	return 0;
}

void debuginfo_known_deinit(struct debuginfo_known *k)
{
	map_deinit(&k->until);
	free(k->path);
}

bool debuginfo_known_has(const struct debuginfo_known *k, uint64_t key, int64_t now_s)
{
	uint64_t until_s;

	return map_get(&k->until, key, &until_s) && counts((int64_t)until_s, now_s);
}

static void forget_old(struct debuginfo_known *k, int64_t now_s)
{
	uint64_t keys[64], key, until_s;
	size_t count, i;

	do {
		count = i = 0;
		while (count < ARRAY_SIZE(keys) && map_next(&k->until, &i, &key, &until_s)) {
			if (!counts((int64_t)until_s, now_s))
				keys[count++] = key;
		}
		for (size_t n = 0; n < count; n++)
			map_remove(&k->until, keys[n]);
	} while (count == ARRAY_SIZE(keys));
}

int debuginfo_known_add(struct debuginfo_known *k, uint64_t key, int64_t until_s, int64_t now_s)
{
	int err = map_set(&k->until, key, (uint64_t)until_s);

	if (err != -E2BIG)
		return err;
	forget_old(k, now_s);
	return map_set(&k->until, key, (uint64_t)until_s);
}

int debuginfo_known_write(struct debuginfo_known *k, uint64_t key, int64_t until_s)
{
	autoclose int fd = -1;
	char line[LINE_BYTES + 1];
	int err;

	if (k->lines >= LINES_LIMIT)
		return rewrite(k);
	err = format_line(line, key, until_s);
	if (err)
		return err;
	fd = open(k->path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	k->lines++;
	return io_write_all(fd, line, LINE_BYTES);
}
