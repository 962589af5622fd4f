package boxes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/netlab"
)

// request is one line to an agent, reply one line from it.
type request struct {
	Op string
	In json.RawMessage
}

type reply struct {
	Err string
	Out json.RawMessage
}

// agentMain is a process that does in a box what the test asks for, one request a line, until its
// input ends. It opens nothing before it is asked.
func agentMain([]string) int {
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		out, err := any(nil), json.Unmarshal(lines.Bytes(), &r)
		if err == nil {
			if op := ops[r.Op]; op != nil {
				out, err = op(r.In)
			} else {
				err = errors.New("no such op")
			}
		}
		var p reply
		if err != nil {
			p.Err = r.Op + ": " + err.Error()
		}
		if p.Out, err = json.Marshal(out); err != nil {
			p.Err = err.Error()
		}
		line, _ := json.Marshal(p)
		fmt.Println(string(line))
	}
	return 0
}

// op makes an operation of a function.
func op[In, Out any](f func(In) (Out, error)) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, err
		}
		return f(in)
	}
}

// agent is the test's side.
type agent struct {
	testing.TB
	*netlab.Proc
}

func startAgent(t testing.TB, s netlab.Spawn) *agent {
	t.Helper()
	a := &agent{t, netlab.Start(t, s, "agent")}
	a.Line()
	return a
}

// ask sends one request and waits for its answer; an error of the agent ends the test.
func ask[Out any](a *agent, op string, in any) (out Out) {
	a.TB.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		a.Fatal(err)
	}
	line, err := json.Marshal(request{op, raw})
	if err != nil {
		a.Fatal(err)
	}
	a.Say(string(line))
	var r reply
	if err := json.Unmarshal([]byte(a.Line()), &r); err != nil {
		a.Fatal(err)
	}
	if r.Err != "" {
		a.Fatal("agent: " + r.Err)
	}
	if err := json.Unmarshal(r.Out, &out); err != nil {
		a.Fatal(err)
	}
	return out
}

// dial makes one attempt from the agent.
func (a *agent) dial(network, address string) netlab.Outcome {
	a.TB.Helper()
	return ask[netlab.Outcome](a, "dial", netlab.Dial{Network: network, Address: address})
}

// dialPatiently is for what is admitted: it may take its time on a machine that does much else.
func (a *agent) dialPatiently(network, address string) netlab.Outcome {
	a.TB.Helper()
	return ask[netlab.Outcome](a, "dial", netlab.Dial{Network: network, Address: address, Timeout: 20 * time.Second})
}

// serve starts an echo server in the agent.
func (a *agent) serve(network, address string) (at string) {
	a.TB.Helper()
	return ask[string](a, "serve", [2]string{network, address})
}
