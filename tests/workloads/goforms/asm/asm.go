// SPDX-License-Identifier: Apache-2.0

// Package asm has a function in assembly with two ways out.
package asm

// Loops adds 3 to 0 for each of n.
func Loops(n int) int
