/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Recognizes aarch64 functions without a frame by their code, for files without tables. */
#include <stdbool.h>

#include "base/cursor.h"

/*
 * Whether CODE, a whole function, does not change stack pointer, frame pointer and link register,
 * so that its caller can be found from any of its instructions.
 */
bool leaf_arm64(struct cursor code);
