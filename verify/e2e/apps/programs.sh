#!/bin/sh
# Installs what the tests of this folder run in boxes: servers and a browser from Debian, vite from npm, a QUIC
# library's example from its Go module. As root; what is no Debian package goes to the folder that is given, once.
set -eu
dir=${1:?folder}
packages=
for pair in redis-server:redis-server nginx:nginx-light chromium:chromium node:nodejs npm:npm dig:dnsutils curl:curl \
	dnsmasq:dnsmasq-base psql:postgresql-client; do
	PATH="$PATH:/usr/sbin:/sbin" command -v "${pair%%:*}" >/dev/null || packages="$packages ${pair#*:}"
done
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || packages="$packages postgresql"
/usr/bin/python3 -c 'import grpc' 2>/dev/null || packages="$packages python3-grpcio"
if [ -n "$packages" ]; then
	export DEBIAN_FRONTEND=noninteractive
	# Debian starts a server when it is installed; none of them is wanted outside a box.
	policy=/usr/sbin/policy-rc.d
	if [ ! -e "$policy" ]; then
		trap 'rm -f "$policy"' EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
	fi
	apt-get update -qq
	# shellcheck disable=SC2086 # words
	apt-get install -y -qq --no-install-recommends $packages
fi
# A client and a server of QUIC in one program, a library's own example.
[ -e "$dir/echo" ] || GOBIN="$dir" go install github.com/quic-go/quic-go/example/echo@v0.65.0
if [ ! -e "$dir/node_modules/vite/package.json" ]; then
	mkdir -p "$dir"
	cd "$dir"
	npm install --no-save --no-audit --no-fund vite@7 >&2
fi
