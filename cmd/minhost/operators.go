package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/gominimal/minhost/installer/host"
)

// maxUID is the first number that is no user id: the kernel uses -1 for "no change".
const maxUID = 1<<32 - 1

// operators are user ids, ascending, each once.
type operators []int

func (o operators) has(uid int) bool {
	_, found := slices.BinarySearch(o, uid)
	return found
}

// add and remove return a new list, and whether it differs.
func (o operators) add(uid int) (operators, bool) {
	at, found := slices.BinarySearch(o, uid)
	if found {
		return o, false
	}
	return slices.Insert(slices.Clone(o), at, uid), true
}

func (o operators) remove(uid int) (operators, bool) {
	at, found := slices.BinarySearch(o, uid)
	if !found {
		return o, false
	}
	return slices.Delete(slices.Clone(o), at, at+1), true
}

// text is the file: one uid a line.
func (o operators) text() []byte {
	var b strings.Builder
	for _, uid := range o {
		fmt.Fprintln(&b, uid)
	}
	return []byte(b.String())
}

// parseOperators reads the file. A line that is no uid is an error: who writes the file back must
// not lose what somebody meant.
func parseOperators(data []byte) (operators, error) {
	var list operators
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		uid, err := strconv.Atoi(line)
		if err != nil || uid < 0 || uid >= maxUID {
			return nil, fmt.Errorf("line %d: not a user id", i+1)
		}
		list = append(list, uid)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// readOperators gives an empty list when the file is not there.
func readOperators(files host.FS, path string) (operators, error) {
	data, err := files.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := parseOperators(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return list, nil
}

// writeOperators replaces the file; its folder comes with finalize-install.
func writeOperators(files host.FS, path string, list operators) error {
	err := files.WriteFile(path, list.text(), host.Attr{Mode: 0o600})
	if errors.Is(err, fs.ErrNotExist) {
		return hinted{fmt.Errorf("write %s: this host is not prepared yet", path), "minhost finalize-install"}
	}
	return err
}
