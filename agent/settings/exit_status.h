/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What every command ends with. */

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1, /* standard error says why and what to do */
	EXIT_USAGE = 2, /* an option, a value or the settings file */
};
