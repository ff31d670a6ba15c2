/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/latency/site_path.h"

#include <assert.h>
#include <stdio.h>

void site_path_write(const char *plain, uint64_t cookie, char *ret_path)
{
	char characters[ABI_SITE_PATH_CHARACTERS + 1];

	assert(!(cookie >> ABI_SITE_PATH_BITS));
	for (int bit = 0; bit < ABI_SITE_PATH_BITS; bit++) {
		characters[2 * bit] = '/';
		characters[2 * bit + 1] = cookie >> bit & 1 ? '.' : '/';
	}
	characters[ABI_SITE_PATH_CHARACTERS] = '\0';
	snprintf(ret_path, SITE_PATH_PLAIN_BYTES + ABI_SITE_PATH_CHARACTERS, "%.*s%s%s",
		(int)ABI_SITE_PATH_PREFIX, plain, characters, plain + ABI_SITE_PATH_PREFIX);
}
