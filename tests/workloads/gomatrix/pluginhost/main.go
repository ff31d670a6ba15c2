// SPDX-License-Identifier: Apache-2.0

// Pluginhost loads the plugin that is its argument, and calls it.
package main

import (
	"log"
	"os"
	"plugin"
)

func main() {
	loaded, err := plugin.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	churn, err := loaded.Lookup("Churn")
	if err != nil {
		log.Fatal(err)
	}
	churn.(func())()
}
