package client_test

import (
	"os"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client/clienttest"
)

func TestAttachByPidfdAndTeardown(t *testing.T) {
	h := clienttest.Start(t, clienttest.Behaviour{Refusals: []api.Refusal{{Destination: "192.0.2.7", Port: 443, Count: 2}}})
	c := dial(t, h)
	p, err := c.Plan(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	child := sleeper(t)
	fd, err := unix.PidfdOpen(child.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	pidfd := os.NewFile(uintptr(fd), "pidfd")
	defer pidfd.Close()
	if err := c.Attach(t.Context(), api.AttachIn{Lease: p.Lease}, pidfd); err != nil {
		t.Fatal(err)
	}
	out, err := c.Teardown(t.Context(), api.TeardownIn{Lease: p.Lease, Secret: p.Secret, Kill: true})
	if err != nil || !reflect.DeepEqual(out.Refusals, h.Refusals) {
		t.Errorf("Teardown: %+v, %v", out, err)
	}
	if state, err := child.Wait(); err != nil || state.Success() {
		t.Errorf("the process that was attached: %v, %v", state, err)
	}
	if _, live := h.Counts(); live != 0 {
		t.Errorf("%d leases are left", live)
	}
}

// sleeper starts a process that lives until it is killed.
func sleeper(t *testing.T) *os.Process {
	t.Helper()
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill(); p.Wait() })
	return p
}
