PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
umask 077

fail() {
	printf 'minhost install: %s\n' "$*" >&2
	exit 1
}

# Every folder from / to $1 must be a real one, root's, and writable by nobody else.
trusted() {
	folder=$1
	while :; do
		read -r mode _ owner _ <<-END
			$(ls -ldn "$folder")
		END
		case $mode in
		d????-??-*) ;;
		*) fail "$folder is not a folder that only root can write; look: ls -ld $folder" ;;
		esac
		[ "$owner" = 0 ] || fail "$folder belongs to uid $owner, not to root; look: ls -ld $folder"
		[ "$folder" != / ] || break
		parent "$folder"
		folder=$up
	done
}

# Sets up to the parent of $1; a command substitution would lose a newline at its end.
parent() {
	up=${1%/*}
	up=${up:-/}
}

sum() {
	if command -v sha256sum >/dev/null; then
		sha256sum <"$1"
	elif command -v shasum >/dev/null; then
		shasum -a 256 <"$1"
	else
		fail 'neither sha256sum nor shasum is installed; install coreutils'
	fi
}

[ "$(id -u)" = 0 ] || fail 'not root; run it again: sudo sh <this file>'

# The nearest folder above the program that exists. The copy lives there while it runs: a folder
# made here would look to the engine as one that was there before.
parent "$program"
place=$up
while [ ! -d "$place" ]; do
	if [ -e "$place" ] || [ -h "$place" ]; then
		fail "$place is in the way; look: ls -ld $place"
	fi
	parent "$place"
	place=$up
done
trusted "$place"

copy=$(mktemp -d "${place%/}/.minhost-install.XXXXXXXX")
trap 'rm -rf "$copy"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

cp "$binary" "$copy/minhost"
found=$(sum "$copy/minhost")
found=${found%% *}
[ "$found" = "$sha256" ] || fail "sha256 of $binary is $found, the plan has $sha256; make a new plan"
chmod 0700 "$copy/minhost"
umask 022
"$copy/minhost" finalize-install --apply "$@"
