package lease

// Traffic is what passed: packets and their bytes from the network header on.
type Traffic struct {
	SentPackets, SentBytes         uint64
	ReceivedPackets, ReceivedBytes uint64
}

// Plus adds two of them.
func (t Traffic) Plus(o Traffic) Traffic {
	return Traffic{t.SentPackets + o.SentPackets, t.SentBytes + o.SentBytes,
		t.ReceivedPackets + o.ReceivedPackets, t.ReceivedBytes + o.ReceivedBytes}
}

// Planes is the traffic of a host by who sent and received it.
type Planes struct {
	// Node is everything that is in no box.
	Node Traffic
	// Cohort is all boxes together, those that have ended too.
	Cohort Traffic
	// Boxes by leaf.
	Boxes map[uint64]Traffic
	// Runners, which are of the node too, by the cgroup node/<uid>.
	Runners map[uint64]Traffic
}
