package main

import (
	"testing"

	"github.com/gominimal/minhost/installer/client/clienttest"
)

// TestRunBesideAnOlderHelper: what a helper does not know yet is one line and the next command; what means the same by its
// absence is not said, so that such a helper is called further. (The one that is played knows nothing behind Plan.)
func TestRunBesideAnOlderHelper(t *testing.T) {
	h := &clienttest.Helper{Path: clienttest.StartOlder(t)}
	for _, c := range []struct {
		args []string
		what string
	}{
		{[]string{"--egress", "deny", "sh", "-c", "echo ran"}, "Plan: boundary is not known"},
		{[]string{"--egress", "deny", "--no-strict", "sh", "-c", "echo ran"}, "Attach: there is no such method"},
	} {
		r := startRun(t, h, c.args...)
		out, status := r.wait()
		want := "minhost: the helper, version test, is older than this program: " + c.what + "\nnext: minhost finalize-install\n"
		if got := r.errOut.String(); status != statusRunFailed || out != "" || got != want {
			t.Errorf("%v: status %d, output %q, standard error %q; want %q", c.args, status, out, got, want)
		}
	}
}
