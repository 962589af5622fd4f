// Package standalone takes the place of a service manager where the host has none: a container, a
// guest whose init is the workload, OpenRC, sysvinit. One process (minhost supervise) holds the
// listening sockets, starts helper and answerer with them in the way systemd does (LISTEN_FDS,
// NOTIFY_SOCKET), and starts them again when they die.
//
// It does not come back after a reboot by itself, it knows no lease and reads no message of the
// helper's API. Boxes are not its children and never end with it.
//
// What happens when the supervisor itself is killed: helper and answerer live on. They hold the
// sockets too, so callers and lookups go on working, and nobody would start the pair again. The
// next supervisor finds them by pid and start time, which the dead one wrote into its lock file
// before they ran, ends them, and starts its own. (PR_SET_PDEATHSIG would have done the opposite: no
// helper at all until an admin looks.)
//
// Beware: POSIX record locks belong to a process and are lost when it closes any descriptor of the
// file; so Running and Stop must not be called by the process that supervises.
package standalone
