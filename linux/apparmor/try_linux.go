package apparmor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/errand"
)

// Names of the errands.
const (
	TryName    = "userns-try"
	insideName = "userns-inside"
)

// nobody is who tries for root, who is kept from nothing.
const nobody = 65534

// Try makes a user namespace and mounts something in it, by that program; "" is this one. As root it does so as
// that account, or as nobody. Ubuntu lets the namespace be made and takes all rights in it: so they are used.
func Try(ctx context.Context, program string, uid uint32) error {
	s := errand.Spec{Name: TryName, Program: program}
	if os.Geteuid() == 0 {
		if uid == 0 {
			uid = nobody
		}
		s.User = &uid
	}
	_, err := errand.Run(ctx, s)
	return err
}

// Errands are the two children.
func Errands() errand.Table {
	return errand.Table{
		TryName: func(json.RawMessage, []*os.File) (*os.File, error) {
			_, err := errand.Run(context.Background(), errand.Spec{Name: insideName, Apart: true})
			return nil, err
		},
		insideName: func(json.RawMessage, []*os.File) (*os.File, error) {
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return nil, fmt.Errorf("mount in it: %w", err)
			}
			return nil, nil
		},
	}
}
