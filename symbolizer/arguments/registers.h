/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * This machine's integer registers as fetches number them (bpf/abi/fetch.h). Registers for
 * floating-point numbers have no number: the kernel does not show them to programs at probes.
 */
#include <stddef.h>
#include <stdint.h>

enum { REGISTER_NONE = 0xff };
/*
 * At a function's entry, and at its return instruction: the canonical frame address (DWARF 5, 6.4),
 * and where Go's arguments on the stack begin, both from the stack pointer.
 */
#if defined(__aarch64__)
enum { REGISTER_CFA_FROM_SP = 0, REGISTER_GO_STACK_FROM_SP = 8, REGISTER_GO_FLOATS = 16 };
#else
enum { REGISTER_CFA_FROM_SP = 8, REGISTER_GO_STACK_FROM_SP = 8, REGISTER_GO_FLOATS = 15 };
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
