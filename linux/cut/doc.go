// Package cut ends the live flows of a box that its new policy does not admit. The table alone cannot:
// the peer of a refused flow hears nothing, and a connection over loopback is judged when it begins.
//
// It lists the sockets of the host's network namespace (inet_diag) and the flows that connection
// tracking has for the lease, asks the verdict which of them live on, and ends the others: TCP sockets
// and connected UDP sockets are destroyed, so that both ends are told; tracked TCP flows are marked as
// ended, which the table answers with resets; other tracked flows are forgotten, and what lives on gets
// the generation of the new policy. Listeners and
// unconnected UDP sockets stay.
//
// It writes no rule and decides no policy: linux/nft and installer/lease do. It is to be called while
// the table holds the new verdict with Cutting set; what it ends then cannot begin again. Called twice
// it does nothing the second time.
package cut
