// SPDX-License-Identifier: Apache-2.0

// Gomatrix is package churn as a program of its own: see there.
package main

import "gomatrix/churn"

func main() { churn.Main() }
