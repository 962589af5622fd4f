package helper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/lease"
)

// FileStore is the Store of the real helper: <dir>/<lease id>.json, root 0600.
type FileStore struct {
	FS     host.FS
	Dir    string
	BootID string
}

const suffix = ".json"

// Prepare makes the folder.
func (s FileStore) Prepare() error {
	err := s.FS.Mkdir(s.Dir, host.Attr{Mode: 0o700})
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Put implements Store.
func (s FileStore) Put(l lease.Lease) error {
	b, err := lease.Encode(l, s.BootID)
	if err != nil {
		return fmt.Errorf("encode lease %s: %w", l.ID, err)
	}
	return s.FS.WriteFile(s.path(l.ID), b, host.Attr{Mode: 0o600})
}

// Remove implements Store.
func (s FileStore) Remove(id string) error {
	err := s.FS.Remove(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// All implements Store. What can't be read is moved out of the way of the next start by removing
// it: the kernel's tree still proves which boxes live.
func (s FileStore) All() (leases []lease.Lease, broken []error) {
	names, err := s.FS.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{err}
	}
	for _, name := range names {
		id, ok := strings.CutSuffix(name, suffix)
		if !ok || !lease.ValidID(id) {
			continue
		}
		b, err := s.FS.ReadFile(s.path(id))
		if err == nil {
			var l lease.Lease
			if l, err = lease.Decode(b, s.BootID); err == nil && l.ID == id {
				leases = append(leases, l)
				continue
			}
		}
		broken = append(broken, fmt.Errorf("%s: %w", s.path(id), errors.Join(err, s.FS.Remove(s.path(id)))))
	}
	return leases, broken
}

// restFile holds the addresses and when they were given back, in this boot's folder.
const restFile = "/rest"

// Rest implements Store.
func (s FileStore) Rest(released map[netip.Addr]time.Time) error {
	b, err := json.Marshal(released)
	if err != nil {
		return fmt.Errorf("encode rest: %w", err)
	}
	return s.FS.WriteFile(s.Dir+restFile, b, host.Attr{Mode: 0o600})
}

// Rested implements Store.
func (s FileStore) Rested() (map[netip.Addr]time.Time, error) {
	b, err := s.FS.ReadFile(s.Dir + restFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var released map[netip.Addr]time.Time
	if err := json.Unmarshal(b, &released); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Dir+restFile, err)
	}
	return released, nil
}

func (s FileStore) path(id string) string { return s.Dir + "/" + id + suffix }
