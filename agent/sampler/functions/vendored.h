/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which functions of a Go program come from packages that its authors did not write. */
#include <stdbool.h>

#include "symbolizer/index/functions.h"

/*
 * Whether F is a Go function whose source file is below a `vendor` directory or in the module
 * cache, also as `go build -trimpath` writes such paths (`example.com/m@v1.2.3/file.go`). The
 * standard library is not vendored, even where its toolchain is in the module cache.
 */
bool function_is_vendored(const struct index *index, const struct index_function *f);
bool path_is_vendored(const char *path);
