/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failure.h"

#include <errno.h>

bool failure_is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

bool failure_is_transient(int err)
{
	if (failure_is_shortage(err))
		return true;
	switch (-err) {
	case ENOBUFS:
	case EAGAIN:
	case EINTR:
	case ENOSPC:
	case EDQUOT:
	case EIO:
		return true;
	default:
		return false;
	}
}

uint64_t failure_pause_ns(unsigned int tries, uint64_t first_ns, uint64_t longest_ns)
{
	uint64_t pause_ns = first_ns;

	for (unsigned int i = 1; i < tries && pause_ns < longest_ns; i++)
		pause_ns = pause_ns > longest_ns / 4 ? longest_ns : 4 * pause_ns;
	return pause_ns < longest_ns ? pause_ns : longest_ns;
}
