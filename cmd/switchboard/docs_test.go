package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"switchboard/internal/testbed"
)

var update = flag.Bool("update", false, "write the reference of docs/cli.md again")

const (
	manual = "../../docs/cli.md"
	begin  = "<!-- reference: go test ./cmd/switchboard -run TestPage -update -->\n"
)

// TestPage: the reference in docs/cli.md has the help of every command.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	intro, _, found := strings.Cut(string(text), begin)
	if !found {
		t.Fatalf("%s has no line %q", manual, begin)
	}
	want := intro + begin + reference()
	if *update {
		if err := os.WriteFile(manual, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Errorf("%s is not that of these commands: run go test ./cmd/switchboard -run TestPage -update", manual)
	}
}

// reference returns the help of all commands, as Markdown.
func reference() string {
	var b strings.Builder
	root := new(app).root()
	fmt.Fprintf(&b, "\n%s", block(helpOf(root)))
	for _, c := range commands(root) {
		fmt.Fprintf(&b, "\n### %s\n\n", c.CommandPath())
		if c.DisableFlagParsing {
			fmt.Fprintf(&b, "%s. `%s --help` lists the flags.\n", c.Short, c.CommandPath())
			continue
		}
		text, _, _ := strings.Cut(helpOf(c), "\nGlobal Flags:\n")
		b.WriteString(block(text))
	}
	return b.String()
}

func block(text string) string { return "```text\n" + strings.TrimSpace(text) + "\n```\n" }

func helpOf(c *cobra.Command) string {
	var out bytes.Buffer
	c.InitDefaultHelpFlag()
	c.SetOut(&out)
	_ = c.Help() // writes to a buffer
	return out.String()
}

// commands returns all commands below c in the order of their names, without those of cobra.
func commands(c *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			all = append(append(all, sub), commands(sub)...)
		}
	}
	return all
}

// TestCompletionScripts: there is a script for each shell.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := testbed.Execute(t, nil, binary, "completion", shell); r.Code != 0 || !strings.Contains(r.Stdout, "__complete") || r.Stderr != "" {
			t.Errorf("%s: %d, %s", shell, r.Code, r.Stderr)
		}
	}
	for args, want := range map[string]string{"serve --htt": "--http", "janitor --dr": "--dry-run", "pu": "push", "push --no": "--notify-after"} {
		r := testbed.Execute(t, nil, binary, append([]string{"__complete"}, strings.Fields(args)...)...)
		first, _, _ := strings.Cut(r.Stdout, "\n")
		first, _, _ = strings.Cut(first, "\t")
		if first != want {
			t.Errorf("%s: %q, want %q", args, r.Stdout, want)
		}
	}
}

// TestEveryCommand: every command has a line and a group in the help.
func TestEveryCommand(t *testing.T) {
	for _, c := range commands(new(app).root()) {
		if top := !c.Parent().HasParent(); c.Short == "" || !c.Runnable() || top && c.GroupID == "" {
			t.Errorf("%s: short %q, group %q", c.CommandPath(), c.Short, c.GroupID)
		}
	}
}
