package main

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTableOwner: a table that a helper made belongs to the socket that it had kept (an owner is given once), so that is
// taken before the service manager's own, in whatever order they come; and nothing else is taken.
func TestTableOwner(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
		lasts bool
	}{
		{[]string{"helper"}, "", false},
		{[]string{"helper", "table"}, "table", true},
		{[]string{"table", "helper", "minhost-table"}, "minhost-table", false},
		{[]string{"minhost-table", "table"}, "minhost-table", false},
	} {
		var o tableOwner
		for _, name := range c.names {
			fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			f := os.NewFile(uintptr(fd), name)
			if o.take(f) == (name == "helper") {
				t.Errorf("%q of %q", name, c.names)
			}
			if name == "helper" {
				f.Close()
			}
		}
		o.close()
		got := ""
		if o.socket != nil {
			got = o.socket.Name()
		}
		if got != c.want || o.lasts != c.lasts {
			t.Errorf("%q: %q, lasts %t", c.names, got, o.lasts)
		}
	}
}
