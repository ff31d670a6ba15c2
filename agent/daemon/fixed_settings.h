/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Settings that cannot change without a restart. */
#include "agent/settings/config.h"

/*
 * Swaps these settings between OLD and NEW, so that NEW has the old values. *RET_NOTE, the caller's
 * to free, names those that were to change; it is not written if there are none.
 */
void fixed_settings_keep(struct config *old, struct config *new, char **ret_note);
