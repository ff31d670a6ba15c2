// SPDX-License-Identifier: Apache-2.0

//go:build !cgo
// +build !cgo

package churn

// foreign is C in programs that have it.
func foreign(x uint64) { spin(x) }
