package boxes

import (
	"net"
	"time"
)

// held is the one connection that an agent keeps.
var held net.Conn

// holdFlow connects and talks once.
func holdFlow(address string) (string, error) {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return errnoOf(err), nil
	}
	held = c
	return talkFlow("")
}

// talkFlow sends an octet on the connection and waits for the echo.
func talkFlow(string) (string, error) {
	held.SetDeadline(time.Now().Add(2 * time.Second))
	_, err := held.Write([]byte("x"))
	if err == nil {
		_, err = held.Read(make([]byte, 1))
	}
	return errnoOf(err), nil
}
