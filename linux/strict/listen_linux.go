package strict

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// ListenCommand is the hidden subcommand under which the program must call MainListen.
const ListenCommand = "strict-listen"

// MainListen executes a target with the variables of sd_listen_fds(3) for this process. args are how many
// descriptors it has, and path, name and arguments of the target. It returns an exit status only when
// that failed.
func MainListen(args []string, variables func(env []string, count int) []string) int {
	if len(args) < 3 {
		return 125
	}
	count, err := strconv.Atoi(args[0])
	if err == nil {
		err = syscall.Exec(args[1], args[2:], variables(os.Environ(), count))
	}
	fmt.Fprintf(os.Stderr, "minhost: run %q: %v\n", args[2], err)
	if err == syscall.ENOENT {
		return 127
	}
	return 126
}
