// SPDX-License-Identifier: Apache-2.0

//go:build !go1.23
// +build !go1.23

// Package expand has the runtime's own list of the inlined calls at an address.
package expand

import _ "unsafe" // for go:linkname

//go:linkname expandFinalInlineFrame runtime/pprof.runtime_expandFinalInlineFrame
func expandFinalInlineFrame(stack []uintptr) []uintptr

// Calls returns what runtime.Callers returns for a stack that ends with the return address PC.
func Calls(pc uintptr) []uintptr { return expandFinalInlineFrame([]uintptr{pc}) }
