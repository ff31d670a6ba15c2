/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of other profilers: whatever they hold becomes a profile or is refused, the same each time.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/text_profile.h"
#include "base/cleanup.h"
#include "base/gzip.h"

enum { LIMIT = 64 << 20 };

static int convert(const uint8_t *data, size_t size, struct buffer *out)
{
	const char *why = NULL;
	int err;

	buffer_init(out, LIMIT);
	err = text_profile_read(data, size, out, &why);
	if (err == -EBADMSG && !why)
		abort();
	if (!err && !gzip_is(out->bytes, out->size))
		abort();
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autocall(buffer_deinit) struct buffer once, again;
	bool text = text_profile_is(data, size);

	if (text && memchr(data, 0, size < 512 ? size : 512))
		abort();
	if (convert(data, size, &once) != convert(data, size, &again))
		abort();
	if (once.size != again.size || (once.size && memcmp(once.bytes, again.bytes, once.size)))
		abort();
	return 0;
}
