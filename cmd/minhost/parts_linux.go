package main

import (
	"context"
	"errors"
	"strings"

	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/linux/systemd"
	"github.com/gominimal/minhost/verify/reboot"
)

// parts tells when tree, helper, answerer and names were ready, as the journal has it.
func parts(ctx context.Context) ([]reboot.Part, error) {
	if serviceManager().Kind != systemd.Systemd {
		return nil, errors.New("no journal: systemd does not run here")
	}
	started, err := systemd.StartTimes(ctx, host.Exec{}, systemd.Find(systemd.HostEnv(), "journalctl"))
	if err != nil {
		return nil, err
	}
	var out []reboot.Part
	for _, s := range started {
		name := strings.TrimSuffix(strings.TrimPrefix(s.Unit, "minhost-"), ".service")
		if s.Unit == systemd.AnswererService {
			name = "answerer"
		}
		if s.Unit != systemd.VerifyService {
			out = append(out, reboot.Part{Name: name, Since: s.Since})
		}
	}
	return out, nil
}
