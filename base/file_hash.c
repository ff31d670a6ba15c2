/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_hash.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/host.h"
#include "base/io.h"

enum { END_BYTES = 4096 };

static const char COMMENT[] = "#htlhash ";
static const char DIGITS[] = "0123456789abcdef";

static struct file_hash hash_ends(const void *head, const void *tail, size_t part, uint64_t size)
{
	const uint64_t length = htobe64(size);
	struct sha256_ctx context;
	struct file_hash hash;

	sha256_init(&context);
	sha256_update(&context, part, head);
	sha256_update(&context, part, tail);
	sha256_update(&context, sizeof(length), (const uint8_t *)&length);
	sha256_digest(&context, sizeof(hash.bytes), hash.bytes);
	return hash;
}

struct file_hash file_hash_of(const void *bytes, size_t size)
{
	const size_t part = MIN(size, (size_t)END_BYTES);

	return hash_ends(bytes, (const uint8_t *)bytes + (size - part), part, size);
}

int file_hash_read(int fd, struct file_hash *ret_hash)
{
	uint8_t head[END_BYTES], tail[END_BYTES];
	struct stat st;
	size_t part;
	ssize_t got;

	if (host_fstat(fd, &st))
		return -errno;
	part = MIN((size_t)st.st_size, sizeof(head));
	got = io_read_at(fd, 0, head, part);
	if (got == (ssize_t)part)
		got = io_read_at(fd, (uint64_t)st.st_size - part, tail, part);
	if (got != (ssize_t)part)
		return got < 0 ? (int)got : -ESTALE;
	*ret_hash = hash_ends(head, tail, part, (uint64_t)st.st_size);
	return 0;
}

void file_hash_format(const struct file_hash *hash, char text[FILE_HASH_TEXT_BYTES])
{
	*text = 0;
	if (file_hash_is_none(hash))
		return;
	for (size_t i = 0; i < FILE_HASH_BYTES; i++) {
		*text++ = DIGITS[hash->bytes[i] >> 4];
		*text++ = DIGITS[hash->bytes[i] & 15];
	}
	*text = 0;
}

void file_hash_comment(uint64_t mapping_id, const char *hex, char comment[FILE_HASH_COMMENT_BYTES])
{
	snprintf(comment, FILE_HASH_COMMENT_BYTES, "%s%" PRIu64 " %s", COMMENT, mapping_id, hex);
}

bool file_hash_parse(const char *comment, uint64_t *ret_mapping_id, const char **ret_hex)
{
	const char *number = comment + strlen(COMMENT);
	uint64_t id;
	char *end;

	if (strncmp(comment, COMMENT, strlen(COMMENT)) || *number < '1' || *number > '9')
		return false;
	errno = 0;
	id = strtoull(number, &end, 10);
	if (errno || *end != ' ' || strspn(end + 1, DIGITS) != FILE_HASH_TEXT_BYTES - 1 ||
		strlen(end + 1) != FILE_HASH_TEXT_BYTES - 1)
		return false;
	*ret_mapping_id = id;
	*ret_hex = end + 1;
	return true;
}
