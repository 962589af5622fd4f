package darwin

import (
	"context"
	"fmt"
	"strings"

	"github.com/gominimal/minhost/installer/host"
)

const swVersPath = "/usr/bin/sw_vers"

// Release names the system, "macOS 26.0 (25A354)": some releases look names up otherwise than others, so
// that reports of them begin with it.
func Release(ctx context.Context, run host.Runner) (string, error) {
	r, err := run.Run(ctx, host.Command{Path: swVersPath, Reads: true})
	if err != nil {
		return "", err
	}
	return parseRelease(string(r.Stdout))
}

// parseRelease reads lines like "ProductVersion:\t\t26.0". A rapid security response adds ProductVersionExtra
// ("(a)"), which is part of the version.
func parseRelease(text string) (string, error) {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	name, version, build := fields["ProductName"], fields["ProductVersion"], fields["BuildVersion"]
	if name == "" || version == "" || build == "" {
		return "", fmt.Errorf("sw_vers: no name, version and build in %q", text)
	}
	if extra := fields["ProductVersionExtra"]; extra != "" {
		version += " " + extra
	}
	return fmt.Sprintf("%s %s (%s)", name, version, build), nil
}
