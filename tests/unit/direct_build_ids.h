/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads the build IDs of the tests' own files in this process. */
#include "base/build_id_reader.h"

extern const struct build_id_reader direct_build_ids;
