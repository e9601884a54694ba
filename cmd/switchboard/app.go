package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
	"switchboard/cmd/internal/setup"
	"switchboard/internal/nearest"
)

// app has what the commands share: the standard streams, and the global flags.
type app struct {
	environ        []string // as os.Environ
	stdin          io.Reader
	stdout, stderr io.Writer

	urls        []string
	keyFile     string
	apiKey      string
	tokenFile   string
	caFile      string
	profileName string // of --profile
	profile     chosen // set by chooseProfile

	json     bool
	color    string
	timeout  time.Duration
	retryFor time.Duration

	screen  *screen.Screen // set when a command runs
	started bool           // the command line is valid, and the command runs
	name    string         // of the command, for errors
}

// The groups of commands in the help.
const (
	groupRun   = "run"
	groupTalk  = "talk"
	groupLook  = "look"
	groupKit   = "kit"
	groupOther = "other"
)

const rootHelp = `switchboard runs brokers, and talks to running ones over the HTTP API.

The broker is that of --url, SWITCHBOARD_URL or a profile, which may list several instances, separated by commas: if
one does not answer, the next one is asked. A broker with API keys needs one, in a file (--key-file) or in
SWITCHBOARD_KEY. A profile is a name for both: see switchboard profile --help.

On a terminal, results are tables. Elsewhere they are lines with tabs in between and without a header, and with
--json they are JSON. Errors go to stderr.

Exit codes: 0 success; 1 failed; 2 the command line or the request is wrong; 3 not found, or ended; 4 not allowed;
5 a conflict: another version, full, locked, or out of bounds; 6 no answer: the broker or its store cannot be
reached, is too slow, or limits the rate.`

// root returns the command with all others.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "switchboard", Short: "Runs brokers, and talks to them", Long: rootHelp, Version: setup.Version(),
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs, RunE: subcommandNeeded,
	}
	root.SetVersionTemplate("switchboard {{.Version}}\n")
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run:"}, &cobra.Group{ID: groupTalk, Title: "Push and receive:"},
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupKit, Title: "Rooms, holds, boards, accounts, scenes:"},
		&cobra.Group{ID: groupOther, Title: "Other:"},
	)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	flags := root.PersistentFlags()
	flags.StringVarP(&a.profileName, "profile", "p", "", "`name` of a profile (SWITCHBOARD_PROFILE), see switchboard profile --help")
	flags.StringSliceVar(&a.urls, "url", nil, "`addresses` of brokers, separated by commas (SWITCHBOARD_URL; default "+defaultURL+")")
	flags.StringVar(&a.keyFile, "key-file", "", "`file` with the API key (SWITCHBOARD_KEY_FILE, or the key itself in SWITCHBOARD_KEY)")
	flags.StringVar(&a.caFile, "ca-file", "", "`file` with the authorities of https and wss (SWITCHBOARD_CA_FILE; default: those of the system)")
	flags.StringVar(&a.apiKey, "api-key", "", "the API `key`; other users of this machine can see it, so use --key-file")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	flags.StringVar(&a.color, "color", "auto", "auto, always or never; auto respects NO_COLOR")
	flags.DurationVar(&a.timeout, "timeout", 10*time.Second, "how long one call may take")
	flags.DurationVar(&a.retryFor, "retry-for", 2*time.Second, "how long calls that are safe to repeat are repeated; 0 for not at all")
	a.addCommands(root)
	a.completeFlags(root)
	return root
}

// addCommands adds the commands in the order of the help.
func (a *app) addCommands(root *cobra.Command) {
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupRun, a.serveCommand(), a.janitorCommand())
	add(groupTalk, a.pushCommand(), a.tailCommand(), a.clientCommand(), a.requestsCommand(), a.eraseCommand(),
		a.subscribeCommand(), a.unsubscribeCommand(), a.disconnectCommand())
	add(groupLook, a.doctorCommand(), a.topCommand(), a.whoCommand(), a.channelsCommand(), a.historyCommand(), a.queueCommand(), a.serversCommand(), a.selfCommand(), a.stateCommand(), a.webhooksCommand())
	add(groupKit, a.roomCommand(), a.holdCommand(), a.boardCommand(), a.accountCommand(), a.sceneCommand(), a.userCommand())
	add(groupOther, a.keyCommand(), a.tokenCommand(), a.profileCommand(), a.checkCommand(), a.loadCommand())
}

// subcommandNeeded is the RunE of a command that only has others.
func subcommandNeeded(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	var names []string
	for _, sub := range c.Commands() {
		if slices.Contains(sub.SuggestFor, args[0]) {
			return usage("unknown command %q; did you mean %s?", args[0], sub.Name())
		}
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usage("unknown command %q%s", args[0], nearest.Question(args[0], names))
}

// flagError adds the flags that a mistyped one may mean.
func flagError(c *cobra.Command, err error) error {
	wrong, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || wrong.GetSpecifiedShortnames() != "" {
		return usageError{err}
	}
	return usage("%w%s", err, nearest.Flags(wrong.GetSpecifiedName(), c.Flags()))
}

// run returns a RunE that prepares the Screen, ends the context at a signal, and calls f.
func (a *app) run(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		a.started = true
		switch a.color {
		case "auto", "always", "never":
		default:
			return usage("--color: want auto, always or never")
		}
		a.screen = screen.New(a.stdout, a.json, a.color, a.getenv)
		ctx, stop := setup.UntilSignal()
		defer stop()
		if err := f(ctx, args); err != nil {
			return err
		}
		return a.screen.Err()
	}
}

// call is like run for a command that calls a broker.
func (a *app) call(f func(ctx context.Context, sb *backend.Client, args []string) error) func(*cobra.Command, []string) error {
	return a.run(func(ctx context.Context, args []string) error {
		sb, err := a.connect()
		if err != nil {
			return err
		}
		defer sb.Close()
		return f(ctx, sb, args)
	})
}

// getenv is like os.Getenv.
func (a *app) getenv(name string) string {
	value := ""
	for _, pair := range a.environ {
		if n, v, _ := strings.Cut(pair, "="); n == name {
			value = v
		}
	}
	return value
}

// show prints the answer to a call, as JSON or by print, unless the call has failed.
func (a *app) show(answer any, err error, print func()) error {
	if err == nil {
		a.screen.Value(answer, print)
	}
	return err
}

// table prints a table with a row for each item.
func table[T any](a *app, header []string, items []T, row func(T) []screen.Cell) {
	rows := make([][]screen.Cell, len(items))
	for i, item := range items {
		rows[i] = row(item)
	}
	a.screen.Table(header, rows)
}

// note prints a line to stderr, for the user of the command.
func (a *app) note(format string, args ...any) {
	fmt.Fprintf(a.stderr, "switchboard: "+format+"\n", args...)
}

// errDone ends a command whose result is printed already.
type errDone int

func (e errDone) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// args returns a check of the number of arguments. what names them in the error.
func args(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, list []string) error {
		switch {
		case len(list) < least:
			return usage("missing: %s", what)
		case most >= 0 && len(list) > most:
			return usage("too many arguments, want: %s", cmp.Or(what, "none"))
		}
		return nil
	}
}

func isUnreachable(err error) bool {
	_, ok := errors.AsType[*backend.UnreachableError](err)
	return ok
}

// group returns a command that only has others.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs, RunE: subcommandNeeded}
	c.AddCommand(commands...)
	return c
}
