package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
)

// defaultURL is the address of a broker with the default settings.
const defaultURL = "http://127.0.0.1:8080"

// addresses returns the addresses of the brokers.
func (a *app) addresses() []string {
	list := a.urls
	if len(list) == 0 {
		list = strings.Split(cmp.Or(a.getenv("SWITCHBOARD_URL"), defaultURL), ",")
	}
	var urls []string
	for _, u := range list {
		if u = strings.TrimSpace(u); u != "" {
			urls = append(urls, u)
		}
	}
	return urls
}

// connect returns a client of the broker. It does not call it.
func (a *app) connect() (*backend.Client, error) {
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	o := backend.Options{URLs: a.addresses(), Key: key, Timeout: a.timeout, RetryFor: a.retryFor}
	if o.RetryFor == 0 {
		o.RetryFor = -1
	}
	sb, err := backend.New(o)
	if err != nil {
		return nil, usage("--url: %w", err)
	}
	return sb, nil
}

// key returns the API key, "" for none.
func (a *app) key() (string, error) {
	if a.apiKey != "" {
		if a.keyFile != "" {
			return "", usage("--api-key, --key-file: only one of them")
		}
		a.note("every user of this machine can see the key in --api-key, and the shell keeps it: use SWITCHBOARD_KEY or --key-file")
		return a.apiKey, nil
	}
	path := a.keyFile
	if path == "" {
		if key := a.getenv("SWITCHBOARD_KEY"); key != "" {
			return checkKey(key, "SWITCHBOARD_KEY")
		}
		if path = a.getenv("SWITCHBOARD_KEY_FILE"); path == "" {
			return "", nil
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the file of the API key: %w", err)
	}
	return checkKey(string(text), path)
}

// checkKey returns the key in a text, which may be the output of `switchboard key`.
func checkKey(text, where string) (string, error) {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(strings.TrimPrefix(line, "key:"))
	switch {
	case line == "":
		return "", fmt.Errorf("%s: there is no key", where)
	case strings.HasPrefix(line, "sha256:"), strings.HasPrefix(line, "entry:"):
		return "", fmt.Errorf("%s: this is the entry for the broker's auth.keys; calls need the key itself (swb_…)", where)
	case strings.ContainsAny(line, " \t"):
		return "", fmt.Errorf("%s: a key has no white space", where)
	}
	return line, nil
}

// readLine returns the first line of the standard input, for secrets that must not be arguments.
func (a *app) readLine(what string) (string, error) {
	line, err := bufio.NewReader(a.stdin).ReadString('\n')
	if line = strings.TrimSpace(line); line == "" || err != nil && !errors.Is(err, io.EOF) {
		return "", usage("there is no %s on the standard input", what)
	}
	return line, nil
}

// completion is the function of cobra that completes an argument.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)
