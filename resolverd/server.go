package resolverd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/gominimal/minhost/resolverd/datagram"
	"github.com/gominimal/minhost/resolverd/report"
)

// The ports that the answerer has unless told otherwise.
const (
	DefaultPort    = 15353 // the host's view
	DefaultBoxPort = 15354 // what confined boxes' lookups are redirected to
)

// Processors is what GOMAXPROCS of a process that answers should be at least, also on one core: with
// one, the goroutine that serves a flood keeps all others waiting for up to 10 ms, the one that
// reads a changed zone among them; with two, the kernel divides the core between their threads.
const Processors = 2

// GCPercent is what the garbage collector of a process that answers should be told: only a change of the
// zone makes garbage, and a small heap is cheap to collect.
const GCPercent = 20

// Config is what an answerer needs to know.
type Config struct {
	// Port is the host view's, BoxPort the box view's; BoxPort 0 serves none (macOS).
	Port, BoxPort uint16
	// Files are sockets that the service manager holds, from Inherited or launchd. Without any,
	// the answerer binds its own. They are closed by Listen; the manager's copies stay open, so
	// queries that arrive during a restart wait in them.
	Files []*os.File
	// ZoneFile is the path of the zone file. It need not exist yet.
	ZoneFile string
	// BootID is this boot's, in the form that the writer of the zone file uses.
	BootID string
	// Report is the path of the unix socket that refused names and counters go to; "" tells
	// nobody. It need not exist yet.
	Report string
	// Watched is the path of a file in the folder of the zone file: for a minute from when it was written,
	// and no longer than it is there, every lookup is told too. "" is never.
	Watched string
	// LeaseMark is the bit of the packet mark that tells a lease; 0 means DefaultLeaseMark.
	LeaseMark uint32
	// Log receives one line for each thing worth knowing; no query is ever logged there.
	Log *slog.Logger
}

// Server holds bound sockets. Nothing is answered before Serve.
type Server struct {
	sockets sockets
	source  *source
	peers   *peers
	zone    atomic.Pointer[Zone]
	log     *slog.Logger

	counts    counts
	report    *report.Sender // nil: nobody is told
	audience  audience
	leaseMark uint32

	batch    func(*net.UDPConn, bool) (datagram.Batch, error)
	udpLimit int
	tcp      tcpLimits
}

// Run listens and serves until ctx ends, which is no error.
func Run(ctx context.Context, cfg Config) error {
	s, err := Listen(cfg)
	if err != nil {
		return err
	}
	return s.Serve(ctx)
}

// Listen takes over cfg.Files or binds. After an error nothing is left open.
func Listen(cfg Config) (*Server, error) {
	if cfg.Log == nil || cfg.ZoneFile == "" || cfg.BootID == "" || cfg.Port == 0 {
		closeFiles(cfg.Files)
		return nil, errors.New("resolverd: log, zone file, boot id and port must be given")
	}
	var bound sockets
	var err error
	if len(cfg.Files) > 0 {
		bound, err = adopt(cfg.Files, cfg.endpoints(), cfg.Log)
	} else {
		bound, err = bind(cfg.endpoints(), cfg.Log)
	}
	if err != nil {
		return nil, fmt.Errorf("resolverd: %w", err)
	}
	s := &Server{sockets: bound, log: cfg.Log, leaseMark: cmp.Or(cfg.LeaseMark, DefaultLeaseMark),
		batch: datagram.New, udpLimit: UDPLimit, tcp: defaultTCPLimits()}
	if cfg.Report != "" {
		s.report = report.NewSender(cfg.Report)
	}
	s.peers = &peers{list: net.InterfaceAddrs, now: time.Now}
	s.audience.path, s.audience.now = cfg.Watched, time.Now
	s.source = &source{path: cfg.ZoneFile, bootID: cfg.BootID, log: cfg.Log, publish: s.zone.Store, poll: pollInterval, beside: &s.audience}
	return s, nil
}

// Serve answers until parent ends, then closes the sockets. A query that was read is answered first.
// The error is that of a socket that stopped working; the service manager starts us again.
func (s *Server) Serve(parent context.Context) error {
	defer s.sockets.close()
	loops, err := s.openUDP()
	if err != nil {
		return fmt.Errorf("resolverd: %w", err)
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	watch := s.source.start()
	defer watch.close()

	var wg sync.WaitGroup
	for _, l := range loops {
		wg.Go(func() { cancelOn(cancel, s.serveUDP(ctx, l)) })
	}
	for _, l := range s.sockets.tcp {
		wg.Go(func() { cancelOn(cancel, s.serveTCP(ctx, l)) })
	}
	wg.Go(func() { s.tellCounters(ctx, countersEvery) })
	wg.Go(func() { s.keepWatchdog(ctx, loops) })
	s.log.Info("answering", "zone", Origin, "sockets", s.sockets.names())
	// Tells systemd that lookups work. Elsewhere NOTIFY_SOCKET is not set and nothing happens.
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		s.log.Warn("cannot tell the service manager that the answerer is ready", "err", err)
	}
	s.source.run(ctx, watch)
	wg.Wait()
	s.report.Close()
	s.log.Info("answered", s.Counters().Attrs()...)
	if parent.Err() == nil {
		return fmt.Errorf("resolverd: %w", context.Cause(ctx))
	}
	return nil
}

func cancelOn(cancel context.CancelCauseFunc, err error) {
	if err != nil {
		cancel(err)
	}
}

// endpoint is one address, served over UDP and TCP.
type endpoint struct {
	addr     netip.AddrPort
	view     View
	required bool // else a host where the address cannot be had goes without it
}

func (c Config) endpoints() []endpoint {
	all := []endpoint{{netip.AddrPortFrom(localhost, c.Port), HostView, true}}
	if c.BoxPort != 0 {
		all = append(all,
			endpoint{netip.AddrPortFrom(localhost, c.BoxPort), BoxView, true},
			endpoint{netip.AddrPortFrom(netip.IPv6Loopback(), c.BoxPort), BoxView, false})
	}
	return all
}
