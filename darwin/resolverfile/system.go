package resolverfile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/host"
)

// Programs of every macOS.
const (
	scutilPath      = "/usr/sbin/scutil"
	dscacheutilPath = "/usr/bin/dscacheutil"
	killallPath     = "/usr/bin/killall"
)

// lookupTime bounds one lookup. mDNSResponder waits 30 s for an answerer that is silent; who waits
// longer than this has no name.
const lookupTime = 8 * time.Second

// System is the resolver of the host.
type System struct{ Run host.Runner }

// Resolvers is what the system will ask whom.
func (s System) Resolvers(ctx context.Context) ([]Resolver, error) {
	r, err := s.Run.Run(ctx, host.Command{Path: scutilPath, Args: []string{"--dns"}, Reads: true})
	return ParseScutil(r.Stdout), err
}

// Lookup asks as programs do (through libinfo and mDNSResponder), not as dig does, which reads other files.
func (s System) Lookup(ctx context.Context, name string) (netip.Addr, error) {
	r, err := s.Run.Run(ctx, host.Command{Path: dscacheutilPath, Args: []string{"-q", "host", "-a", "name", name}, Reads: true, Timeout: lookupTime})
	if err != nil {
		return netip.Addr{}, err
	}
	lines := bufio.NewScanner(bytes.NewReader(r.Stdout))
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ": "); ok && key == "ip_address" {
			return netip.ParseAddr(strings.TrimSpace(value))
		}
	}
	return netip.Addr{}, fmt.Errorf("dscacheutil knows no address of %s", name)
}

// Flush has the system forget what it looked up, and read the folder again: after a change of the file and
// after a name was published. A name looked up before it existed is dead for 77 s otherwise.
func (s System) Flush(ctx context.Context) error {
	_, err1 := s.Run.Run(ctx, host.Command{Path: dscacheutilPath, Args: []string{"-flushcache"}})
	return errors.Join(err1, s.Hangup(ctx))
}

// Hangup is the half of Flush that names of boxes need.
func (s System) Hangup(ctx context.Context) error {
	_, err := s.Run.Run(ctx, host.Command{Path: killallPath, Args: []string{"-HUP", "mDNSResponder"}})
	return err
}
