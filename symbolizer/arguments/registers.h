/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * This machine's integer registers as fetches number them (bpf/abi/fetch.h). Registers for
 * floating-point numbers have no number: the kernel does not show them to programs at probes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REGISTER_NONE = 0xff };
/*
 * At a function's entry, and at its return instruction: the canonical frame address (DWARF 5, 6.4),
 * and where Go's arguments on the stack begin, both from the stack pointer. How many registers pass
 * floating-point numbers. Whether C's structs go by the classes of the System V ABI; elsewhere it
 * is not known how they go. Where the CFA is from a frame pointer; on arm64 that differs.
 */
#if defined(__aarch64__)
enum { REGISTER_CFA_FROM_SP = 0, REGISTER_GO_STACK_FROM_SP = 8, REGISTER_GO_FLOATS = 16 };
enum { REGISTER_C_FLOATS = 8, REGISTER_C_BY_CLASSES = false };
enum { REGISTER_DWARF_FRAME_POINTER = 29, REGISTER_CFA_FROM_FRAME_POINTER = INT32_MAX };
#else
enum { REGISTER_CFA_FROM_SP = 8, REGISTER_GO_STACK_FROM_SP = 8, REGISTER_GO_FLOATS = 15 };
enum { REGISTER_C_FLOATS = 8, REGISTER_C_BY_CLASSES = true };
enum { REGISTER_DWARF_FRAME_POINTER = 6, REGISTER_CFA_FROM_FRAME_POINTER = 16 };
#endif

/* NAME is one of the assembler's (rax, eax, ax; x0). Returns REGISTER_NONE if there is none. */
uint8_t register_by_name(const char *name, size_t size);
/* NUMBER is DWARF's (System V ABI, AMD64 3.6.2; DWARF for the Arm 64-bit Architecture 4.1). */
uint8_t register_by_dwarf(uint64_t number);
/* The registers in which Go passes integers, in their order; REGISTER_NONE after the last one. */
uint8_t register_of_go(size_t number);
/* Likewise of C, and those in which C returns one or two integers. */
uint8_t register_of_c(size_t number);
uint8_t register_of_c_result(size_t number);
/* The names that are understood, for messages. */
const char *register_names(void);
