// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !netonly
// +build cgo,!netonly

package main

import "C"

//export called_by_c
func called_by_c(n C.int) C.int { return C.int(inner(int(n))) }
