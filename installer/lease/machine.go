package lease

// State of a lease (DESIGN.md section 8). Gone leases are not kept, but remembered for 60 s.
type State string

// States in the order of a life.
const (
	Planned   State = "planned"
	Attaching State = "attaching"
	Attached  State = "attached"
	Ending    State = "ending"
	Gone      State = "gone"
)

// Op is what somebody asks of a lease.
type Op string

// Ops. Use stands for Join, Update, Listen and Adopt.
const (
	OpAttach   Op = "attach"
	OpUse      Op = "use"
	OpAbandon  Op = "abandon"
	OpTeardown Op = "teardown"
)

// Reply is what a lease answers to an op, before anything is done.
type Reply int

// Replies. Proceed goes on; Same repeats the result of the op that ended the lease.
const (
	Proceed Reply = iota
	WrongState
	Busy
	Same
	NoSuchLease
)

// table is DESIGN.md's state table, columns Attach, Join/Update/Listen/Adopt, Abandon, Teardown.
var table = map[State]map[Op]Reply{
	Planned:   {OpAttach: Proceed, OpUse: WrongState, OpAbandon: Proceed, OpTeardown: WrongState},
	Attaching: {OpAttach: Busy, OpUse: Busy, OpAbandon: Busy, OpTeardown: Busy},
	Attached:  {OpAttach: WrongState, OpUse: Proceed, OpAbandon: WrongState, OpTeardown: Proceed},
	Ending:    {OpAttach: WrongState, OpUse: WrongState, OpAbandon: Same, OpTeardown: Same},
	Gone:      {OpAttach: NoSuchLease, OpUse: NoSuchLease, OpAbandon: Same, OpTeardown: Same},
}

// Ask reads the state table.
func Ask(s State, op Op) Reply {
	if r, ok := table[s][op]; ok {
		return r
	}
	return NoSuchLease
}
