/* SPDX-License-Identifier: Apache-2.0 */
#include "base/module_id.h"

#include <stdio.h>
#include <xxhash.h>

uint64_t module_id_hash(const struct module_id *id)
{
	if (id->build_id.size)
		return XXH3_64bits(id->build_id.bytes, id->build_id.size);
	return XXH3_64bits(&id->file, sizeof(id->file));
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
	XXH128_hash_t hash;

	if (id->build_id.size) {
		build_id_format(&id->build_id, text, size);
		return;
	}
	hash = XXH3_128bits(&id->file, sizeof(id->file));
	snprintf(text, size, "i%016llx%016llx", (unsigned long long)hash.high64,
		(unsigned long long)hash.low64);
}
