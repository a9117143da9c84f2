// Package housetest checks rules about the whole repository: imports, docs, sizes and style.
package housetest

import (
	"log"
	"os"
	"testing"
)

// TestMain makes the root of the repository the working directory of all tests.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}
