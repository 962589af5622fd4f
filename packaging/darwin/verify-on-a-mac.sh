#!/bin/sh
# What only a Mac can show, for a person with one. Two parts with a reboot between them:
#
#   sh verify-on-a-mac.sh before ./minhost     installs, looks, opens browsers, then asks you to reboot
#   sh verify-on-a-mac.sh after ./minhost      looks again, takes everything back, packs the report
#
# Run it as yourself; it asks for your password where minhost does, and for root's eyes with sudo. It
# changes nothing but by minhost, and leaves a folder with a report: read it, then send it.
# The numbers in brackets are reports of what went wrong on other Macs.
set -u
PATH=/usr/bin:/bin:/usr/sbin:/sbin
export PATH

part=${1:-}
minhost=${2:-./minhost}
report=$HOME/minhost-mac-report
zone=min.internal
failed=0

case $part in before | after) ;; *)
	echo "usage: sh $0 before|after [path of minhost]" >&2
	exit 2
	;;
esac
[ "$(uname -s)" = Darwin ] || { echo "this is not a Mac" >&2; exit 2; }
[ "$(id -u)" != 0 ] || { echo "run it as yourself, not as root" >&2; exit 2; }
[ -x "$minhost" ] || { echo "$minhost is not there" >&2; exit 2; }
mkdir -p "$report" || exit 2
log=$report/$part.txt
: >"$log"

say() { printf '%s\n' "$*" | tee -a "$log"; }
# keep WHAT COMMAND...: its output and status, into the report.
keep() {
	what=$1
	shift
	{
		printf '\n== %s: %s\n' "$what" "$*"
		"$@" 2>&1
		printf '== status %d\n' "$?"
	} >>"$log"
}
# check WHAT COMMAND...: it must succeed.
check() {
	what=$1
	shift
	if "$@" >>"$log" 2>&1; then
		say "ok    $what"
	else
		say "FAIL  $what: $*"
		failed=$((failed + 1))
	fi
}
# ask QUESTION: a person's answer, into the report.
ask() {
	printf '%s ' "$1"
	read -r answer
	printf '\n== asked: %s\n== answered: %s\n' "$1" "$answer" >>"$log"
}
aliases() { ifconfig lo0 | grep -c 'inet 127\.0\.64\.[0-9]* netmask 0xffffffff'; }
all_aliases() { [ "$(aliases)" = 254 ]; }
resolves() { dscacheutil -q host -a name "$1" | grep -q '^ip_address: 127\.0\.'; }
# within SECONDS COMMAND...: tried until it succeeds.
within() {
	end=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt "$end" ] || return 1
		sleep 0.2
	done
}
# quick COMMAND...: less than two seconds.
quick() {
	start=$(date +%s)
	"$@"
	[ $(($(date +%s) - start)) -lt 2 ]
}
hundred() { # B120: UDP must not stop after two replies
	n=0
	while [ $n -lt 100 ]; do
		dig +time=1 +tries=1 +short -p 15353 @127.0.0.1 minhost.$zone | grep -qx 127.0.0.1 || return 1
		n=$((n + 1))
	done
}
only_loopback() { # B93: a reply must not re-bind the socket to every interface
	sudo lsof -nP -iUDP:15353 -iTCP:15353 | tee -a "$log" | grep -v -e '^COMMAND' -e '127\.0\.0\.1:15353' | grep -q . && return 1
	return 0
}
# A web page on port 3000 of the box's own address, in Perl: every Mac has one.
# shellcheck disable=SC2016 # it is Perl's dollar
server='use IO::Socket::INET; my $l = IO::Socket::INET->new(LocalAddr => $ENV{MINHOST_ADDRESS}, LocalPort => 3000, Listen => 9, ReuseAddr => 1) or die $!;
while (my $c = $l->accept) { while (<$c>) { last if /^\r?\n$/ } print $c "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nthis is box $ARGV[0]\n"; close $c }'
box() { "$minhost" run --name "$1" -- /usr/bin/perl -e "$server" "$1" >>"$log" 2>&1 & }
page() { curl -sS --max-time 5 "http://$1.$zone:3000/" | grep -q "this is box $1"; }
# What must be the same again when minhost is gone.
state() {
	ls -lRT /etc/resolver /Library/LaunchDaemons /Library/PrivilegedHelperTools "/Library/Application Support/minhost" 2>&1
	ifconfig lo0
	launchctl print-disabled system
}

facts() {
	keep 'B118: the release' sw_vers
	keep machine uname -a
	keep 'the boot' sysctl kern.boottime kern.bootsessionuuid
	keep 'B109: quarantine' xattr -l "$minhost"
	keep 'B109: signature' codesign -dv "$minhost"
	keep 'B115, B116, B117: who answers lookups' scutil --dns
	keep 'B115: profiles' profiles list
	keep 'B100, B102: mDNSResponder' ps -axo pid,%cpu,time,comm
}
looks() {
	check 'B98, B102: 254 aliases, each /32' all_aliases
	check '127.0.0.1 is still there' ping -c 1 -t 2 127.0.0.1
	check 'B114: scutil shows port 15353' sh -c "scutil --dns | grep -A4 'domain *: $zone' | grep -q 15353"
	check 'B114: the system looks the host up' resolves minhost.$zone
	check 'B82: an unknown name is told at once' quick dscacheutil -q host -a name nobody-has-this.$zone
	check 'B120: a hundred lookups by UDP' hundred
	check 'B93: the answerer listens on 127.0.0.1 alone' only_loopback
	check 'B124: forgetting is safe at any time' sudo killall -HUP mDNSResponder
	check 'and names come back' within 10 resolves minhost.$zone
	for job in loopback resolverd helper; do
		keep "B103, B105: the job" launchctl print system/dev.minimal.$job
		keep 'its log' tail -n 20 /var/log/dev.minimal.$job.log
		check "plist of $job" plutil -lint /Library/LaunchDaemons/dev.minimal.$job.plist
	done
}
boxes() {
	keep 'late is looked up before its box exists' dscacheutil -q host -a name late.$zone
	box one
	box two
	box late
	check 'B99: box one by name' within 10 page one
	check 'box two on the same port' within 10 page two
	check 'a name that was looked up too early' within 10 page late
	keep leases "$minhost" ls
}
lookups() { # B115, B123: what of a browser's lookups comes to the answerer, for a minute
	sudo -v
	keep "lookups while $1 loads the pages" sudo "$minhost" watch --dns &
	sleep 1
}
end_boxes() {
	for name in one two late; do
		"$minhost" stop "$name" >>"$log" 2>&1
	done
}

before() {
	state >"$report/state-before.txt"
	facts
	keep 'B100: lookups of others before' sh -c 'time (for n in 1 2 3 4 5 6 7 8 9 10; do dscacheutil -flushcache; dscacheutil -q host -a name apple.com; done)'
	check 'the plan' "$minhost" finalize-install --show
	"$minhost" finalize-install || failed=$((failed + 1))
	ask 'How many times did macOS ask for a password until here (sudo and windows)?'
	check verify "$minhost" verify
	keep verify "$minhost" verify
	keep 'B100: lookups of others after' sh -c 'time (for n in 1 2 3 4 5 6 7 8 9 10; do dscacheutil -flushcache; dscacheutil -q host -a name apple.com; done)'
	looks
	boxes
	for browser in Safari 'Google Chrome' Firefox; do # B85, B123: HTTPS and SVCB questions, resolvers of their own
		[ -d "/Applications/$browser.app" ] || { say "skip  $browser is not installed"; continue; }
		lookups "$browser"
		open -a "$browser" http://one.$zone:3000/ http://two.$zone:3000/
		ask "$browser: do two tabs say 'this is box one' and 'this is box two'? How long did it take?"
	done
	ask 'Switch Wi-Fi off and pull every cable, then press return.'
	check 'offline: box one by name (flags a aaaa)' within 10 page one
	ask 'Switch the network on again, then press return.'
	check 'B112: the helper starts again' sudo launchctl kickstart -k system/dev.minimal.helper
	check 'and the leases are kept' within 10 page two
	check 'B101, B102: a second run changes nothing' sudo "$minhost" finalize-install --yes
	check 'B104, B108: another file in place of the running one' again
	check 'the boxes outlived it' page one
	check 'a deny-all box is refused' sh -c "! '$minhost' run --name deny --egress deny --no-strict -- /usr/bin/true"
	end_boxes
	check 'what is expected after the reboot' sudo "$minhost" verify --before-reboot
	say "now reboot (Apple menu > Restart), wait for the login window for half a minute, log in, and run: sh $0 after $minhost"
}
# again has minhost replace its installed program by the same bytes in a new file.
again() {
	inode=$(stat -f %i /Library/PrivilegedHelperTools/dev.minimal.minhost)
	sudo rm /Library/PrivilegedHelperTools/dev.minimal.minhost && "$minhost" finalize-install --yes &&
		[ "$(stat -f %i /Library/PrivilegedHelperTools/dev.minimal.minhost)" != "$inode" ] &&
		/Library/PrivilegedHelperTools/dev.minimal.minhost --version
}
after() {
	facts
	check 'B98: everything is back' sudo "$minhost" verify --after-reboot --wait 60s
	keep verify sudo "$minhost" verify --after-reboot
	keep 'B98: when' grep msg=ready /var/log/dev.minimal.loopback.log
	looks
	boxes
	ask 'System Settings > General > Login Items: is minhost among "Allow in the Background"? Switch it off, press return.' # B110
	keep 'B110: verify with the switch off' "$minhost" verify
	ask 'Switch it on again, press return.'
	end_boxes
	check undo "$minhost" finalize-install --undo --yes --force
	state >"$report/state-after.txt"
	check 'all is as it was' diff "$report/state-before.txt" "$report/state-after.txt"
	check 'B119: lookups of others do not wait' quick dscacheutil -q host -a name apple.com
	tar -czf "$report.tar.gz" -C "$HOME" "$(basename "$report")"
	say "read $report, then send $report.tar.gz"
}

sudo -v || exit 1
"$part"
say "$failed checks failed"
[ "$failed" = 0 ]
