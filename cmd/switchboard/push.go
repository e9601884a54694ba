package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
)

// pushFlags are the flags of push.
type pushFlags struct {
	channels, users, clients []string
	all                      bool
	file, key, exclude       string
	text, lines              bool
	durable, first           bool
	ttl, notifyAfter         time.Duration
	change                   change
}

func (a *app) pushCommand() *cobra.Command {
	var f pushFlags
	c := &cobra.Command{
		Use: "push [CHANNEL] [DATA]", Short: "Pushes a message to channels, users, devices or all clients",
		Long: `Pushes a message. Without a flag for a target, the first argument is the channel.

DATA is JSON, or else text, which is sent as a JSON string. Without DATA, or for -, it is read from the standard
input. With --lines, each line of the standard input is a message of its own.

A push to a channel may change fields of its state, with or without data: all changes apply under one id, or none.

Each push has an idempotency key, so that it can be repeated safely after a lost answer; --key sets it. Of several
targets, each accepts or refuses the push on its own: the exit code is that of the first refusal.`,
		Example: `  switchboard push news '{"title":"hi"}'
  switchboard push --user alice --ttl 24h --notify-after 30s '{"badge":3}'
  switchboard push --client alice/phone hello
  switchboard push --all 'maintenance at noon'
  tail -f access.log | switchboard push logs --lines
  switchboard push room:7 --set turn='"amy"' --add moves=1 --if turn=absent`,
		SuggestFor: []string{"send"},
		Args:       args(0, 2, "a channel and data"), ValidArgsFunction: a.completeFirst(a.channelNames),
	}
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, args []string) error { return a.push(ctx, sb, f, args) })
	flags := c.Flags()
	flags.StringArrayVar(&f.channels, "channel", nil, "a `channel`; repeat it for several")
	flags.StringArrayVarP(&f.users, "user", "u", nil, "all devices of a `user`; repeat it for several")
	flags.StringArrayVarP(&f.clients, "client", "c", nil, "one device, like alice/phone; repeat it for several (`id`)")
	flags.BoolVar(&f.all, "all", false, "all connected clients")
	flags.StringVarP(&f.file, "file", "f", "", "read the data from a `file`")
	flags.BoolVar(&f.text, "text", false, "send data and values as text, also if they are JSON")
	flags.BoolVar(&f.lines, "lines", false, "push each line of the standard input")
	flags.StringVar(&f.key, "key", "", "idempotency `key`: the same key to the same target within 10 minutes is stored once")
	flags.BoolVar(&f.durable, "durable", false, "accept only when a replica of Redis has the message")
	flags.BoolVar(&f.first, "first", false, "the first acknowledgement withdraws the message from the user's other devices")
	flags.StringVar(&f.exclude, "exclude", "", "the `client` that does not receive the message, like alice/phone")
	flags.DurationVar(&f.ttl, "ttl", 0, "how long queues are kept at least; of fields, their lease")
	flags.DurationVar(&f.notifyAfter, "notify-after", 0, "your backend receives an event if no device acknowledges in time")
	addChangeFlags(c, &f.change)
	return c
}

// addChangeFlags adds the flags of a change of fields.
func addChangeFlags(c *cobra.Command, to *change) {
	flags := c.Flags()
	flags.StringArrayVar(&to.set, "set", nil, "`FIELD=VALUE` sets a field of the channel; VALUE is JSON or text")
	flags.StringArrayVar(&to.del, "del", nil, "`FIELD` removes a field")
	flags.StringArrayVar(&to.add, "add", nil, "`FIELD=N` adds to a number; N:MIN:MAX keeps the result within bounds")
	flags.StringArrayVar(&to.touch, "touch", nil, "`FIELD` gets a new lease")
	flags.StringArrayVar(&to.conditions, "if", nil, "`FIELD=ID`: change only if the field has this id; also absent or exists")
}

// push makes the push that the flags and arguments describe.
func (a *app) push(ctx context.Context, sb *backend.Client, f pushFlags, args []string) error {
	f.change.text = f.text
	p := backend.Push{
		Key: f.key, Durable: f.durable, First: f.first, TTL: f.ttl, NotifyAfter: f.notifyAfter, All: f.all, Exclude: f.exclude,
	}
	if len(f.channels)+len(f.users)+len(f.clients) == 0 && !f.all {
		if len(args) == 0 {
			return usage("missing: a channel, --user, --client or --all")
		}
		f.channels, args = args[:1], args[1:]
	}
	if len(args) > 1 {
		return usage("one target and one piece of data, please: %q is too much; data with spaces needs quotes", args[1])
	}
	setTargets(&p.Channel, &p.Channels, f.channels)
	setTargets(&p.User, &p.Users, f.users)
	setTargets(&p.Client, &p.Clients, f.clients)
	if err := f.change.apply(&p); err != nil {
		return err
	}
	if f.lines {
		return a.pushLines(ctx, sb, p, f, args)
	}
	var argument *string
	if len(args) > 0 {
		argument = &args[0]
	}
	if changes := p.Set != nil || p.Del != nil || p.Add != nil || p.Touch != nil; argument != nil || f.file != "" || !changes {
		data, ok, err := a.data(argument, f.file, f.text)
		if err != nil {
			return err
		}
		if !ok {
			return usage("missing: data, as an argument, with --file or on the standard input")
		}
		p.Data = data
	}
	if p.Key == "" {
		p.Key = rand.Text()
	}
	return a.pushOne(ctx, sb, p)
}

// setTargets sets one name or several.
func setTargets(one *string, many *[]string, names []string) {
	if len(names) == 1 {
		*one = names[0]
	} else if len(names) > 1 {
		*many = names
	}
}

// pushLines pushes each line of the standard input, and stops at the first error.
func (a *app) pushLines(ctx context.Context, sb *backend.Client, p backend.Push, f pushFlags, args []string) error {
	if len(args) > 0 || f.file != "" || f.key != "" {
		return usage("--lines: the data comes from the standard input, and each message has a key of its own")
	}
	lines := bufio.NewScanner(a.stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && ctx.Err() == nil {
		data, err := payload(lines.Text(), f.text)
		if err != nil {
			return err
		}
		p.Data, p.Key = data, rand.Text()
		if err := a.pushOne(ctx, sb, p); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (a *app) pushOne(ctx context.Context, sb *backend.Client, p backend.Push) error {
	results, err := sb.Push(ctx, p)
	if err != nil && len(results) == 0 {
		return err
	}
	a.screen.Value(map[string]any{"results": results}, func() {
		for _, r := range results {
			a.printResult(r)
		}
	})
	if err == nil {
		err = results.Err()
	}
	return err
}

// printResult prints the result of a push to one target.
func (a *app) printResult(r backend.Result) {
	target, detail := r.Channel+r.User+r.Client, ""
	if r.All {
		target = "all clients"
	}
	if r.Error != nil {
		a.screen.Line(screen.Cell{Text: target}, screen.Cell{Text: r.Error.Error(), Color: screen.Red})
		return
	}
	switch {
	case r.Servers != nil:
		detail = count(*r.Servers, "server")
	case r.Online != nil:
		detail = online(*r.Online)
	}
	if r.Duplicate {
		detail = strings.TrimPrefix(detail+", a duplicate", ", ")
	}
	if len(r.Fields) > 0 {
		text, _ := json.Marshal(r.Fields) // numbers can be encoded
		detail += ", " + string(text)
	}
	if r.Clients == nil {
		a.screen.Line(screen.Cell{Text: target, Color: screen.Bold}, screen.Cell{Text: fmt.Sprint(r.ID)}, screen.Cell{Text: detail, Color: screen.Dim})
		return
	}
	if len(r.Clients) == 0 {
		a.screen.Line(screen.Cell{Text: target, Color: screen.Bold}, screen.Cell{Text: "no devices: nothing is stored", Color: screen.Yellow})
	}
	for _, c := range r.Clients {
		detail := online(c.Online)
		if c.Duplicate {
			detail += ", a duplicate"
		}
		a.screen.Line(screen.Cell{Text: c.Client, Color: screen.Bold}, screen.Cell{Text: fmt.Sprint(c.ID)}, screen.Cell{Text: detail, Color: screen.Dim})
	}
}

func online(yes bool) string {
	if yes {
		return "online"
	}
	return "offline"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
