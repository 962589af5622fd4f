package main

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client/hold"
	"github.com/gominimal/minhost/linux/strict"
)

// childRole is one of the processes between run and its program.
func childRole(name string, args []string) (status int, served bool) {
	switch name {
	case hold.Command:
		return hold.Main(args, launch), true
	case strict.Command:
		return strict.Main(), true
	case strict.ListenCommand:
		return strict.MainListen(args, hold.ListenVariables), true
	}
	return 0, false
}

// launch starts a target as its wanted state says.
func launch(t hold.Target, files []int, tell hold.Tell) (status int, err error) {
	var s strict.Spec
	if err := gob.NewDecoder(bytes.NewReader(t.Within)).Decode(&s); err != nil {
		return 0, fmt.Errorf("read what was wanted: %w", err)
	}
	return strict.Launch(strict.Program{Spec: s, Path: t.Path, Args: t.Args, Env: t.Env}, files, tell)
}

// within is the wanted state of a strict box. hide is what a box hides beside what every one does.
func within(net api.NetPlan, hide []string, terminal, bare bool) ([]byte, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	s := strict.Spec{Dir: dir, Nameservers: net.Nameservers, Hide: hide, Terminal: terminal, Bare: bare}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(s)
	return b.Bytes(), err
}

// hiddenPaths are the sockets that this account can reach now outside /run, the folders where there are
// often some, and what minhost keeps itself.
func hiddenPaths(own ...string) []string {
	all := append(strict.Usual(strconv.Itoa(os.Getuid())), own...)
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return all
	}
	for _, path := range strict.Sockets(string(table)) {
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			all = append(all, filepath.Clean(path))
		}
	}
	return all
}

// advice says why there are no namespaces on this host, and what helps.
func advice() (cause, next string) {
	return strict.Advice(func(path string) (string, error) {
		b, err := os.ReadFile(path)
		return string(b), err
	})
}

const strictWorks = true
