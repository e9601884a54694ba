package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"switchboard/bench/swarm"
	"switchboard/bench/system"
)

// options are the flags.
type options struct {
	quick, json  bool
	only, system *regexp.Regexp // nil means all
	rounds       int
	out          string
	broker       string
	stall        time.Duration
	load         size // 0 means that of the scenario
	transport    string
	external     system.External
}

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := pflag.NewFlagSet("suite", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.SortFlags = false
	only, systems := "", ""
	f.BoolVar(&o.quick, "quick", false, "fewer and smaller measurements, under five minutes; prints the table, and writes files only with --out")
	f.StringVar(&only, "only", "", "regular expression: run only scenarios with matching ids")
	f.StringVar(&systems, "system", "", "regular expression: run only systems with matching names")
	f.IntVar(&o.rounds, "rounds", 0, "number of rounds; 0 means 4, or 2 with --quick")
	f.StringVar(&o.out, "out", "", "directory of the report; default bench, or none with --system and the flags below")
	f.BoolVar(&o.json, "json", false, "print the results as JSON and write no report")
	f.IntVarP(&o.load.connections, "connections", "n", 0, "subscribers, a multiple of the channels; 0 means those of the scenario, as in the next four")
	f.IntVar(&o.load.channels, "channels", 0, "channels; each subscriber has one of them")
	f.IntVarP(&o.load.publishers, "publishers", "p", 0, "concurrent publishers")
	f.IntVarP(&o.load.pushes, "messages", "m", 0, "pushes, one at a time")
	f.IntVar(&o.load.bytes, "size", 0, "payload size in bytes")
	f.DurationVar(&o.stall, "stall", 10*time.Second, "a measurement fails after this time without a message")
	f.StringVar(&o.broker, "broker", "", "broker program to start; if empty, ./cmd/broker is built")
	f.StringVar(&o.external.HTTP, "url-http", "", "measure only this running broker without authorization: its HTTP address")
	f.StringVar(&o.external.TCP, "url-tcp", "", "TCP address of that broker")
	f.StringVar(&o.external.Pprof, "url-pprof", "", "address of that broker's pprof listener, to read its heap")
	f.IntVar(&o.external.PID, "pid", 0, "process id of that broker")
	f.StringVar(&o.transport, "transport", "tcp", "of subscribers of that broker: tcp, ws (WebSocket on the TCP port), http (WebSocket on the HTTP port) or sse")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.only, err = compile("only", only); err != nil {
		return o, err
	}
	if o.system, err = compile("system", systems); err != nil {
		return o, err
	}
	if len(matchingScenarios(o.only)) == 0 {
		return o, fmt.Errorf("--only: %s matches no scenario", only)
	}
	if o.rounds < 0 {
		return o, fmt.Errorf("--rounds: %d is negative", o.rounds)
	}
	if o.rounds == 0 {
		o.rounds = map[bool]int{false: 4, true: 2}[o.quick]
	}
	// The report is of all systems with the sizes of the scenarios.
	if !o.quick && o.system == nil && o.load == (size{}) && o.external == (system.External{}) {
		o.out = cmp.Or(o.out, "bench")
	}
	return o, errors.Join(o.checkLoad(), o.checkExternal())
}

// compile returns the regular expression of a flag, nil for "".
func compile(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return pattern, nil
}

// spareDescriptors is the number of file descriptors that a process needs for HTTP, Redis, files
// and links between instances. Each subscriber needs one more.
const spareDescriptors = 500

// checkLoad returns an error if a size is out of range.
func (o *options) checkLoad() error {
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) // 0 allows one connection
	var errs []error
	for _, n := range []struct {
		name            string
		value, min, max int
	}{
		{"connections", o.load.connections, 1, max(1, int(min(limit.Cur, 1<<20))-spareDescriptors)},
		{"channels", o.load.channels, 1, cmp.Or(o.load.connections, 1<<20)},
		{"publishers", o.load.publishers, 1, spareDescriptors / 2},
		{"messages", o.load.pushes, 1, 1_000_000},
		{"size", o.load.bytes, swarm.MinPayload, swarm.MaxPayload},
	} {
		if n.value != 0 && (n.value < n.min || n.value > n.max) {
			errs = append(errs, fmt.Errorf("--%s: %d is not between %d and %d", n.name, n.value, n.min, n.max))
		}
	}
	if o.stall <= 0 {
		errs = append(errs, fmt.Errorf("--stall: %v is not positive", o.stall))
	}
	return errors.Join(errs...)
}

// checkExternal checks the addresses of a running broker, and converts them to host:port.
func (o *options) checkExternal() error {
	e := &o.external
	for _, u := range []*string{&e.HTTP, &e.TCP, &e.Pprof} {
		if strings.Contains(*u, "://") {
			parsed, err := url.Parse(*u)
			if err != nil {
				return err
			}
			*u = parsed.Host
		}
	}
	onHTTP := o.transport == "http" || o.transport == "sse"
	switch running := *e != (system.External{}); {
	case !slices.Contains([]string{"tcp", "ws", "http", "sse"}, o.transport):
		return fmt.Errorf("--transport: %q is none of tcp, ws, http, sse", o.transport)
	case running && (e.HTTP == "" || e.PID == 0 || e.TCP == "" && !onHTTP):
		return errors.New("a running broker needs --url-http, --pid and, unless subscribers use HTTP, --url-tcp")
	case running && o.broker != "":
		return errors.New("--broker starts a broker; --url-http names a running one")
	}
	return nil
}

// suite returns the suite of the options.
func (o *options) suite() *suite {
	s := &suite{scenarios: matchingScenarios(o.only), rounds: o.rounds, quick: o.quick, broker: o.broker, load: o.load, systems: o.system, stall: o.stall}
	if o.external != (system.External{}) {
		s.external = &contender{name: "switchboard external", system: &o.external, transport: o.transport}
	}
	return s
}
