/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sandbox/debug_files.h"

#include <unistd.h>

void debug_files_close(struct debug_files *c)
{
	while (c->count)
		close(c->items[--c->count].fd);
}
