package strict_test

import (
	"os"
	"testing"

	"github.com/gominimal/minhost/linux/strict"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == strict.Command {
		os.Exit(strict.Main())
	}
	os.Exit(m.Run())
}
