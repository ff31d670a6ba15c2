/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sandbox/companions.h"

#include <unistd.h>

void companions_close(struct companions *c)
{
	while (c->count)
		close(c->items[--c->count].fd);
}
