/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Settings that only a start can change, and what a reload does about them. */
#include "agent/settings/config.h"

/*
 * They keep their values: those of OLD move to NEW, and the other way. *RET_NOTE, the caller's to
 * free, names all that were to have another value; untouched where there is none.
 */
void fixed_settings_keep(struct config *old, struct config *new, char **ret_note);
