package boxes

import (
	"os"
	"runtime"
	"testing"

	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) {
	// The main thread stays this goroutine's: threads of others change their user and namespace and
	// end with their goroutines, which the main thread cannot.
	runtime.LockOSThread()
	os.Exit(rig.Main(m, []rig.Build{{Name: faultyProgram, Tags: "faultpoints", Version: "e2e"}},
		netlab.Children{"agent": agentMain, "prober": proberMain, "connector": connectorMain}))
}
