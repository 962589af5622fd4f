// Package loopback keeps the 254 aliases of the range on lo0, each with the mask of one host.
//
// It compares what lo0 has with what is wanted, adds what is missing and mends a wrong mask in place.
// It never adds an alias that is there already (the kernel would scrub its route and wake every
// program that watches routes, VPN clients among them), and it touches no address outside the range.
// It does not decide when: the range step and the boot job do.
//
// Beware of the mask. An alias with the mask of 127.0.0.0/8 works, and 254 of them drive mDNSResponder
// to 65 % of a core on real Macs; a mask whose sockaddr says length 0 means just that to the kernel.
package loopback
