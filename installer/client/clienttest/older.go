package clienttest

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// older is what the helper before boundary answered, as it was on the wire.
//
//go:embed testdata/older
var older embed.FS

// StartOlder plays a helper that is older than the interface is now: it knows Plan, but not its boundary, and what the
// varlink service knows. It returns its socket.
func StartOlder(t testing.TB) (path string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "minhost")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(folder, "helper.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		served.Wait()
		os.RemoveAll(folder)
	})
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					message, err := in.ReadBytes(0)
					if err != nil {
						return
					}
					if _, err := conn.Write(olderReply(message)); err != nil {
						return
					}
				}
			})
		}
	})
	return path
}

func olderReply(message []byte) []byte {
	var call struct {
		Method     string                     `json:"method"`
		Parameters map[string]json.RawMessage `json:"parameters"`
	}
	_ = json.Unmarshal(message[:len(message)-1], &call)
	name := call.Method[strings.LastIndexByte(call.Method, '.')+1:]
	if _, ok := call.Parameters["boundary"]; ok {
		name += "-boundary"
	}
	text, err := older.ReadFile("testdata/older/" + name + ".json")
	if err != nil {
		text, _ = older.ReadFile("testdata/older/unknown.json")
	}
	return append(bytes.TrimSpace(text), 0)
}
