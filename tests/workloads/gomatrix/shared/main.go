// SPDX-License-Identifier: Apache-2.0

// Shared is package churn as a C library; its host is ../host/host.c.
package main

import "C"

import "gomatrix/churn"

// churn_main returns when the load is over.
//
//export churn_main
func churn_main() { churn.Main() }

// churn_touch is a call into Go that does nothing.
//
//export churn_touch
func churn_touch() {}

func main() {}
