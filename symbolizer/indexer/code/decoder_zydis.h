/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the two files that decode x86_64. */
#include <Zydis/Zydis.h>

#include "symbolizer/indexer/code/decoder.h"

/*
 * Initializes a decoder; FLOW_ONLY: without operands, which cost a third of the time. -EOPNOTSUPP
 * if the library is not loaded.
 */
int zydis_init(ZydisDecoder *ret_state, bool flow_only);
/* The flow of control of INSTRUCTION, which is loaded at ADDRESS. */
struct code_instruction zydis_flow(const ZydisDecodedInstruction *instruction, uint64_t address);
