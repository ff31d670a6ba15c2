/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The hidden command that asks debuginfod servers (symbolizer/debuginfod/debuginfod_fetch.h). */

/* Reports and exits; returns an exit status only if it could not begin. */
int debuginfod_child_main(int argc, char **argv);
