#!/bin/sh
# Installs the name servers that conformance-dns and bench-dns compare with, on Debian and its
# children, and starts none of them: they are started by those programs, on loopback, and end with
# them. What is there already is left alone.
set -eu

export PATH="$PATH:/usr/sbin:/sbin"
missing=
for pair in nsd:nsd knotd:knot named:bind9 unbound:unbound dnsmasq:dnsmasq-base; do
	command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
if [ -z "$missing" ]; then
	exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "peers: not here:$missing; install them (as root, with apt-get) or go without" >&2
	exit 0
fi

# A package of a server starts it, at port 53 of every address, unless this file says no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi
echo "peers: installing$missing"
apt-get update -qq
# shellcheck disable=SC2086 # words
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
