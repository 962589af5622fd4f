// Package localhost gives each box its own localhost on the host's network (DESIGN.md 5.4): small cgroup
// programs on boxes rewrite what a box binds and dials, and turn the names back that its programs ask
// for. What a box binds on localhost or a wildcard is bound on its own 127.0.64.N; what it dials at
// localhost is its own listener on that port, if it has one, and else stays as it is. So unmodified
// servers in two boxes listen on the same port.
//
//   - bind: to the own address; ports below 1024 are free there; no other address of 127.0.0.0/8;
//   - connect, sendmsg: to the own listener; 127.0.64.254 is 127.0.0.1, always the host's;
//   - recvmsg, getsockname, getpeername: what was asked for, remembered beside the socket;
//   - guard, at the root of the hierarchy: nobody but the box binds a leased address, and nobody receives what a
//     box sent over lo before the table has admitted it there.
//
// One set of programs serves all boxes, from maps keyed by the id of the leaf. The programs hold the maps:
// they need no pin and no process, and whoever attaches the next version, or fills the maps, finds them by
// the programs. All act on sockets of the host's network namespace only.
//
// It decides nothing: a connect is never refused here. What stays at 127.0.0.1 is judged by linux/nft, and the
// guard stands by that judgement where it is missing.
//
// Beware: the rewriting looks at who calls, the table at who made the socket. A socket that is passed to
// another box binds the address of the box that has it, and keeps the verdict of the box that made it.
package localhost
