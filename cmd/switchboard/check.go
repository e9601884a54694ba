package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
	"switchboard/cmd/internal/access"
	"switchboard/cmd/internal/screen"
)

func (a *app) checkCommand() *cobra.Command {
	var q backend.CheckQuery
	var channel, config string
	var local bool
	c := &cobra.Command{
		Use: "check [CHANNEL]", Short: "Shows what a client may do on a channel, and why",
		Long: `Shows what a client may do on a channel, and why. It asks the running broker, or, with --config or --local, decides by
the settings in a file and the environment, like broker check. A token that the broker does not accept ends with exit
code 4.`,
		Example: `  switchboard check news --user alice
  switchboard check room:7 --token - --field seat/A1 < token
  switchboard check news --user alice --config broker.yaml`,
		Args: args(0, 1, "a channel"), ValidArgsFunction: a.completeFirst(a.channelNames),
	}
	flags := c.Flags()
	flags.StringVar(&channel, "channel", "", "the `channel`, like the argument")
	flags.StringArrayVar(&q.Fields, "field", nil, "a `field` of the channel's state: may the client write it? Repeat it for several")
	flags.StringVarP(&q.User, "user", "u", "", "the `user`; leave it out for a client without a user")
	flags.StringVar(&q.Token, "token", "", "the client's `token`; - reads it from the standard input")
	flags.StringVar(&config, "config", "", "decide by the settings in this `file` of a broker")
	flags.BoolVar(&local, "local", false, "decide by the settings in the environment")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if q.Channel = channel; len(args) > 0 {
			q.Channel = args[0]
		}
		if q.Channel == "" {
			return usage("missing: a channel")
		}
		if local || config != "" {
			return a.checkLocally(q, config)
		}
		return a.checkRemotely(ctx, q)
	})
	return c
}

// checkLocally decides by the settings.
func (a *app) checkLocally(q backend.CheckQuery, config string) error {
	if a.json {
		return usage("--json: only a running broker answers with JSON")
	}
	flags := []string{"--channel=" + q.Channel, "--user=" + q.User, "--token=" + q.Token, "--config=" + config}
	for _, field := range q.Fields {
		flags = append(flags, "--field="+field)
	}
	return access.Check(flags, a.environ, a.stdin, a.stdout)
}

func (a *app) checkRemotely(ctx context.Context, q backend.CheckQuery) error {
	if q.Token == "-" {
		var err error
		if q.Token, err = a.readLine("token"); err != nil {
			return err
		}
	}
	sb, err := a.connect()
	if err != nil {
		return err
	}
	defer sb.Close()
	r, err := sb.Check(ctx, q)
	if err != nil {
		return err
	}
	a.screen.Value(r, func() { a.printRights(r) })
	if r.Error != "" {
		return errDone(exitForbidden)
	}
	return nil
}

func (a *app) printRights(r backend.Rights) {
	if r.Error != "" {
		a.screen.Line(screen.Cell{Text: r.Error, Color: screen.Red})
		return
	}
	a.screen.Pairs("user", orNone(r.User), "client", r.Client, "token ends", a.screen.When(r.Expires, time.Now()),
		"channel", r.Channel, "namespace", orNone(r.Rule), "limits", r.Limits)
	rows := [][]screen.Cell{rightRow("connect", r.Connect, "")}
	for _, right := range r.Rights {
		rows = append(rows, rightRow(right.Right, right.Allowed, ""))
	}
	for _, f := range r.Fields {
		rows = append(rows, rightRow("write "+f.Field, f.Allowed, f.Limits))
	}
	a.screen.Table([]string{"right", "allowed", "why"}, rows)
}

func orNone(text string) string {
	if text == "" {
		return "(none)"
	}
	return text
}

func rightRow(name string, d backend.Allowed, limits string) []screen.Cell {
	color := screen.Red
	if d.Allowed {
		color = screen.Green
	}
	why := d.Why
	if limits != "" {
		why = strings.Join([]string{why, limits}, "; ")
	}
	return []screen.Cell{{Text: name, Color: screen.Bold}, {Text: yesNo[d.Allowed], Color: color}, {Text: why}}
}
