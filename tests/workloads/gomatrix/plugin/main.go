// SPDX-License-Identifier: Apache-2.0

// Plugin is package churn as a plugin of ../pluginhost.
package main

import "gomatrix/churn"

func Churn() { churn.Main() }

func main() {}
