package egress

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

// transfer sends octets to an echo server, as how says, and checks what comes back.
func transfer(how, address string) string {
	if how == "fragments" {
		return fragments(address)
	}
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return "connect: " + word(err)
	}
	defer c.Close()
	t := c.(*net.TCPConn)
	t.SetDeadline(time.Now().Add(60 * time.Second))
	size, chunk, pause, wait := 1<<20, 1<<20, time.Duration(0), time.Duration(0)
	switch how {
	case "slow": // goes on while the way changes
		chunk, pause = 16<<10, 15*time.Millisecond
	case "stalled": // nobody reads for a while: the window closes on both sides, and is probed
		wait = 1500 * time.Millisecond
		t.SetReadBuffer(8 << 10)
		t.SetWriteBuffer(64 << 10)
	case "idle":
		size = 1
		t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 2})
		if got := talk(t); got != "ok" {
			return "before: " + got
		}
		time.Sleep(3500 * time.Millisecond)
		t.SetDeadline(time.Now().Add(60 * time.Second))
	}
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	random.Read(data)
	wrote := make(chan error, 1)
	go func() {
		for part := data; len(part) > 0; time.Sleep(pause) {
			n := min(chunk, len(part))
			if _, err := t.Write(part[:n]); err != nil {
				wrote <- err
				return
			}
			part = part[n:]
		}
		wrote <- t.CloseWrite() // the other direction stays open until the echo is whole
	}()
	time.Sleep(wait)
	back, err := io.ReadAll(t)
	if werr := <-wrote; werr != nil {
		return "write: " + word(werr)
	}
	if err != nil {
		return fmt.Sprintf("read: %s behind %d octets", word(err), len(back))
	}
	if !bytes.Equal(back, data) {
		return fmt.Sprintf("%d octets came back of %d, or others", len(back), len(data))
	}
	return "ok"
}

// fragments sends datagrams that are larger than the way takes.
func fragments(address string) string {
	c, err := net.Dial("udp", address)
	if err != nil {
		return "connect: " + word(err)
	}
	defer c.Close()
	buf := make([]byte, 16<<10)
	for size := 1400; size < 9000; size += 1500 {
		c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Write(buf[:size]); err != nil {
			return "send: " + word(err)
		}
		if n, err := c.Read(buf); err != nil || n != size {
			return fmt.Sprintf("%d of %d octets: %s", n, size, word(err))
		}
	}
	return "ok"
}
