/* SPDX-License-Identifier: Apache-2.0 */
/* Debug information is taken from a file of arbitrary bytes; the result must be a debug file. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/indexer/keep_debug.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	autoclose int in = memfd_create("in", MFD_CLOEXEC), out = memfd_create("out", MFD_CLOEXEC),
		      again = memfd_create("again", MFD_CLOEXEC);
	struct sandbox_result result;

	if (in < 0 || out < 0 || again < 0 || io_write_all(in, bytes, size))
		return 0;
	if (!keep_debug_run(in, out, &result) && keep_debug_run(out, again, &result))
		abort();
	return 0;
}
