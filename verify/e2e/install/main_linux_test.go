package install

import (
	"os"
	"testing"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

const (
	// faulty can be killed before its n-th change; newer is the next version.
	faulty = "minhost-faulty"
	newer  = "minhost-newer"
)

func TestMain(m *testing.M) {
	os.Exit(rig.Main(m, []rig.Build{
		{Name: faulty, Tags: "faultpoints", Version: "e2e"},
		{Name: newer, Version: "e2e-newer"},
	}))
}
