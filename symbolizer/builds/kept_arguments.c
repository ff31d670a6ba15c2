/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/builds/kept_arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/sandbox/arguments_wire.h"

enum {
	CHECKSUM_BYTES = sizeof(uint64_t),
	MAX_BYTES = sizeof(struct kept_arguments_header) +
		    ARGUMENTS_FUNCTIONS_MAX * sizeof(uint64_t) + ARGUMENTS_ANSWERS_MAX_BYTES +
		    CHECKSUM_BYTES,
};

bool kept_arguments_is_wanted(const struct arguments_wanted *wanted)
{
	return wanted->cache && wanted->id && !wanted->id->file.claimed &&
	       !file_hash_is_none(&wanted->id->content) && wanted->count <= ARGUMENTS_FUNCTIONS_MAX;
}

static size_t kept_entries_bytes(const struct arguments_wanted *wanted)
{
	return wanted->count * sizeof(wanted->entries[0]);
}

/* The functions are a part of the name, by their hash. */
static void kept_format_suffix(
	const struct arguments_wanted *wanted, char suffix[static CACHE_SUFFIX_BYTES])
{
	uint64_t hash = XXH3_64bits_withSeed(
		wanted->entries, kept_entries_bytes(wanted), ARGUMENTS_VERSION);

	snprintf(suffix, CACHE_SUFFIX_BYTES, ".arguments-%016" PRIx64, hash);
}

static struct kept_arguments_header kept_header(
	const struct arguments_wanted *wanted, size_t answers_bytes)
{
	return (struct kept_arguments_header){
		.magic = KEPT_ARGUMENTS_MAGIC,
		.version = ARGUMENTS_VERSION,
		.count = (uint32_t)wanted->count,
		.file_bytes = sizeof(struct kept_arguments_header) + kept_entries_bytes(wanted) +
			      answers_bytes + CHECKSUM_BYTES,
		.build_id = wanted->id->build_id,
		.content = wanted->id->content,
		.file = wanted->id->file,
	};
}

/* ---- reading -------------------------------------------------------------------------------- */

int kept_arguments_take(const struct arguments_wanted *wanted, const void *bytes, size_t size,
	struct function_arguments *ret_items)
{
	size_t entries = kept_entries_bytes(wanted), head = sizeof(struct kept_arguments_header);
	const uint8_t *at = bytes;
	struct kept_arguments_header expected;
	uint64_t sum;

	memset(ret_items, 0, wanted->count * sizeof(ret_items[0]));
	if (size > MAX_BYTES || size < head + entries + CHECKSUM_BYTES)
		return -EBADMSG;
	expected = kept_header(wanted, size - head - entries - CHECKSUM_BYTES);
	memcpy(&sum, at + size - CHECKSUM_BYTES, sizeof(sum));
	if (memcmp(at, &expected, head) != 0 || memcmp(at + head, wanted->entries, entries) != 0 ||
		sum != XXH3_64bits(at, size - CHECKSUM_BYTES))
		return -EBADMSG;
	return arguments_answer_take(at + head + entries, size - head - entries - CHECKSUM_BYTES,
		wanted->count, ret_items);
}

static int kept_take_file(
	const struct arguments_wanted *wanted, int fd, struct function_arguments *ret_items)
{
	struct stat st;
	void *bytes;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size <= 0 || st.st_size > MAX_BYTES)
		return -EBADMSG;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	err = kept_arguments_take(wanted, bytes, (size_t)st.st_size, ret_items);
	munmap(bytes, (size_t)st.st_size);
	return err;
}

int kept_arguments_read(const struct arguments_wanted *wanted, struct function_arguments *ret_items)
{
	char suffix[CACHE_SUFFIX_BYTES];
	autoclose int fd = -1;
	int err;

	memset(ret_items, 0, wanted->count * sizeof(ret_items[0]));
	if (!kept_arguments_is_wanted(wanted))
		return -ENOENT;
	kept_format_suffix(wanted, suffix);
	err = cache_open_beside(wanted->cache, wanted->id, suffix, &fd);
	if (err)
		return err;
	err = kept_take_file(wanted, fd, ret_items);
	if (err == -EBADMSG)
		cache_remove_beside(wanted->cache, wanted->id, suffix);
	return err;
}

/* ---- writing -------------------------------------------------------------------------------- */

static int kept_put(int fd, XXH3_state_t *sum, const void *bytes, size_t size)
{
	if (!size)
		return 0;
	XXH3_64bits_update(sum, bytes, size);
	return io_write_all(fd, bytes, size);
}

static int kept_put_all(
	int fd, const struct arguments_wanted *wanted, const void *answers, size_t size)
{
	struct kept_arguments_header header = kept_header(wanted, size);
	XXH3_state_t *sum = XXH3_createState();
	uint64_t digest;
	int err;

	if (!sum)
		return -ENOMEM;
	XXH3_64bits_reset(sum);
	err = kept_put(fd, sum, &header, sizeof(header));
	if (!err)
		err = kept_put(fd, sum, wanted->entries, kept_entries_bytes(wanted));
	if (!err)
		err = kept_put(fd, sum, answers, size);
	digest = XXH3_64bits_digest(sum);
	XXH3_freeState(sum);
	return err ? err : io_write_all(fd, &digest, sizeof(digest));
}

int kept_arguments_write(const struct arguments_wanted *wanted, const void *answers, size_t size)
{
	char suffix[CACHE_SUFFIX_BYTES];
	struct cache_entry entry;
	int err;

	if (!kept_arguments_is_wanted(wanted))
		return -EOPNOTSUPP;
	err = cache_begin(wanted->cache, &entry);
	if (err)
		return err;
	err = kept_put_all(entry.fd, wanted, answers, size);
	if (err) {
		cache_abandon(wanted->cache, &entry);
		return err;
	}
	kept_format_suffix(wanted, suffix);
	return cache_commit_beside(wanted->cache, &entry, wanted->id, suffix);
}
