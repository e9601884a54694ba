package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// spare is how many descriptors a process needs for other things than subscribers: HTTP,
// Redis, files, links between instances.
const spare = 500

// options are the flags.
type options struct {
	connections, channels, publishers, messages, size int

	transport string
	urlHTTP   string // host:port once parsed
	urlTCP    string // host:port once parsed
	urlPprof  string // host:port once parsed
	pid       int
	broker    string
	redis     string
	floor     bool
	json      bool
	stall     time.Duration
}

// paths are the values of --transport, and where each has its WebSocket.
var paths = map[string]string{"tcp": "", "ws": "/ws", "http": "/ws"}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	f := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.SortFlags = false
	f.IntVarP(&o.connections, "connections", "n", 10_000, "subscribers, each a connection with a client id of its own")
	f.IntVar(&o.channels, "channels", 1, "channels that the subscribers are spread over, one each")
	f.IntVarP(&o.publishers, "publishers", "p", 1, "how many push at once")
	f.IntVarP(&o.messages, "messages", "m", 100, "pushes of each of the two phases, round robin over the channels")
	f.IntVar(&o.size, "size", 90, "bytes of a payload")
	f.StringVar(&o.transport, "transport", "tcp", "tcp, ws (the TCP port) or http (/ws on the HTTP port)")
	f.StringVar(&o.urlHTTP, "url-http", "", "HTTP address of a running broker, open to anybody; zero starts one")
	f.StringVar(&o.urlTCP, "url-tcp", "", "TCP address of that broker")
	f.StringVar(&o.urlPprof, "url-pprof", "", "address of its profiles (pprof), for the memory of its Go runtime")
	f.IntVar(&o.pid, "pid", 0, "process id of that broker")
	f.StringVar(&o.broker, "broker", "", "program to start; zero builds ./cmd/broker")
	f.StringVar(&o.redis, "redis", "", "URL of the Redis that the broker uses; keys get a prefix of their own and are removed again")
	f.BoolVar(&o.floor, "floor", true, "measure bare write(2) first")
	f.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	f.DurationVar(&o.stall, "stall", 10*time.Second, "give up when nothing arrives for so long")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q belongs to no flag", f.Arg(0))
	}
	return o, o.check()
}

// check says what is wrong, and turns the addresses into host:port.
func (o *options) check() error {
	var errs []error
	for _, n := range []struct {
		name            string
		value, min, max int
	}{
		{"connections", o.connections, 1, mostConnections()},
		{"channels", o.channels, 1, o.connections},
		{"publishers", o.publishers, 1, spare / 2},
		{"messages", o.messages, 1, 1_000_000},
		{"size", o.size, minSize, 64 << 10},
	} {
		if n.value < n.min || n.value > n.max {
			errs = append(errs, fmt.Errorf("--%s: %d is not within %d and %d", n.name, n.value, n.min, n.max))
		}
	}
	if _, ok := paths[o.transport]; !ok {
		errs = append(errs, fmt.Errorf("--transport: %q is none of tcp, ws, http", o.transport))
	}
	if o.stall <= 0 {
		errs = append(errs, fmt.Errorf("--stall: %v is no time to wait", o.stall))
	}
	for _, u := range []*string{&o.urlHTTP, &o.urlTCP, &o.urlPprof} {
		if strings.Contains(*u, "://") {
			parsed, err := url.Parse(*u)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			*u = parsed.Host
		}
	}
	switch running := o.urlHTTP != "" || o.urlTCP != "" || o.pid != 0; {
	case running && (o.urlHTTP == "" || o.pid == 0 || o.urlTCP == "" && o.transport != "http"):
		errs = append(errs, errors.New("a running broker is named by --url-http, --pid and, unless --transport is http, --url-tcp"))
	case running && o.broker != "":
		errs = append(errs, errors.New("--broker starts one; --url-http names one that runs"))
	}
	return errors.Join(errs...)
}

// mostConnections is how many subscribers fit the descriptor limit, which broker and
// generator have in common.
func mostConnections() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 10_000
	}
	return max(1, int(min(limit.Cur, 1<<20))-spare)
}

// minSize is that of payload's frame.
const minSize = len(`{"text":""}`)

// payload is a JSON object of size bytes.
func payload(size int) []byte {
	return fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("a", size-minSize))
}

// channelNames are the channels of the run.
func (o *options) channelNames() []string {
	names := make([]string, o.channels)
	for i := range names {
		names[i] = fmt.Sprintf("bench-%d", i)
	}
	return names
}
