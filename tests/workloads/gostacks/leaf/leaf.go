// SPDX-License-Identifier: Apache-2.0

// Package leaf has assembly functions without a frame.
package leaf

// Spin burns time.
func Spin()

// Clobber does so with the frame pointer's register in use for something else.
func Clobber()

// Through calls Spin.
func Through()
