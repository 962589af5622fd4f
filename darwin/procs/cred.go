package procs

import "fmt"

// Cred is who opened a connection, and which process is at its other end.
type Cred struct {
	UID    uint32
	PID    int
	Groups []uint32 // the first is the effective one; macOS tells at most 16
}

// Hold asks for the credentials of a connection and for the start of its process. Between the two the
// process may have ended and its number been given away: so they are asked for once more. A connection
// whose other end is gone has no credentials.
func Hold(t Table, ask func() (Cred, error)) (Cred, Info, error) {
	c, err := ask()
	if err != nil {
		return c, Info{}, err
	}
	i, err := t.Info(c.PID)
	if err != nil {
		return c, i, err
	}
	again, err := ask()
	if err == nil && again.PID != c.PID {
		err = fmt.Errorf("process %d gave the connection to process %d meanwhile", c.PID, again.PID)
	}
	return c, i, err
}
