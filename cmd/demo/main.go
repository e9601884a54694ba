// Command demo starts a broker in memory and a page that uses it: a lobby with rooms, a game, a
// leaderboard, a hall with seats to buy, and a scene with avatars. docs/demo.md is a tour of the
// code.
package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sync/errgroup"

	"switchboard/broker"
	"switchboard/client/backend"
	"switchboard/cmd/internal/serve"
	"switchboard/cmd/internal/setup"
	"switchboard/configs"
)

//go:embed demo.yaml
var settingsFile []byte

func main() {
	flags := flag.NewFlagSet("demo", flag.ExitOnError)
	address := flags.String("http", "127.0.0.1:8090", "address of the page; :8090 for all interfaces")
	noOpen := flags.Bool("no-open", false, "print the address, and do not open the browser")
	version := flags.Bool("version", false, "print the version")
	_ = flags.Parse(os.Args[1:]) // it exits if there is an error
	if *version {
		fmt.Println("demo", setup.Version())
		return
	}
	ctx, stop := setup.UntilSignal()
	defer stop()
	err := run(ctx, *address, os.Stderr, func(url string) {
		fmt.Printf("\n  The demo is at  %s\n\n  Open it in two tabs to be two users. Ctrl-C ends it.\n\n", url)
		if !*noOpen {
			openBrowser(url)
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run serves the demo on an address until ctx ends. It calls ready with the URL of the page. The
// broker listens on a free port, and the page reaches it through the address of the demo.
func run(ctx context.Context, address string, log io.Writer, ready func(url string)) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	url := localURL(listener.Addr().(*net.TCPAddr))
	apiKey, requestSecret := rand.Text(), rand.Text()
	settings, err := loadSettings(
		"SWITCHBOARD_HTTP=127.0.0.1:0", "SWITCHBOARD_TCP=off",
		"SWITCHBOARD_AUTH_KEYS=plain:"+apiKey+" admin demo",
		"SWITCHBOARD_AUTH_HS256_SECRET="+rand.Text()+rand.Text(), // accounts sign tokens with it
		"SWITCHBOARD_REQUESTS_URL="+url+"/requests",
		"SWITCHBOARD_REQUESTS_SECRETS="+requestSecret,
	)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	open := make(chan string, 1) // the address of the broker
	group.Go(func() error {
		return serve.Broker(ctx, settings, log, func(a broker.Addrs) { open <- a.HTTP })
	})
	group.Go(func() error {
		select {
		case addr := <-open:
			return servePage(ctx, listener, addr, apiKey, requestSecret, func() { ready(url) })
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}

// localURL returns the URL of a port for programs of this machine.
func localURL(addr *net.TCPAddr) string {
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(addr.Port))
}

// servePage serves the page, and forwards the calls for the broker, until ctx ends.
func servePage(ctx context.Context, l net.Listener, brokerAddr, apiKey, requestSecret string, ready func()) error {
	api, err := backend.New(backend.Options{URLs: []string{"http://" + brokerAddr}, Key: apiKey})
	if err != nil {
		return err
	}
	defer api.Close()
	s := shop{api: api, secrets: []string{requestSecret}}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /requests", s)
	mux.Handle("/ws", proxy(brokerAddr))
	mux.Handle("/v1/accounts", proxy(brokerAddr))
	mux.Handle("/v1/accounts/", proxy(brokerAddr))
	mux.Handle("/", page())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readTimeout}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	ready()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// loadSettings returns the settings of demo.yaml with these environment variables.
func loadSettings(environ ...string) (configs.Broker, error) {
	dir, err := os.MkdirTemp("", "demo")
	if err != nil {
		return configs.Broker{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "demo.yaml")
	if err := os.WriteFile(path, settingsFile, 0o600); err != nil {
		return configs.Broker{}, err
	}
	return configs.LoadBroker([]string{"--config", path}, environ)
}

// openBrowser opens the URL if this machine has a display.
func openBrowser(url string) {
	command := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		command = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return
	}
	if cmd := exec.Command(command, url); cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}
