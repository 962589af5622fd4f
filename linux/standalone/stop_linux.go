package standalone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Stop ends the supervisor, with it helper and answerer, and also a pair that lives on without
// one. The socket is gone afterwards. Nil when nothing ran. Boxes stay as they are.
func Stop(ctx context.Context, c Config) error {
	if _, err := os.Lstat(c.Lock); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p, err := openHolder(c.Lock)
	if err != nil {
		return err
	}
	if p != nil {
		defer p.close()
		// It gives each of its two children that long.
		if err := p.end(ctx, 2*termWait+termWait); err != nil {
			return err
		}
	}
	return endLeft(ctx, c)
}

// openHolder opens the process that holds the lock. The pid is asked for again after the open: it
// may have ended in between, and the number gone to somebody else.
func openHolder(path string) (*process, error) {
	for range 3 {
		pid, ok, err := Running(path)
		if err != nil || !ok {
			return nil, err
		}
		if pid == 0 {
			return nil, fmt.Errorf("stop supervisor: lock %s is held from another pid namespace; stop it there", path)
		}
		p, err := openProcess(pid)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("stop supervisor %d: %w", pid, err)
		}
		if again, ok, err := Running(path); err == nil && ok && again == pid {
			return p, nil
		}
		p.close()
	}
	return nil, fmt.Errorf("stop supervisor: the holder of %s keeps changing; look: fuser -v %s", path, path)
}

// endLeft takes the lock itself, so that no supervisor can begin meanwhile, and ends the children
// that are noted in it.
func endLeft(ctx context.Context, c Config) error {
	l, err := takeLock(c.Lock)
	if err != nil {
		return err
	}
	defer l.release()
	if err := endNoted(ctx, l, func(note) {}); err != nil {
		return err
	}
	for _, path := range []string{c.Socket, c.Socket + ".new", c.notifyPath()} {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && info.Mode().Type() != fs.ModeSocket) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	return nil
}
