package resolverd

import "fmt"

// holderCommand is the command that shows who listens on a port. As root it names every program.
func holderCommand(network string, port uint16) string {
	return fmt.Sprintf("ss -nlp --%s 'sport = :%d'", network, port)
}
