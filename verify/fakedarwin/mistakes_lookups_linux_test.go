package fakedarwin

const resolverdPkg = "./resolverd"

// lookups are mistakes with what mDNSResponder asks, reads and remembers.
var lookups = []mistake{
	{"negative answers without an SOA: every lookup of the Mac stalls", "resolverd/resolve.go", "authoritative: true, ns: []dns.RR{soa}}", "authoritative: true, ns: []dns.RR{soa}[:0]}", resolverdPkg, "TestAnswers"},
	{"a record before the SOA, which must be the first", "resolverd/resolve.go", "authoritative: true, ns: []dns.RR{soa}}",
		"authoritative: true, ns: []dns.RR{nsRecord(\"x.min.internal.\"), soa}}", resolverdPkg, "TestAnswers"},
	{"AAAA of a name that exists is no such name: the A is forgotten with it", "resolverd/resolve.go", "		return negative(dns.RcodeSuccess, soaRecord(suffix(asked, Origin), z))\n	case k == absent:",
		"		return negative(dns.RcodeNameError, soaRecord(suffix(asked, Origin), z))\n	case k == absent:", resolverdPkg, "TestEveryTypeAtAHeldName"},
	{"an A record in reply to AAAA, HTTPS or SVCB", "resolverd/resolve.go", "if addr.IsValid() && (q.qtype == dns.TypeA || q.qtype == dns.TypeANY) {", "if addr.IsValid() {", resolverdPkg, "TestEveryTypeAtAHeldName"},
	{"_dns.resolver.arpa, which Macs ask every resolver for, is refused", "resolverd/resolve.go", "		return discovery\n", "		return outside\n", resolverdPkg, "TestAnswers"},
	{"a reply without its question", "resolverd/answer.go", "	if q.question != nil {\n", "	if q.question == nil {\n", resolverdPkg, "TestAnswers"},
	{"a reply with control data: the socket is bound to every interface", "resolverd/datagram/datagram.go", "	_, err := p.conn.WriteToUDPAddrPort(p.one[0].Reply, p.one[0].From)",
		"	_, _, err := p.conn.WriteMsgUDPAddrPort(p.one[0].Reply, nil, p.one[0].From)", "./resolverd/datagram", "TestNoControlData"},
	{"two blanks in the resolver file", "darwin/resolverfile/file.go", `"nameserver %s\nport`, `"nameserver  %s\nport`, resolverfilePkg, "TestRender"},
	{"CR LF in the resolver file", "darwin/resolverfile/file.go", `"nameserver %s\nport`, `"nameserver %s\r\nport`, resolverfilePkg, "TestRender"},
	{"no port in the resolver file", "darwin/resolverfile/file.go", `\nport %d\nflags`, `\n# %d\nflags`, resolverfilePkg, "TestRender"},
	{"no flags line: a Mac without a network looks nothing up", "darwin/resolverfile/file.go", `\nflags a aaaa\n`, `\n`, resolverfilePkg, "TestRender"},
	{"a resolver of port 53 counts as ours", "darwin/resolverfile/scutil.go", " && r.Port == int(s.Port())", "", resolverfilePkg, "TestScutil"},
	{"the text of scutil is believed, nobody looks a name up", "darwin/resolverfile/step.go", "	if err := s.lookup(ctx); err != nil {", "	if err := error(nil); err != nil {", resolverfilePkg, "TestElsewhere"},
	{"a temporary file inside /etc/resolver", "darwin/resolverfile/file.go", "	if dir == Dir {\n", "	if dir == \"\" {\n", resolverfilePkg, "TestTemporaryNames"},
	{"removing /etc/resolver though others use it", "installer/host/filestep/change.go", "			return nil // somebody uses it by now\n",
		"			for _, n := range names {\n				s.fs.Remove(dir + \"/\" + n)\n			}\n", resolverfilePkg, "TestApplyUndo"},
	{"the resolver file is written before the answerer answers", "darwin/resolverfile/step.go", "	if err := s.Answers(ctx); err != nil {\n		return fmt.Errorf(\"%s is not written",
		"	if err := error(nil); err != nil {\n		return fmt.Errorf(\"%s is not written", resolverfilePkg, "TestNeverOverADeadAnswerer"},
	{"undo takes the answerer before the resolver file", "darwin/order.go", "p.Answerer, p.Helper, p.Names}", "p.Names, p.Answerer, p.Helper}", "./darwin", "TestOrder"},
	{"an edited file counts as ours, and is overwritten", "darwin/resolverfile/file.go", "return marker == Marker && line == sumPrefix+sum(body)", "_, _ = line, body\n	return marker == Marker",
		resolverfilePkg, "TestOurs"},
}
