/* SPDX-License-Identifier: Apache-2.0 */
#include "base/module_id.h"

#include <stdio.h>
#include <xxhash.h>

uint64_t module_id_hash(const struct module_id *id)
{
	uint64_t hash = XXH3_64bits(id->build_id.bytes, id->build_id.size);

	hash = XXH3_64bits_withSeed(&id->content, sizeof(id->content), hash);
	return XXH3_64bits_withSeed(&id->file, sizeof(id->file), hash);
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

void module_id_format(const struct module_id *id, char *text, size_t size)
{
	static const struct file_id none;
	char content[FILE_HASH_TEXT_BYTES];
	XXH128_hash_t hash;
	size_t used;

	file_hash_format(&id->content, content);
	if (id->build_id.size && !memcmp(&id->file, &none, sizeof(none))) {
		build_id_format(&id->build_id, text, size);
	} else {
		hash = XXH3_128bits_withSeed(&id->file, sizeof(id->file),
			XXH3_64bits(id->build_id.bytes, id->build_id.size));
		snprintf(text, size, "i%016llx%016llx", (unsigned long long)hash.high64,
			(unsigned long long)hash.low64);
	}
	used = strlen(text);
	if (*content)
		snprintf(text + used, size - used, "-%s", content);
}
