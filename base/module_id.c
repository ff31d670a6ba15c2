/* SPDX-License-Identifier: Apache-2.0 */
#include "base/module_id.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

uint64_t module_id_hash(const struct module_id *id)
{
	uint64_t hash = XXH3_64bits(id->build_id.bytes, id->build_id.size);

	hash = XXH3_64bits_withSeed(&id->content, sizeof(id->content), hash);
	return XXH3_64bits_withSeed(&id->file, FILE_ID_COMPARED_BYTES, hash);
}

void build_id_format(const struct build_id *id, char *text, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	size_t used = 0;

	for (size_t i = 0; i < id->size && used + 2 < size; i++) {
		text[used++] = digits[id->bytes[i] >> 4];
		text[used++] = digits[id->bytes[i] & 15];
	}
	if (size)
		text[used] = 0;
}

static bool module_id_has_file(const struct module_id *id)
{
	static const struct file_id none;

	return memcmp(&id->file, &none, sizeof(none)) != 0;
}

void module_id_format_copies(const struct module_id *id, char *text, size_t size)
{
	char content[FILE_HASH_TEXT_BYTES];
	size_t used;

	file_hash_format(&id->content, content);
	if (id->build_id.size && (*content || !module_id_has_file(id)))
		build_id_format(&id->build_id, text, size);
	else
		snprintf(text, size, "i");
	used = strlen(text);
	if (*content)
		snprintf(text + used, size - used, "-%s", content);
}

void module_id_format(const struct module_id *id, char *text, size_t size)
{
	char file[FILE_HASH_TEXT_BYTES];
	struct sha256_ctx context;
	struct file_hash digest;
	size_t used;

	module_id_format_copies(id, text, size);
	if (!module_id_has_file(id))
		return;
	sha256_init(&context);
	sha256_update(&context, id->build_id.size, id->build_id.bytes);
	sha256_update(&context, sizeof(id->file), (const uint8_t *)&id->file);
	sha256_digest(&context, sizeof(digest.bytes), digest.bytes);
	file_hash_format(&digest, file);
	used = strlen(text);
	snprintf(text + used, size - used, "-%s", file);
}
