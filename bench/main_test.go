//go:build long

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"switchboard/bench/system"
)

// program is the path of the broker, built once for all tests.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if len(os.Args) > 1 && os.Args[1] == floorCommand { // started by measureFloor
		return command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	dir, err := os.MkdirTemp("", "bench-test-")
	if err == nil {
		defer os.RemoveAll(dir)
		program, err = system.BuildBroker(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// runBench runs the command and decodes its JSON.
func runBench(t *testing.T, args ...string) (result, int) {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var out bytes.Buffer
	code := command(append(args, "--json", "--broker", program), strings.NewReader(""), &out, log)
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		stderr, _ := os.ReadFile(log.Name())
		t.Fatalf("%v: %s\n%s", err, &out, stderr)
	}
	return r, code
}

// TestRun runs a small measurement over each transport. It checks that figures exist, not their
// values.
func TestRun(t *testing.T) {
	for _, transport := range []string{"tcp", "ws", "http"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			r, code := runBench(t, "-n", "50", "-m", "20", "--channels", "3", "--publishers", "2", "--transport", transport)
			if code != 0 || !r.Valid || r.Wrong != 0 || r.Error != "" {
				t.Fatalf("exit code %d: %+v", code, r)
			}
			if r.Floor.Writes != 50*20 {
				t.Errorf("the floor has %d writes", r.Floor.Writes)
			}
			for i, p := range r.Phases {
				// The channels have 17, 17 and 16 subscribers. They receive 7, 7 and 6 of the 20 pushes.
				if p.Name != phases[i].name || p.Pushes != 20 || p.Deliveries != 7*17+7*17+6*16 {
					t.Errorf("phase %+v", p)
				}
			}
			if len(r.Phases) != len(phases) || r.Memory.Full <= r.Memory.Empty || r.Memory.Go == nil {
				t.Errorf("incomplete result: %+v, memory %+v", r, r.Memory)
			}
		})
	}
}

// TestNoBroker checks that a run without a working broker fails and prints the reason.
func TestNoBroker(t *testing.T) {
	log, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var out bytes.Buffer
	code := command([]string{"-n", "1", "--floor=false", "--broker", "/bin/false"}, nil, &out, log)
	if code != 1 || !strings.Contains(out.String(), "DOES NOT COUNT") || !strings.Contains(out.String(), "the broker ended: exit status 1") {
		t.Errorf("exit code %d:\n%s", code, &out)
	}
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"--connections 0", "--connections: 0 is not between"},
		{"--connections 100000000", "--connections: 100000000 is not between"},
		{"--channels 11 -n 10", "--channels: 11 is not between 1 and 10"},
		{"--transport udp", `"udp" is none of`},
		{"--size 5", "--size: 5 is not between"},
		{"--stall 0s", "--stall: 0s"},
		{"--pid 1", "a running broker needs"},
		{"--url-http http://127.0.0.1:1 --pid 1", "a running broker needs"},
		{"--url-http 127.0.0.1:1 --url-tcp 127.0.0.1:2 --pid 1 --broker x", "--broker starts a broker"},
		{"--nonsense", "unknown flag"},
		{"word", "unexpected argument"},
	} {
		if _, err := parseOptions(strings.Fields(tc.args), io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", tc.args, err, tc.want)
		}
	}
	o, err := parseOptions(strings.Fields("--url-http http://127.0.0.1:1/ --transport http --pid 1"), io.Discard)
	if err != nil || o.urlHTTP != "127.0.0.1:1" || len(payload(o.size)) != 90 || !json.Valid(payload(o.size)) {
		t.Errorf("%+v, %v", o, err)
	}
}
