package resolved

import "strings"

// Status is what a source of nsswitch.conf(5) can return.
type Status string

const (
	success  Status = "SUCCESS"
	notFound Status = "NOTFOUND"
	unavail  Status = "UNAVAIL"
	tryAgain Status = "TRYAGAIN"
)

// Source is one source of the hosts line.
type Source struct {
	Name string
	// Return holds the statuses after which the lookup ends here.
	Return map[Status]bool
}

// defaultHosts is glibc's own line when the file has none.
const defaultHosts = "hosts: files dns"

// ParseHosts reads the hosts line of nsswitch.conf: words apart by spaces or tabs, actions in
// brackets after the source they belong to, comments from # on. Without such a line it is glibc's
// default, and ok is false. The first hosts line counts.
func ParseHosts(text string) (sources []Source, ok bool) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		database, rest, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(database) == "hosts" {
			return parseSources(rest), true
		}
	}
	sources, _ = ParseHosts(defaultHosts)
	return sources, false
}

func parseSources(s string) []Source {
	var all []Source
	for {
		s = strings.TrimSpace(s)
		if s == "" {
			return all
		}
		if actions, found := strings.CutPrefix(s, "["); found {
			actions, s, _ = strings.Cut(actions, "]")
			if len(all) > 0 {
				all[len(all)-1].act(actions)
			}
			continue
		}
		end := strings.IndexAny(s, " \t\r\n[")
		if end < 0 {
			end = len(s)
		}
		all = append(all, Source{Name: s[:end], Return: map[Status]bool{success: true}})
		s = s[end:]
	}
}

// act applies actions such as "!UNAVAIL=return" or "NOTFOUND=return SUCCESS=continue". The third
// action, merge, goes on to the next source too.
func (s *Source) act(actions string) {
	for _, a := range strings.Fields(strings.ToUpper(actions)) {
		status, action, _ := strings.Cut(a, "=")
		status, not := strings.CutPrefix(status, "!")
		for _, one := range []Status{success, notFound, unavail, tryAgain} {
			if (Status(status) == one) != not {
				s.Return[one] = action == "RETURN"
			}
		}
	}
}
