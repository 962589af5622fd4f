package loopback

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/gominimal/minhost/installer/host"
)

// ifconfigPath is where every macOS has it.
const ifconfigPath = "/sbin/ifconfig"

// Ifconfig is the edge to lo0 by the program of that name.
type Ifconfig struct{ Run host.Runner }

var _ Interfaces = Ifconfig{}

// List implements Interfaces.
func (i Ifconfig) List(ctx context.Context) ([]Alias, error) {
	r, err := i.Run.Run(ctx, host.Command{Path: ifconfigPath, Args: []string{Interface}, Reads: true})
	if err != nil {
		return nil, err
	}
	return ParseIfconfig(r.Stdout)
}

// Set implements Interfaces. The mask is written out: "alias 127.0.64.0/24" would be one address with
// the mask of 256 (seen in the field), and no mask at all means that of 127.0.0.0/8.
func (i Ifconfig) Set(ctx context.Context, a Alias) error {
	m := a.Mask
	mask := fmt.Sprintf("%d.%d.%d.%d", m>>24, m>>16&0xff, m>>8&0xff, m&0xff)
	return i.change(ctx, "alias", a.Addr.String(), "netmask", mask)
}

// Remove implements Interfaces.
func (i Ifconfig) Remove(ctx context.Context, a netip.Addr) error {
	return i.change(ctx, "-alias", a.String())
}

func (i Ifconfig) change(ctx context.Context, args ...string) error {
	_, err := i.Run.Run(ctx, host.Command{Path: ifconfigPath, Args: append([]string{Interface}, args...)})
	return err
}

// ParseIfconfig reads the IPv4 addresses of "ifconfig lo0": lines like
// "	inet 127.0.64.1 netmask 0xffffffff", which may go on (a blank, "alias", a broadcast address).
func ParseIfconfig(text []byte) ([]Alias, error) {
	var all []Alias
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || f[0] != "inet" {
			continue
		}
		a, err := parseInet(f)
		if err != nil {
			return nil, fmt.Errorf("ifconfig %s: line %q: %w", Interface, lines.Text(), err)
		}
		all = append(all, a)
	}
	return all, lines.Err()
}

func parseInet(f []string) (Alias, error) {
	if len(f) < 4 {
		return Alias{}, fmt.Errorf("%d words", len(f))
	}
	addr, err := netip.ParseAddr(f[1])
	if err != nil {
		return Alias{}, err
	}
	for i := 2; i+1 < len(f); i++ {
		if f[i] == "netmask" {
			mask, err := strconv.ParseUint(f[i+1], 0, 32)
			return Alias{addr, uint32(mask)}, err
		}
	}
	return Alias{}, fmt.Errorf("no netmask")
}
