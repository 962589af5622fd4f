//go:build fakedarwin

package procs

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// Kernel is the Table of a model Mac on Linux: the program that the fake host of verify/fakedarwin runs.
type Kernel struct{}

// New never fails.
func New() (*Kernel, error) { return &Kernel{}, nil }

// Info implements Table.
func (k *Kernel) Info(pid int) (Info, error) {
	gone := fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	status, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || err2 != nil {
		return Info{}, gone
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return Info{}, gone
	}
	i := Info{PID: pid, Start: f[19]}
	i.Parent, _ = strconv.Atoi(f[1])
	i.Group, _ = strconv.Atoi(f[2])
	for line := range strings.Lines(string(status)) {
		if words := strings.Fields(line); len(words) == 5 && words[0] == "Uid:" {
			for n := range i.UIDs {
				uid, _ := strconv.ParseUint(words[n+1], 10, 32)
				i.UIDs[n] = uint32(uid)
			}
		}
	}
	return i, nil
}

// Wait implements Table.
func (k *Kernel) Wait(ctx context.Context, pid int, start string) error {
	return poll(ctx, k, pid, start, 10*time.Millisecond)
}
