/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox executes the running program again. A test program that is not meant to start a
 * sandbox has no code for the child: it would run all of its cases in it, which start further
 * children. So it ends here if a case does start one, as it may while something is broken.
 */
#include <string.h>
#include <unistd.h>

#include "symbolizer/sandboxed/main.h"
#include "symbolizer/sandboxed/note_child.h"

/* The child's code: NULL unless the test's own main() calls it. */
extern __typeof__(sandboxed_main) sandboxed_main __attribute__((weak));
extern __typeof__(note_child_run) note_child_run __attribute__((weak));

static void __attribute__((constructor)) no_reexecution(int argc, char **argv)
{
	static const char why[] = "a child of the sandbox in a test that has no code for it\n";

	if (argc < 2 || strcmp(argv[0], "fathom") || sandboxed_main || note_child_run)
		return;
	(void)!write(STDERR_FILENO, why, sizeof(why) - 1);
	_exit(1);
}
