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

// spareDescriptors is the number of file descriptors that a process needs for HTTP, Redis, files
// and links between instances. Each subscriber needs one more.
const spareDescriptors = 500

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

// webSocketPaths maps each value of --transport to its WebSocket path, "" for none.
var webSocketPaths = map[string]string{"tcp": "", "ws": "/ws", "http": "/ws"}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	f := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.SortFlags = false
	f.IntVarP(&o.connections, "connections", "n", 10_000, "subscribers, each with its own connection and client id")
	f.IntVar(&o.channels, "channels", 1, "channels; each subscriber has one of them")
	f.IntVarP(&o.publishers, "publishers", "p", 1, "concurrent publishers")
	f.IntVarP(&o.messages, "messages", "m", 100, "pushes in each of the two phases, round robin over the channels")
	f.IntVar(&o.size, "size", 90, "payload size in bytes")
	f.StringVar(&o.transport, "transport", "tcp", "tcp, ws (WebSocket on the TCP port) or http (WebSocket on the HTTP port)")
	f.StringVar(&o.urlHTTP, "url-http", "", "HTTP address of a running broker without authorization; if empty, a broker is started")
	f.StringVar(&o.urlTCP, "url-tcp", "", "TCP address of that broker")
	f.StringVar(&o.urlPprof, "url-pprof", "", "address of that broker's pprof listener, to read the memory of its Go runtime")
	f.IntVar(&o.pid, "pid", 0, "process id of that broker")
	f.StringVar(&o.broker, "broker", "", "broker program to start; if empty, ./cmd/broker is built")
	f.StringVar(&o.redis, "redis", "", "URL of the Redis that the broker uses; keys get a prefix and are removed at the end")
	f.BoolVar(&o.floor, "floor", true, "measure plain write(2) first")
	f.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	f.DurationVar(&o.stall, "stall", 10*time.Second, "give up after this time without a message")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return o, o.check()
}

// check validates the options and converts the addresses to host:port.
func (o *options) check() error {
	var errs []error
	for _, n := range []struct {
		name            string
		value, min, max int
	}{
		{"connections", o.connections, 1, maxConnections()},
		{"channels", o.channels, 1, o.connections},
		{"publishers", o.publishers, 1, spareDescriptors / 2},
		{"messages", o.messages, 1, 1_000_000},
		{"size", o.size, minPayload, 64 << 10},
	} {
		if n.value < n.min || n.value > n.max {
			errs = append(errs, fmt.Errorf("--%s: %d is not between %d and %d", n.name, n.value, n.min, n.max))
		}
	}
	if _, ok := webSocketPaths[o.transport]; !ok {
		errs = append(errs, fmt.Errorf("--transport: %q is none of tcp, ws, http", o.transport))
	}
	if o.stall <= 0 {
		errs = append(errs, fmt.Errorf("--stall: %v is not positive", o.stall))
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
		errs = append(errs, errors.New("a running broker needs --url-http, --pid and, unless --transport is http, --url-tcp"))
	case running && o.broker != "":
		errs = append(errs, errors.New("--broker starts a broker; --url-http names a running one"))
	}
	return errors.Join(errs...)
}

// maxConnections is the number of subscribers that fit the descriptor limit of the broker and of
// this process.
func maxConnections() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 10_000
	}
	return max(1, int(min(limit.Cur, 1<<20))-spareDescriptors)
}

// minPayload is the size of a payload with empty text.
const minPayload = len(`{"text":""}`)

// payload returns a JSON object of size bytes.
func payload(size int) []byte {
	return fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("a", size-minPayload))
}

// channelNames returns the channels of the run.
func (o *options) channelNames() []string {
	names := make([]string, o.channels)
	for i := range names {
		names[i] = fmt.Sprintf("bench-%d", i)
	}
	return names
}
