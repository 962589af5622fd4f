// Package apps runs unmodified servers in boxes and asks them as users do: vite with its websocket, redis,
// PostgreSQL, gRPC, QUIC, a name server, two boxes each on one port, from the host, from inside, from the sibling,
// and by name from a browser.
//
// It is for tests only and not part of make test: what it runs is large. programs.sh installs it, and
// make test-apps runs it; a test whose program is missing is skipped and says so. It looks into no
// package of minhost and into no server: it only talks to them.
package apps
