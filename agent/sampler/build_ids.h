/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads build IDs of mapped files for the process table and for `fathom symbolize`. */
#include "base/build_id_reader.h"

struct build_ids {
	struct build_id_reader reader;
};

void build_ids_init(struct build_ids *ids);
