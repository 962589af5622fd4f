package host

// Settable is the part of Attr that can be set: owner, group, permissions and the set-id and
// sticky bits, without the type of the file that Lstat adds.
func (a Attr) Settable() Attr {
	a.Mode &= settable
	return a
}
