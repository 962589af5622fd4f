package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gominimal/minhost/resolverd"
)

// bench is one run of the program.
type bench struct {
	rounds               int
	length               time.Duration
	window               int
	serverCPU, clientCPU int
	only                 []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) == 4 && os.Args[1] == answererVerb {
		exit(answer(ctx, os.Args[2], os.Args[3]))
	}
	var b bench
	flag.IntVar(&b.rounds, "rounds", 5, "how often each server is measured")
	flag.DurationVar(&b.length, "length", 2*time.Second, "of one measurement")
	flag.IntVar(&b.window, "window", 128, "queries that are open at once")
	flag.IntVar(&b.serverCPU, "server-cpu", 0, "core of the servers")
	flag.IntVar(&b.clientCPU, "client-cpu", 1, "core of the client")
	only := flag.String("only", "", "names of the servers, separated by commas; all when empty")
	flag.Parse()
	b.only = strings.Split(*only, ",")
	exit(b.run(ctx, os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchdns:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ours is our answerer among the servers.
const ours = "minhost"

// boxPorts is how far the port of our box view is from that of the host's.
const boxPorts = 1000

// answererVerb is the program's other role: our own server, as a process of its own.
const answererVerb = "answerer"

func answer(ctx context.Context, port, zoneFile string) error {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("port %s: %w", port, err)
	}
	// As its role in minhost does.
	runtime.GOMAXPROCS(max(resolverd.Processors, runtime.GOMAXPROCS(0)))
	debug.SetGCPercent(resolverd.GCPercent)
	return resolverd.Run(ctx, resolverd.Config{Port: uint16(n), BoxPort: uint16(n) + boxPorts, ZoneFile: zoneFile, BootID: bootID, Log: slog.New(slog.DiscardHandler)})
}
