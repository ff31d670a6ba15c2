// SPDX-License-Identifier: Apache-2.0

//go:build go1.23
// +build go1.23

package expand

// Calls returns PC: since Go 1.23 runtime.CallersFrames expands it.
func Calls(pc uintptr) []uintptr { return []uintptr{pc} }
