/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Functions of aarch64 that have no frame, by their code: for files without tables. */
#include <stdbool.h>

#include "base/cursor.h"

/*
 * Whether CODE, a whole function, leaves stack pointer, frame pointer and link register alone, so
 * that its caller can be told from any of its instructions.
 */
bool leaf_arm64(struct cursor code);
