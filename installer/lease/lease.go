package lease

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/netip"
	"regexp"
	"time"
)

// schema is the version of the durable form. A reader refuses another one.
const schema = "minhost/v1/lease"

// Lease is what the helper records about one box.
type Lease struct {
	ID      string
	Number  uint16
	UID     uint32
	Name    string     // "" for a box without a name
	Address netip.Addr // invalid for a box without an address
	Policy  Policy
	State   State
	// SecretHash is the sha256 of the secret, which is not kept.
	SecretHash [sha256.Size]byte
	// EndWithConnection: the box ends when its owner's connection closes.
	EndWithConnection bool
	// Mode is whose network the box has.
	Mode Mode
	// OwnLocalhost: what the box binds on localhost or a wildcard is bound on its own address.
	OwnLocalhost bool
	// Tap is what Attach makes in the namespace of an own-ip box; zero for others.
	Tap Tap
	// NetNS is the number of the network namespace of an attached none or own-ip box, else 0.
	NetNS uint64
	// Attempt is the runner's own id of the try that planned it.
	Attempt string
	// Unenforced: the caller let a confined box run where the host can't enforce.
	Unenforced bool
	// Strict: the runner declared that the box's processes are kept from asking others to act for them.
	Strict bool
	// Cutting: the policy is new, and live flows that it does not admit are being ended.
	Cutting bool
	// Generation is 0 or 1, and the other one with each new policy.
	Generation uint8
	Since      time.Time
}

// Mode of a box, as the interface spells it.
type Mode string

// Mode values.
const (
	ModeNone  Mode = "none"
	ModeHost  Mode = "host"
	ModeOwnIP Mode = "own_ip"
)

// Tap is the device of an own-ip box.
type Tap struct {
	Address netip.Prefix // of the box, with its subnet
	Gateway netip.Addr   // inside it
	MTU     int
	Name    string
}

// idPattern is what NewID makes; nothing else ever becomes the name of a folder.
var idPattern = regexp.MustCompile(`^b[0-9a-f]{16}$`)

// ValidID says whether s has the form of a lease id.
func ValidID(s string) bool { return idPattern.MatchString(s) }

// NewID returns a fresh lease id.
func NewID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return "b" + hex.EncodeToString(b[:])
}

// NewSecret returns a fresh secret, 32 octets in base64url, and its hash.
func NewSecret() (string, [sha256.Size]byte) {
	var b [32]byte
	rand.Read(b[:])
	s := base64.RawURLEncoding.EncodeToString(b[:])
	return s, sha256.Sum256([]byte(s))
}

// Owns compares a secret in constant time.
func (l Lease) Owns(secret string) bool {
	h := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(h[:], l.SecretHash[:]) == 1
}
