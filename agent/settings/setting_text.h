/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The texts that users write as values: numbers, times, sizes, flags. Knows no setting by name. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/settings/config.h"

/*
 * Reads TEXT as a value of TYPE: a flag as 0 or 1, a time in ns, a size in bytes. A text or list
 * sets nothing. Returns false if TEXT is no such value.
 */
bool setting_text_read(enum setting_type type, const char *text, uint64_t *ret_number);
/* Reads `7` or `4-7`. */
bool setting_text_span(const char *text, uint32_t *ret_first, uint32_t *ret_last);
