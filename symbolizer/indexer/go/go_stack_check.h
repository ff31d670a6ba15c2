/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads how a Go function checks its stack. Its first instructions compare sp, less what it needs,
 * with g.stackguard0, and call runtime.morestack if that is not above; then the function begins
 * again at its entry, on a larger stack or after it was preempted. So one call may pass the entry
 * twice. (cmd/internal/obj/x86/obj6.go, arm64/obj7.go: stacksplit.)
 */
#include <stdint.h>

#include "symbolizer/indexer/elf/elf_image.h"

/* struct index_function.stack_check of the function at ENTRY. */
uint32_t go_stack_check(const struct elf_image *image, uint64_t entry);
/* The same for one machine; PROLOGUE is the code from the entry on. */
uint32_t go_stack_check_amd64(struct cursor prologue);
uint32_t go_stack_check_arm64(struct cursor prologue);
