package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchboard/internal/apicheck"
)

// TestOperations runs every command of the kit, with each of its flags, and compares its calls with
// the OpenAPI document. The first answer to each call is lost.
func TestOperations(t *testing.T) {
	a := &app{}
	var commands []*cobra.Command
	for _, c := range []*cobra.Command{a.roomCommand(), a.holdCommand(), a.boardCommand(), a.accountCommand(), a.sceneCommand()} {
		commands = append(commands, leaves(c)...)
	}
	if len(commands) < 40 {
		t.Fatalf("only %d commands", len(commands))
	}
	var mu sync.Mutex // guards calls
	var calls []apicheck.Call
	var wait sync.WaitGroup
	for _, c := range commands {
		lines := [][]string{commandLine(c)}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				lines = append(lines, append(commandLine(c), flagValues(f)...))
			}
		})
		for _, line := range lines {
			wait.Go(func() {
				call := record(t, line)
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, call)
			})
		}
	}
	wait.Wait()
	problems, err := apicheck.CompareEach(calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// leaves returns the commands under c that have no others.
func leaves(c *cobra.Command) (list []*cobra.Command) {
	for _, sub := range c.Commands() {
		list = append(list, leaves(sub)...)
	}
	if !c.HasSubCommands() {
		list = append(list, c)
	}
	return list
}

// commandLine returns the words of a command and an argument for each placeholder. 1 fits all of
// them: a name, a number and JSON.
func commandLine(c *cobra.Command) []string {
	_, placeholders, _ := strings.Cut(c.Use, " ")
	line := strings.Fields(c.CommandPath())
	for range strings.Fields(placeholders) {
		line = append(line, "1")
	}
	return line
}

// flagValues returns a flag with a value.
func flagValues(f *pflag.Flag) []string {
	switch {
	case f.Value.Type() == "bool":
		return []string{"--" + f.Name}
	case f.Value.Type() == "duration":
		return []string{"--" + f.Name, "1s"}
	case strings.Contains(f.Usage, "`time`"):
		return []string{"--" + f.Name, "2026-11-22T20:00:00Z"}
	}
	return []string{"--" + f.Name, "1"}
}

// record runs a command, and returns its call.
func record(t *testing.T, line []string) apicheck.Call {
	call, attempts := apicheck.Call{By: strings.Join(line, " ")}, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if attempts++; attempts > 1 {
			call.Repeated = true
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		call.Method, call.Target, call.Header = r.Method, r.RequestURI, r.Header
		call.Body, _ = io.ReadAll(r.Body)
		panic(http.ErrAbortHandler)
	}))
	var stderr strings.Builder
	run(append(line, "--retry-for=1m", "--timeout=1m"), []string{"SWITCHBOARD_URL=" + server.URL}, strings.NewReader("secret\n"), io.Discard, &stderr)
	server.Close() // the handlers have ended
	if attempts == 0 {
		t.Errorf("%s makes no call: %s", call.By, &stderr)
	}
	return call
}
