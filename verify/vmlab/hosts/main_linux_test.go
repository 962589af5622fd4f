// Package hosts installs, uses, breaks, upgrades and removes the real minhost on whole Debian systems.
// It knows minhost by its command line and the machines by what an admin would type; it does not
// look into packages and does not run on another kernel than this machine's.
package hosts

import (
	"os"
	"testing"

	"github.com/gominimal/minhost/verify/vmlab"
)

func TestMain(m *testing.M) { os.Exit(vmlab.Main(m, "bookworm", "trixie")) }
