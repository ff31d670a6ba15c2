/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "symbolizer/debuginfod/debuginfod_fetch.h"
#include "symbolizer/indexer/keep_debug.h"
#include "symbolizer/sandbox/sandbox.h"
#include "symbolizer/sandbox/sandbox_wire.h"

bool sandbox_is_command(const char *name)
{
	return !strcmp(name, SANDBOX_INDEX_COMMAND) || !strcmp(name, SANDBOX_KEEP_DEBUG_COMMAND) ||
	       !strcmp(name, SANDBOX_FETCH_COMMAND);
}

static int keep_debug(const struct builder_files *files, struct builder_result *ret_result)
{
	return keep_debug_run(files->elf_fd, files->output_fd, ret_result);
}

int sandbox_child_main(int argc, char **argv)
{
	bool keeps = argc > 1 && !strcmp(argv[1], SANDBOX_KEEP_DEBUG_COMMAND);

	if (argc > 1 && !strcmp(argv[1], SANDBOX_FETCH_COMMAND))
		return debuginfod_child_main(argc, argv);
	return sandbox_child_run(argc, argv, keeps ? keep_debug : builder_run_files);
}
