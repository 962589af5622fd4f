package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/resolverd"
	"github.com/gominimal/minhost/resolverd/zonefile"
)

// held are the names of the zone; one without an address is held by a box that is stopped.
var held = map[string]string{"web": "127.0.64.1", "api.web": "127.0.64.2", "a.b.c": "127.0.64.3", "stopped": "", "below.stopped": "127.0.64.4"}

// ours runs our answerer in this process, until stop.
func ours(ctx context.Context, folder string) (addr string, stop func(), err error) {
	f := zonefile.File{BootID: "conformance", Generation: 1, Names: map[string]netip.Addr{}}
	for name, text := range held {
		f.Names[name], _ = netip.ParseAddr(text) // "" is the invalid address
	}
	path := filepath.Join(folder, "zone")
	if err := os.WriteFile(path, zonefile.Encode(f), 0o644); err != nil {
		return "", nil, err
	}
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	server, err := resolverd.Listen(resolverd.Config{Port: port, ZoneFile: path, BootID: f.BootID, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
	stop = func() { cancel(); <-done }
	if err := ready(addr); err != nil {
		stop()
		return "", nil, fmt.Errorf("minhost: %w", err)
	}
	return addr, stop, nil
}

// ready waits until a server answers for the zone.
func ready(addr string) error {
	err := errors.New("never asked")
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = udp(ask("web", dns.TypeA), address("127.0.64.1"))(addr); err == nil {
			return nil
		}
	}
	return err
}

// freePort is one that was free for UDP and TCP just now.
func freePort() (uint16, error) {
	for range 50 {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		l.Close()
		if err == nil {
			u.Close()
			return uint16(port), nil
		}
	}
	return 0, errors.New("no port is free for both UDP and TCP")
}
