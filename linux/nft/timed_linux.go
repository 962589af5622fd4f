package nft

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// userComment is the type of a comment in an element's user data, as the nft program writes and shows it.
const userComment = 0

// lifetime is the attributes that make the kernel drop an element, and its comment.
func lifetime(e Element, now time.Time) []netlink.Attribute {
	left := uint64(max(1, e.Until-now.UnixMilli()))
	text := cstr(e.comment())
	return []netlink.Attribute{
		attr(unix.NFTA_SET_ELEM_TIMEOUT, binary.BigEndian.AppendUint64(nil, left)),
		attr(unix.NFTA_SET_ELEM_USERDATA, append([]byte{userComment, byte(len(text))}, text...)),
	}
}

// readLifetime finds the comment in user data: records of type, length and value.
func readLifetime(user []byte) int64 {
	for len(user) >= 2 {
		n := 2 + int(user[1])
		if n > len(user) {
			return 0
		}
		if user[0] == userComment {
			return readComment(cstring(user[2:n]))
		}
		user = user[n:]
	}
	return 0
}

// lasting drops the elements that the kernel has dropped, or would at once. With a zero time none is.
func lasting(elements []Element, now time.Time) []Element {
	if now.IsZero() || !slices.ContainsFunc(elements, func(e Element) bool { return e.over(now) }) {
		return elements
	}
	return slices.DeleteFunc(slices.Clone(elements), func(e Element) bool { return e.over(now) })
}
