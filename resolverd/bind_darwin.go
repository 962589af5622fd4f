package resolverd

import (
	"fmt"
	"strings"
)

// holderCommand is the command that shows who listens on a port. As root it names every program.
func holderCommand(network string, port uint16) string {
	return fmt.Sprintf("lsof -nP -i %s:%d", strings.ToUpper(network), port)
}
