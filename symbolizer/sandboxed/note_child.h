/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The child of symbolizer/sandbox/note_reader.h: closes itself in, then reads the build ID of one
 * file after the other until its parent closes the socket.
 */
#include "base/module_id.h"

typedef int note_task(int fd, struct build_id *ret_id);

/* Runs the hidden command. Returns an exit status only if it could not begin. */
int note_child_main(int argc, char **argv);
/* Like note_child_main(), with TASK instead of the reader of notes. */
int note_child_run(int argc, char **argv, note_task *task);
