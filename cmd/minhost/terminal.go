//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// onTerminal tells whether somebody can be asked. Every character device but a terminal, /dev/null
// first, has no window size; its name says nothing, since ours is always "/dev/stdin".
func (env *environment) onTerminal() bool {
	f, ok := env.Stdin.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
