// Package operators is the list of accounts whose runners may call the helper: one uid a line in
// a root-owned file of the state folder (DESIGN.md section 2).
//
// It does not decide about groups and looks no account up: a uid may be of a directory service
// that is not reachable now.
package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/gominimal/minhost/installer/host"
)

// MaxUID is the first number that is no user id: the kernel uses -1 for "no change".
const MaxUID = 1<<32 - 1

// List is user ids, ascending, each once.
type List []int

// Has tells whether uid is in the list.
func (o List) Has(uid int) bool {
	_, found := slices.BinarySearch(o, uid)
	return found
}

// Add returns the list with uid, and whether it differs.
func (o List) Add(uid int) (List, bool) {
	at, found := slices.BinarySearch(o, uid)
	if found {
		return o, false
	}
	return slices.Insert(slices.Clone(o), at, uid), true
}

// Remove returns the list without uid, and whether it differs.
func (o List) Remove(uid int) (List, bool) {
	at, found := slices.BinarySearch(o, uid)
	if !found {
		return o, false
	}
	return slices.Delete(slices.Clone(o), at, at+1), true
}

// Text is the file: one uid a line.
func (o List) Text() []byte {
	var b strings.Builder
	for _, uid := range o {
		fmt.Fprintln(&b, uid)
	}
	return []byte(b.String())
}

// Parse reads the file. A line that is no uid is an error: who writes the file back must
// not lose what somebody meant.
func Parse(data []byte) (List, error) {
	var list List
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		uid, err := strconv.Atoi(line)
		if err != nil || uid < 0 || uid >= MaxUID {
			return nil, fmt.Errorf("line %d: not a user id", i+1)
		}
		list = append(list, uid)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Read gives an empty list when the file is not there.
func Read(files host.FS, path string) (List, error) {
	data, err := files.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return list, nil
}

// Write replaces the file. Its folder comes with finalize-install: fs.ErrNotExist without it.
func Write(files host.FS, path string, list List) error {
	return files.WriteFile(path, list.Text(), host.Attr{Mode: 0o600})
}
