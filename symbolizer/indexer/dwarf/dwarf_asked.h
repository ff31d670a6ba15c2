/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which units are worth reading if only some addresses need an answer (writer_ask()). */
#include "symbolizer/indexer/dwarf/dwarf_file.h"

/*
 * *RET_ASKED, allocated, has for each unit of D whether it may have code at one of the addresses
 * that W is asked for. Units that .debug_aranges does not list are opened; all are if it lists not
 * all of the code that is asked for. Returns -ENOMEM.
 */
int dwarf_asked_units(struct dwarf *d, struct index_writer *w, bool **ret_asked);
