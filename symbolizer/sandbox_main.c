/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sandbox.h"

int sandbox_child_main(int argc, char **argv)
{
	return sandbox_child_run(argc, argv, builder_run);
}
