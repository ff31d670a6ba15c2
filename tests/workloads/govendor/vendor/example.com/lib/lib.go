// SPDX-License-Identifier: Apache-2.0

// Package lib is somebody else's.
package lib

//go:noinline
func Sum(n int) int {
	s := 0
	for i := 0; i < n; i++ {
		s += i
	}
	return s
}
