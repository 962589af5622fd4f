package main

import (
	"os"
	"strings"
	"testing"
)

// TestMain makes the test binary the program itself when it is called like it: run starts itself
// again for the child that it holds, and signals and terminals need a process of their own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
	}
	os.Exit(m.Run())
}
