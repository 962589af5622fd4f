package proc

import "testing"

func TestParseUIDs(t *testing.T) {
	got, err := parseUIDs([]byte("Name:\tx\nUid:\t1000\t0\t1000\t4294967295\nGid:\t0\t0\t0\t0\n"))
	if want := (UIDs{1000, 0, 1000, 4294967295}); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	if got.All(1000) || !(UIDs{7, 7, 7, 7}).All(7) {
		t.Error("All")
	}
	for _, bad := range []string{"", "Uid:\t1\t2\t3\n", "Uid:\t1\t2\t3\tx\n", "Uid:\t1\t2\t3\t-1\n"} {
		if u, err := parseUIDs([]byte(bad)); err == nil {
			t.Errorf("%q: %v", bad, u)
		}
	}
}

// A command name is the process's own choice.
func TestParseStart(t *testing.T) {
	tail := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n"
	for _, comm := range []string{"(sh)", "(a b)", "(a) S 1 2 3 (b)", "(\n)"} {
		if got, err := parseStart([]byte("12 " + comm + tail)); err != nil || got != 4711 {
			t.Errorf("%q: %d, %v", comm, got, err)
		}
	}
	for _, bad := range []string{"", "12 (sh) S 1\n", "12 sh"} {
		if got, err := parseStart([]byte(bad)); err == nil {
			t.Errorf("%q: %d", bad, got)
		}
	}
}

func TestLinkKind(t *testing.T) {
	for link, want := range map[string]Kind{
		"socket:[4711]": Socket, "anon_inode:[io_uring]": IOUring, "anon_inode:[eventpoll]": Other,
		"pipe:[1]": Other, "/tmp/socket:[1]": Other, "/tmp/io_uring": Other,
	} {
		if got := linkKind(link); got != want {
			t.Errorf("%s: %v, want %v", link, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		h    Holding
		want bool
		text string
	}{
		{Holding{FD: 3, Kind: Socket, Domain: 1}, false, "descriptor 3: socket (unix)"},
		{Holding{FD: 3, Kind: Socket, Domain: 16}, false, "descriptor 3: socket (netlink)"},
		{Holding{FD: 3, Kind: Socket, Domain: 2}, true, "descriptor 3: socket (IPv4)"},
		{Holding{FD: 3, Kind: Socket, Domain: 10}, true, "descriptor 3: socket (IPv6)"},
		{Holding{FD: 3, Kind: Socket, Domain: 40}, true, "descriptor 3: socket (vsock)"},
		{Holding{FD: 3, Kind: Socket, Domain: 99}, true, "descriptor 3: socket (family 99)"},
		{Holding{FD: 3, Kind: Socket, Domain: -1}, true, "descriptor 3: socket (unknown family)"},
		{Holding{FD: 4, Kind: IOUring, Domain: -1}, true, "descriptor 4: io_uring"},
	} {
		if c.h.Refused() != c.want || c.h.String() != c.text {
			t.Errorf("%v: %v, %q", c.h, c.h.Refused(), c.h.String())
		}
		if got := len(Holdings{c.h}.Refused()); (got == 1) != c.want {
			t.Errorf("%v: %d of 1 refused", c.h, got)
		}
	}
}
