package main

import (
	"fmt"
	"net/netip"
	"os/user"
	"slices"
	"strconv"

	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/operators"
	"github.com/gominimal/minhost/resolverd/zonefile"
)

// operatorGroup is the group whose members are operators.
const operatorGroup = "minhost"

// zonePort writes the zone file: everybody may read it, the answerer is not root.
type zonePort struct {
	fs         host.FS
	path, boot string
	generation uint64
}

// Publish implements helper.Names; the helper calls it one at a time.
func (z *zonePort) Publish(names map[string]netip.Addr) error {
	z.generation++
	f := zonefile.File{BootID: z.boot, Generation: z.generation, Names: names}
	if err := f.Check(); err != nil {
		return fmt.Errorf("zone: %w", err)
	}
	return z.fs.WriteFile(z.path, zonefile.Encode(f), host.Attr{Mode: 0o644})
}

// operatorCheck looks an account up at the call, so that nobody has to log in again: the file of
// operators, the groups at connect, the group file.
func operatorCheck(files host.FS, path string) func(helper.Peer) (bool, error) {
	return func(p helper.Peer) (bool, error) {
		list, err := operators.Read(files, path)
		if err != nil {
			return false, err
		}
		if list.Has(int(p.UID)) {
			return true, nil
		}
		g, err := user.LookupGroup(operatorGroup)
		if err != nil {
			return false, nil // no such group, so nobody is in it
		}
		gid, err := strconv.ParseUint(g.Gid, 10, 32)
		if err != nil {
			return false, fmt.Errorf("group %s: gid %q", operatorGroup, g.Gid)
		}
		if slices.Contains(p.Groups, uint32(gid)) {
			return true, nil
		}
		u, err := user.LookupId(strconv.FormatUint(uint64(p.UID), 10))
		if err != nil {
			return false, nil // an account that nobody knows is in no group
		}
		groups, err := u.GroupIds()
		return err == nil && slices.Contains(groups, g.Gid), nil
	}
}
