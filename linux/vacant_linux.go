package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// LiveLeaves names the leaves in which processes live, none without a tree. It asks the kernel alone:
// it works while no helper does.
func (g Ground) LiveLeaves() ([]string, error) {
	t, err := g.boxes()
	if errors.Is(err, errNoTree) || mountCause(err) != "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer t.Close()
	names, err := t.List()
	if err != nil {
		return nil, err
	}
	var live []string
	for _, name := range names {
		l, err := t.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		populated, err := l.Populated()
		if err = errors.Join(err, l.Close()); err != nil {
			return nil, err
		}
		if populated {
			live = append(live, name)
		}
	}
	return live, nil
}

// vacant refuses to take table or belt away from under a box. Undo looks for live boxes before it
// begins, but one may have started since.
func (g Ground) vacant() error {
	live, err := g.LiveLeaves()
	if err == nil && len(live) > 0 {
		err = fmt.Errorf("boxes live in %s; end them, or: minhost finalize-install --undo --force", strings.Join(live, ", "))
	}
	return err
}
