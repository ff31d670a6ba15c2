/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Exit status of all commands. */

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1, /* stderr says why and what to do */
	EXIT_USAGE = 2, /* bad option, value or settings file */
};
