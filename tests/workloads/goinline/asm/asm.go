// SPDX-License-Identifier: Apache-2.0

// Package asm has a function in assembly, with and without a frame.
package asm

// Sum calls f once for each of n, from assembly.
func Sum(f func(int) int, n int) int

// Twice needs no frame.
func Twice(n int) int

func step()
