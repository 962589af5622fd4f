//go:build darwin || fakedarwin

package main

import (
	"context"
	"fmt"
	"path"

	"github.com/gominimal/minhost/darwin"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/verify/reboot"
)

// macParts reads when range, answerer and helper were ready from their logs, and takes no line of
// another boot for it.
func macParts(l darwin.Layout, boot darwin.Boot) func(context.Context) ([]reboot.Part, error) {
	return func(ctx context.Context) ([]reboot.Part, error) {
		id, err := boot.ID(ctx)
		if err != nil {
			return nil, err
		}
		files, err := host.OpenDisk("/", nil)
		if err != nil {
			return nil, err
		}
		defer files.Close()
		var parts []reboot.Part
		for _, p := range []struct{ name, label string }{
			{"range", darwin.LoopbackLabel}, {"answerer", darwin.AnswererLabel}, {"helper", darwin.HelperLabel},
		} {
			log, err := files.ReadFile(path.Join(l.Logs, p.label+".log"))
			if err != nil {
				return nil, err
			}
			since, ok := darwin.ReadyAt(log, id)
			if !ok {
				return nil, fmt.Errorf("the log of %s has no line of this boot", p.label)
			}
			parts = append(parts, reboot.Part{Name: p.name, Since: since})
		}
		return parts, nil
	}
}
