package launchd

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
)

// Status is what "launchctl print" says of a job: a hint for people, whose words and layout change
// between releases. No decision hangs on State.
type Status struct {
	Loaded  bool
	State   string // "running", "not running", "xpcproxy" (on its way), "spawn scheduled" (throttled)
	PID     int    // 0 when there is none or none was printed
	Exit    string // "0", "78: EX_CONFIG", "(never exited)", ""
	Signal  string // "Killed: 9", ""
	Runs    int
	Program string
}

func (s Status) String() string {
	if !s.Loaded {
		return "not loaded"
	}
	words := []string{s.State}
	if s.Exit != "" && s.Exit != "(never exited)" {
		words = append(words, "last exit code "+s.Exit)
	}
	if s.Signal != "" {
		words = append(words, "last killed by "+s.Signal)
	}
	if s.Runs > 1 {
		words = append(words, strconv.Itoa(s.Runs)+" runs")
	}
	return strings.Join(words, ", ")
}

// parsePrint reads the outermost block only: blocks inside have states of their own (endpoints,
// sockets), which have been taken for the job's. Old releases indent by tabs, new ones may not, so
// braces count and blanks do not.
func parsePrint(text []byte) Status {
	s := Status{Loaded: true}
	depth := 0
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case strings.HasSuffix(line, "{"):
			depth++
			continue
		case line == "}":
			depth--
			continue
		}
		key, value, ok := strings.Cut(line, " = ")
		if !ok || depth != 1 {
			continue
		}
		switch key {
		case "state":
			s.State = value
		case "pid":
			s.PID, _ = strconv.Atoi(value)
		case "last exit code":
			s.Exit = value
		case "last terminating signal":
			s.Signal = value
		case "runs":
			s.Runs, _ = strconv.Atoi(value)
		case "program":
			s.Program = value
		}
	}
	return s
}

// parseDisabled reads "launchctl print-disabled system" for one label, by the whole label and in both
// layouts: `"label" => true` of older releases and `"label" => disabled` of newer ones. A label that is
// not listed is not disabled.
func parseDisabled(text []byte, label string) bool {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=>")
		if ok && strings.Trim(strings.TrimSpace(name), `"`) == label {
			value = strings.TrimSpace(value)
			return value == "true" || value == "disabled"
		}
	}
	return false
}
