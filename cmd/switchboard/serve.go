package main

import (
	"strings"

	"github.com/spf13/cobra"

	"switchboard/cmd/internal/serve"
	"switchboard/cmd/internal/setup"
	"switchboard/cmd/internal/sweep"
	"switchboard/configs"
)

// program returns a command that reads its flags itself, like the commands broker and janitor.
// names are the names of these commands in the help, and those that replace them.
func (a *app) program(use, short, help string, names []string, f func(args []string) error) *cobra.Command {
	name := "switchboard " + use
	help = strings.NewReplacer(names...).Replace(help)
	c := &cobra.Command{
		Use: use + " [flags]", Short: short, Long: strings.TrimSpace(help), DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := setup.Exit(name, help, f(args), a.stdout, a.stderr); code != 0 {
				return errDone(code)
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return flagsIn(help, prefix), cobra.ShellCompDirectiveDefault
		},
	}
	c.SetHelpFunc(func(*cobra.Command, []string) { _, _ = a.stdout.Write([]byte(help)) })
	return c
}

// flagsIn returns the flags that a help describes and that begin with prefix.
func flagsIn(help, prefix string) []string {
	var flags []string
	for line := range strings.Lines(help) {
		if name, found := strings.CutPrefix(line, "  --"); found {
			name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
			if flag := "--" + name; strings.HasPrefix(flag, prefix) {
				flags = append(flags, flag)
			}
		}
	}
	return flags
}

func (a *app) serveCommand() *cobra.Command {
	return a.program("serve", "Runs a broker", configs.BrokerHelp(),
		[]string{"Usage: broker ", "Usage: switchboard serve ", "broker holds client", "switchboard serve runs a broker, which holds client", "broker key", "switchboard key"},
		func(args []string) error { return serve.Run(args, a.environ, a.stderr) })
}

func (a *app) janitorCommand() *cobra.Command {
	names := []string{"Usage: janitor ", "Usage: switchboard janitor ", "janitor check", "switchboard janitor check"}
	c := a.program("janitor", "Runs a janitor, which brokers with Redis need", configs.JanitorHelp(), names,
		func(args []string) error { return sweep.Run(args, a.environ, a.stdout, a.stderr) })
	c.AddCommand(a.program("check", "Checks the records in Redis", configs.JanitorHelp(), names,
		func(args []string) error { return sweep.Check(args, a.environ, a.stdout, a.stderr) }))
	return c
}
