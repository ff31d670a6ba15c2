/* SPDX-License-Identifier: Apache-2.0 */
/* ELF notes with any content. */
#include <stdint.h>
#include <stdlib.h>

#include "base/build_id_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct build_id id;

	if (!build_id_from_notes(data, size, &id) && (!id.size || id.size > BUILD_ID_MAX_BYTES))
		abort();
	return 0;
}
