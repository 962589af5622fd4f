// Package hosts installs, uses, breaks, upgrades and removes the real minhost on whole Debian systems.
package hosts

import (
	"os"
	"testing"

	"github.com/gominimal/minhost/verify/vmlab"
)

func TestMain(m *testing.M) { os.Exit(vmlab.Main(m, "bookworm", "trixie")) }
