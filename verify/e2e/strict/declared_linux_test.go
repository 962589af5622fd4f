package strict

import (
	"encoding/json"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/e2e/rig"
)

// declared is what ls says of the one box that lives.
func declared(t *testing.T) api.Boundary {
	t.Helper()
	var out struct{ Leases []api.LeaseInfo }
	r := rig.As(t, rig.User, "ls", "--json")
	if err := json.Unmarshal([]byte(r.Stdout), &out); err != nil || len(out.Leases) != 1 {
		t.Fatalf("%v: %v", err, r)
	}
	return out.Leases[0].Boundary
}

// Every listing says of a box what its runner does, and not more: one program of it that is not strict makes it
// cooperative, and so does a host where it cannot be had.
func TestDeclared(t *testing.T) {
	env := place(t)
	user := rig.Cmd{UID: rig.User, Env: env}
	end := func(p *rig.Process) {
		t.Helper()
		user.Run(t, "stop", "web").Want(t, 0)
		p.Wait()
	}
	for _, c := range []struct {
		flags []string
		want  api.Boundary
	}{
		{nil, api.BoundaryCooperative},
		{[]string{"--egress", "deny", "--no-strict"}, api.BoundaryCooperative},
		{[]string{"--egress", "deny"}, api.BoundaryStrict},
		{[]string{"--strict"}, api.BoundaryStrict},
	} {
		p := sleeper(t, env, append(c.flags, "--name", "web")...)
		if got := declared(t); got != c.want {
			t.Errorf("%v: %s, want %s", c.flags, got, c.want)
		}
		end(p)
	}

	box := sleeper(t, env, "--name", "web", "--egress", "deny")
	sleeper(t, env, "--join", "web")
	if got := declared(t); got != api.BoundaryStrict {
		t.Errorf("with another strict program: %s", got)
	}
	sleeper(t, env, "--join", "web", "--no-strict")
	if got := declared(t); got != api.BoundaryCooperative {
		t.Errorf("with one that is not strict: %s", got)
	}
	end(box)

	// Root of a user namespace that allows no further one, and may mount nothing.
	line := "echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-sys_admin " + rig.Binary(rig.Standard) +
		" run --name web --egress deny -- /bin/sh -c 'echo up; exec sleep 300'"
	bare := rig.Cmd{UID: rig.User, Env: env, Path: "/usr/bin/unshare"}.Start(t, "-Ur", "/bin/sh", "-c", line)
	bare.Await("up")
	if got := declared(t); got != api.BoundaryCooperative {
		t.Errorf("without namespaces: %s", got)
	}
	end(bare)
}
