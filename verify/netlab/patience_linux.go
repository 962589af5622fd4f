package netlab

import (
	"os"
	"strconv"
	"time"
)

// slowEnv holds by how much this machine is slower than a processor: 10 under emulation.
const slowEnv = "NETLAB_SLOW"

// Patience is d, or as many times that as $NETLAB_SLOW says: for bounds on how long something may take
// that is to come, never for what is to be seen within a time.
func Patience(d time.Duration) time.Duration {
	n, err := strconv.Atoi(os.Getenv(slowEnv))
	if err != nil || n < 1 {
		return d
	}
	return d * time.Duration(n)
}
