package answerer

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// TestWatchLookups: a confined box's lookups are seen by its owner, the host's by root alone, and the
// answerer tells them only while somebody watches.
func TestWatchLookups(t *testing.T) {
	rig.Wipe(t)
	rig.Install(t)
	t.Cleanup(func() { rig.Must(t, "finalize-install", "--undo", "--yes", "--force") })
	const file = rig.RunDir + "/lookups"
	missing := func() bool {
		_, err := os.Stat(file)
		return os.IsNotExist(err)
	}
	if !missing() {
		t.Fatal("lookups are told although nobody watches")
	}
	owner := rig.Cmd{UID: rig.User}.Start(t, "watch", "--dns")
	root := rig.Cmd{}.Start(t, "watch", "--dns")
	// The box asks again and again: the watchers may come later.
	box := rig.Cmd{UID: rig.User}.Start(t, "run", "--name", "web", "--egress", "deny", "--", "/usr/bin/env", "sh", "-c",
		"while :; do dig +tries=1 +time=2 @127.0.0.1 example.com AAAA; dig +tcp +tries=1 +time=2 @127.0.0.1 example.net; sleep 0.2; done")
	defer box.Signal(15)
	defer func() {
		if t.Failed() {
			t.Logf("owner: %s%s\nroot: %s%s\nbox: %s%s", owner.Stdout(), owner.Stderr(), root.Stdout(), root.Stderr(), box.Stdout(), box.Stderr())
		}
	}()
	host := func() {
		if ask(t, "127.0.0.1:15353", "of-the-host").Rcode != dns.RcodeNameError {
			t.Fatal("the zone is not served")
		}
	}
	for _, w := range []struct {
		name string
		*rig.Process
	}{{"owner", owner}, {"root", root}} {
		for _, want := range []string{"  lookup    web  AAAA example.com: outside (udp, ", "  lookup    web  A example.net: outside (tcp, "} {
			rig.Eventually(t, 20*time.Second, w.name+" sees "+want, func() bool { return strings.Contains(w.Stdout(), want) })
		}
	}
	rig.Eventually(t, 20*time.Second, "root sees the host's", func() bool {
		host()
		return strings.Contains(root.Stdout(), "  lookup    -  A of-the-host.min.internal: nxdomain (udp, 127.0.0.1:")
	})
	if strings.Contains(owner.Stdout(), "of-the-host") {
		t.Error("the owner of a box sees the host's lookups")
	}
	owner.Signal(2)
	root.Signal(2)
	rig.Eventually(t, 20*time.Second, "nobody is told any more", missing)
}
