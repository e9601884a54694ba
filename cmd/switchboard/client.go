package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"switchboard/client"
	"switchboard/cmd/internal/screen"
)

// clientFlags are the flags of connect.
type clientFlags struct {
	user, name, signingKey string
	tcp                    bool
	tcpAddresses           string
	presence, state        bool
	after                  int64
	count                  int
}

const clientHelp = `Connects as a client, over WebSocket or TCP, with the token of a client instead of an API key. It subscribes to CHANNELs,
runs the commands in the lines of the standard input, and prints each event and each answer as a line of JSON. It
reconnects and resumes like the Go client.

Commands are words, or messages of docs/protocol.md, like {"type":"publish","channel":"news","data":1,"ref":7}:

` + verbsHelp + `
DATA is JSON, or else text. An answer has the "ref" of its command, if there was one; a refusal is {"type":"error"}.

At the end of the input, connect goes on while it has subscriptions, and ends otherwise. Its exit code is that of the
first command that was refused. On a terminal it goes on after a refusal, and ends at quit or Ctrl-D.

The token is in --token-file, which is read again when the broker asks for a newer one, or in SWITCHBOARD_TOKEN. With
--signing-key the command issues its own tokens for --user. An open broker needs only --user, or nothing. With --client,
it is that device: it receives and acknowledges the messages of its queue. "switchboard queue" shows them without that.`

func (a *app) clientCommand() *cobra.Command {
	f := clientFlags{after: -1}
	c := &cobra.Command{
		Use: "connect [CHANNEL]...", Short: "Connects as a client, with a token", Long: clientHelp,
		Example: `  switchboard connect news --token-file alice.token
  switchboard connect chat:42 --user alice --signing-key token_secret --presence
  echo 'publish chat:42 {"text":"hi"}' | switchboard connect --user alice
  switchboard connect --tcp --user alice --client phone | jq -c 'select(.type=="message").data'`,
		Args: cobra.ArbitraryArgs, ValidArgsFunction: a.complete(a.channelNames),
		SuggestFor: []string{"listen", "subscribe", "publish", "client", "ws"},
	}
	flags := c.Flags()
	flags.StringVarP(&f.user, "user", "u", "", "the `user`, in an open broker or with --signing-key")
	flags.StringVarP(&f.name, "client", "c", "", "the `name` of this device, like phone; without it the broker assigns an id")
	flags.StringVar(&a.tokenFile, "token-file", "", "`file` with the token (SWITCHBOARD_TOKEN_FILE, or the token itself in SWITCHBOARD_TOKEN)")
	flags.StringVar(&f.signingKey, "signing-key", "", signingKeyHelp)
	flags.BoolVar(&f.tcp, "tcp", false, "connect over TCP, without encryption")
	flags.StringVar(&f.tcpAddresses, "tcp-address", "", "`addresses` for --tcp, separated by commas (default: the hosts of --url, port 7070)")
	flags.BoolVar(&f.presence, "presence", false, "also joins and leaves of the CHANNELs, and what clients show there")
	flags.BoolVar(&f.state, "state", false, "also the fields of the CHANNELs, and their changes")
	flags.Int64Var(&f.after, "after", -1, "begin after this `id`; 0 for all that the CHANNELs keep")
	flags.IntVar(&f.count, "count", 0, "end after `N` messages")
	c.RunE = a.run(func(ctx context.Context, channels []string) error { return a.runClient(ctx, f, channels) })
	return c
}

// liveClient is a running connect command.
type liveClient struct {
	*app
	*client.Client
	flags clientFlags
	token func(context.Context) (string, error) // nil without tokens
	stop  context.CancelFunc

	// order delays what arrives while a subscribe is under way, so that "subscribed" is printed before
	// the messages of the channel.
	order sync.RWMutex

	mu         sync.Mutex // guards the fields below
	messages   int
	subscribed map[string]bool // by name of the channel
	connected  chan struct{}   // closed when the broker has accepted the client
	reason     error           // why the last attempt failed, before the first connection
	first      error           // the refusal of the first command that was refused
}

// runClient connects, and runs commands until ctx or the input ends.
func (a *app) runClient(ctx context.Context, f clientFlags, channels []string) error {
	if err := a.chooseProfile(); err != nil {
		return err
	}
	a.screen = screen.New(a.stdout, true, a.color, a.getenv) // JSON, also on a terminal
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l := &liveClient{app: a, flags: f, stop: stop, subscribed: map[string]bool{}, connected: make(chan struct{})}
	options, err := l.options()
	if err != nil {
		return err
	}
	if l.Client, err = client.New(options); err != nil {
		return usage("%w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	err = l.work(ctx, channels, ended)
	stop()
	return errors.Join(err, <-ended)
}

// options returns the options of the client.
func (l *liveClient) options() (client.Options, error) {
	config, err := l.tlsConfig()
	if err != nil {
		return client.Options{}, err
	}
	o := client.Options{URLs: l.socketURLs(), TLS: config, Client: l.flags.name}
	l.handle(&o)
	switch {
	case l.flags.signingKey != "":
		key, err := l.signingKey(l.flags.signingKey)
		if err != nil {
			return o, err
		}
		l.token = func(context.Context) (string, error) {
			return issue(tokenFlags{user: l.flags.user, ttl: time.Hour}, key, time.Now())
		}
	case l.value(tokenSetting).text != "":
		if l.flags.user != "" {
			return o, usage("--user: the token says who the user is; --user is for an open broker, and for --signing-key")
		}
		l.token = func(context.Context) (string, error) {
			return l.secret(tokenSetting, "the file of the token", checkToken)
		}
	default:
		o.User = l.flags.user
		return o, nil
	}
	if _, err := l.token(context.Background()); err != nil {
		return o, err
	}
	o.TokenSource = l.token
	return o, nil
}

// checkToken returns the token in a text.
func checkToken(text, where string) (string, error) {
	text = strings.TrimSpace(text)
	if strings.Count(text, ".") != 2 || strings.ContainsAny(text, " \t\r\n") {
		return "", fmt.Errorf("%s: this is not a token (JWT), which has three parts with dots in between", where)
	}
	return text, nil
}

// socketURLs returns the addresses for the Go client.
func (l *liveClient) socketURLs() (urls []string) {
	if !l.flags.tcp && l.flags.tcpAddresses == "" {
		return webSocketURLs(l.addresses())
	}
	list := split(l.flags.tcpAddresses)
	if len(list) == 0 && l.profile.file != nil && l.ownAddresses() {
		list = split(l.profile.TCP)
	}
	if len(list) == 0 {
		for _, address := range l.addresses() {
			if u, err := url.Parse(address); err == nil {
				list = append(list, net.JoinHostPort(u.Hostname(), "7070"))
			}
		}
	}
	for _, address := range list {
		urls = append(urls, "tcp://"+address)
	}
	return urls
}

// webSocketURLs returns the addresses of WebSockets for those of the HTTP API.
func webSocketURLs(addresses []string) (urls []string) {
	for _, u := range addresses {
		urls = append(urls, "ws"+strings.TrimPrefix(strings.TrimSuffix(u, "/"), "http")+"/ws")
	}
	return urls
}

// work waits for the first connection, subscribes to the channels and runs the commands. ended
// receives the result of Run, and has it again afterwards.
func (l *liveClient) work(ctx context.Context, channels []string, ended chan error) error {
	late := time.NewTimer(l.timeout)
	defer late.Stop()
	select {
	case <-l.connected:
	case err := <-ended:
		ended <- nil
		return err
	case <-ctx.Done():
		return nil
	case <-late.C:
		l.mu.Lock()
		defer l.mu.Unlock()
		return &unreachableError{l.reason, l.timeout}
	}
	for _, channel := range channels {
		verb := fmt.Sprintf("subscribe %s after=%d", channel, l.flags.after)
		if l.flags.after < 0 {
			verb = "subscribe " + channel
		}
		if l.flags.presence {
			verb += " presence"
		}
		if l.flags.state {
			verb += " state"
		}
		l.execute(ctx, verb)
	}
	if l.first != nil {
		return l.result()
	}
	if err := l.readCommands(ctx, ended); err != nil {
		return err
	}
	return l.result()
}

// result returns the refusal of the first command that was refused. It is printed already.
func (l *liveClient) result() error {
	switch {
	case l.screen.Err() != nil:
		return l.screen.Err()
	case l.first != nil && !screen.IsTerminal(l.stdin):
		return errDone(exitCode(l.first))
	}
	return nil
}

// unreachableError says that there was no connection in time.
type unreachableError struct {
	reason  error // nil if no attempt has failed yet
	timeout time.Duration
}

// Error implements error.
func (e *unreachableError) Error() string {
	if e.reason == nil {
		return fmt.Sprintf("no connection within %s", e.timeout)
	}
	return fmt.Sprintf("no connection within %s: %v", e.timeout, e.reason)
}

// Unwrap returns the reason of the last attempt.
func (e *unreachableError) Unwrap() error { return e.reason }
