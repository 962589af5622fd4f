package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/installer/api"
)

// lookupTime bounds the look whether programs of this host resolve the name of a box.
const lookupTime = 2 * time.Second

func newOpenCommand(env *environment) *cobra.Command {
	var onlyPrint bool
	cmd := &cobra.Command{
		Use:   "open BOX [PORT]",
		Short: "Open what a box serves in the browser",
		Long: "Open what a box (a name or a lease id) serves in the browser: at the port, or at 80, 443 or the\n" +
			"lowest port that it listens on. The name of the box is used where programs of this host resolve\n" +
			"it, else its address.",
		Example: "  minhost open web\n  minhost open web 3000 --print",
		Args:    usage(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			port := 0
			if len(args) == 2 {
				n, err := strconv.ParseUint(args[1], 10, 16)
				if err != nil || n == 0 {
					return usageError(cmd, fmt.Errorf("port %s: not a number from 1 to 65535", api.Text(args[1])))
				}
				port = int(n)
			}
			out, err := ask(cmd.Context(), env, func(ctx context.Context, c helperClient) (api.ListOut, error) {
				return c.List(ctx)
			})
			if err != nil {
				return err
			}
			return openBox(cmd.Context(), env, out.Leases, args[0], port, onlyPrint)
		},
	}
	cmd.Flags().BoolVar(&onlyPrint, "print", false, "print the URL and open nothing")
	return cmd
}

func openBox(ctx context.Context, env *environment, leases []api.LeaseInfo, box string, port int, onlyPrint bool) error {
	i := slices.IndexFunc(leases, func(l api.LeaseInfo) bool { return l.Lease != "" && (l.Name == box || l.Lease == box) })
	if i < 0 {
		return hinted{fmt.Errorf("open %s: you have no box of this name or lease id", api.Text(box)), "minhost ls"}
	}
	l, err := pageOf(leases[i], port)
	if err != nil {
		return err
	}
	target := reachable(ctx, env, l)
	if _, err := fmt.Fprintln(env.Stdout, api.Text(target)); err != nil || onlyPrint {
		return err
	}
	if env.EUID == 0 {
		return hinted{errors.New("open: root starts no browser"), "open the URL as yourself, or use --print"}
	}
	return env.Open(ctx, target)
}

// pageOf picks the listener that a browser is sent to.
func pageOf(box api.LeaseInfo, port int) (api.Listener, error) {
	name := box.Name
	if name == "" {
		name = box.Lease
	}
	pages := slices.DeleteFunc(slices.Clone(box.Listeners), func(l api.Listener) bool { return l.URL == "" || port != 0 && l.Port != port })
	if len(pages) == 0 {
		if port != 0 {
			return api.Listener{}, hinted{fmt.Errorf("open %s: it serves no page on port %d", api.Text(name), port), "minhost ls"}
		}
		return api.Listener{}, hinted{fmt.Errorf("open %s: it serves no page", api.Text(name)), "start a server in it; minhost watch " + api.Text(name) + " tells when it listens"}
	}
	return slices.MinFunc(pages, func(a, b api.Listener) int { return rank(a.Port) - rank(b.Port) }), nil
}

// rank puts 80 and 443 first.
func rank(port int) int {
	switch port {
	case 80:
		return -2
	case 443:
		return -1
	}
	return port
}

// reachable is the URL of a listener, with its address in place of a name that does not resolve here.
func reachable(ctx context.Context, env *environment, l api.Listener) string {
	u, err := url.Parse(l.URL)
	if err != nil {
		return l.URL
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return l.URL
	}
	if a, err := netip.ParseAddr(l.Address); err == nil && !a.IsUnspecified() && !env.Resolves(ctx, u.Hostname()) {
		u.Host = l.Address
		if u.Port() != "" || l.Port != 80 && l.Port != 443 {
			u.Host = net.JoinHostPort(l.Address, strconv.Itoa(l.Port))
		}
	}
	return u.String()
}

// resolves asks as programs of this host do.
func resolves(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	found, err := net.DefaultResolver.LookupHost(ctx, name)
	return err == nil && len(found) > 0
}

// openWith hands a URL to the first of these programs that there is, as the caller and found as the
// caller's shell would.
func openWith(openers [][]string) func(context.Context, string) error {
	return func(ctx context.Context, target string) error {
		for _, o := range openers {
			path, err := exec.LookPath(o[0])
			if err != nil {
				continue
			}
			if err := exec.CommandContext(ctx, path, append(slices.Clone(o[1:]), target)...).Run(); err != nil {
				return hinted{fmt.Errorf("open %s with %s: %w", api.Text(target), path, err), "open the URL by hand"}
			}
			return nil
		}
		return hinted{errors.New("open: there is no program here that opens a browser (xdg-open, gio, wslview, open)"), "open the URL by hand"}
	}
}
