package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchboard/client/backend"
)

// kitCommand describes a command that makes one call of the kit.
type kitCommand struct {
	use, short string // use has the name and the placeholders of the arguments
	method     string
	path       string // with {} for each argument of the path
	// args are the JSON members to which the arguments after those of the path belong. The last one
	// takes all further arguments if it ends in "...".
	args    []string
	flags   []kitFlag
	body    map[string]any // fixed members
	secret  string         // a member that is read from the standard input
	payload bool           // the last argument is the body, as JSON
	only    string         // the member of the answer that is printed; "" for all
	list    string         // the member with a list
	columns []string       // of the list; a dot separates the names of nested members
}

// kitFlag is a flag whose value becomes a parameter of the query, or a member of the body.
type kitFlag struct {
	name  string // the member has _ for -
	kind  kind
	usage string
}

// kind is the type of a flag or argument.
type kind int

const (
	text     kind = iota
	whole         // a whole number
	boolean       // true or false
	object        // JSON
	texts         // several texts
	millis        // a duration, sent in ms as NAME_ms
	version       // the version in If-Match
	instants      // a time, sent as Unix ms
)

// numbers are the members that are numbers when they are arguments.
var numbers = map[string]bool{"n": true, "score": true}

// kit returns a group of the commands in [kitCommands].
func (a *app) kit(use, short, page string) *cobra.Command {
	list := kitCommands[use]
	commands := make([]*cobra.Command, len(list))
	for i, k := range list {
		commands[i] = a.kitCommand(k)
	}
	long := short + ", see docs/" + page + ". The broker must have them: `switchboard self` shows its kit."
	return group(use, short, long, commands...)
}

func (a *app) kitCommand(k kitCommand) *cobra.Command {
	fixed := strings.Count(k.path, "{}")
	least, most := fixed+len(k.args), fixed+len(k.args)
	if n := len(k.args); n > 0 && strings.HasSuffix(k.args[n-1], "...") {
		least, most = least-1, -1
	}
	if k.payload {
		most++
	}
	_, placeholders, _ := strings.Cut(k.use, " ")
	c := &cobra.Command{
		Use: k.use, Short: k.short, Args: args(least, most, placeholders), ValidArgsFunction: a.completeKit(k),
	}
	flags := c.Flags()
	for _, f := range k.flags {
		switch f.kind {
		case whole, version:
			flags.Int64(f.name, 0, f.usage)
		case boolean:
			flags.Bool(f.name, false, f.usage)
		case texts:
			flags.StringSlice(f.name, nil, f.usage)
		case millis:
			flags.Duration(f.name, 0, f.usage)
		default:
			flags.String(f.name, "", f.usage)
		}
	}
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, args []string) error {
		r, err := a.kitRequest(k, flags, args)
		if err != nil {
			return err
		}
		var answer json.RawMessage
		if err := sb.Call(ctx, r, &answer); err != nil {
			return err
		}
		if k.only != "" {
			var members map[string]json.RawMessage
			if err := json.Unmarshal(answer, &members); err == nil { // otherwise printAnswer reports it
				answer = members[k.only]
			}
		}
		return a.printAnswer(k, answer)
	})
	return c
}

// kitRequest returns the call for the arguments and flags.
func (a *app) kitRequest(k kitCommand, flags *pflag.FlagSet, args []string) (backend.Request, error) {
	r := backend.Request{Method: k.method, Path: k.path}
	for strings.Contains(r.Path, "{}") {
		r.Path = strings.Replace(r.Path, "{}", url.PathEscape(args[0]), 1)
		args = args[1:]
	}
	if k.payload {
		var argument *string
		if len(args) > 0 {
			argument = &args[0]
		}
		data, ok, err := a.data(argument, "", false)
		if err == nil && !ok {
			err = usage("missing: the document, as an argument or on the standard input")
		}
		if err != nil {
			return r, err
		}
		r.Body = data
	}
	members := map[string]any{}
	for name, value := range k.body {
		members[name] = value
	}
	for i, name := range k.args {
		if list, more := strings.CutSuffix(name, "..."); more {
			if len(args) > i {
				members[list] = args[i:]
			}
			break
		}
		value, err := argumentOf(name, args[i])
		if err != nil {
			return r, err
		}
		members[name] = value
	}
	if k.secret != "" {
		line, err := a.readLine(k.secret)
		if err != nil {
			return r, err
		}
		members[k.secret] = line
	}
	for _, f := range k.flags {
		if !flags.Changed(f.name) {
			continue
		}
		if err := f.apply(flags, members, &r); err != nil {
			return r, err
		}
	}
	if r.Method == http.MethodGet || r.Method == http.MethodDelete || k.payload {
		r.Query = url.Values{}
		for name, value := range members {
			r.Query.Set(name, fmt.Sprint(value))
		}
		return r, nil
	}
	r.Body = members
	return r, nil
}

// argumentOf returns the value of an argument.
func argumentOf(name, arg string) (any, error) {
	if !numbers[name] {
		return arg, nil
	}
	n, err := strconv.ParseInt(arg, 10, 64)
	if err != nil {
		return nil, usage("%s: want a whole number, got %q", name, arg)
	}
	return n, nil
}

// apply adds the value of the flag to the members, or to the header.
func (f kitFlag) apply(flags *pflag.FlagSet, members map[string]any, r *backend.Request) error {
	name, given := strings.ReplaceAll(f.name, "-", "_"), flags.Lookup(f.name).Value.String()
	switch f.kind {
	case text:
		members[name] = given
	case whole:
		members[name], _ = flags.GetInt64(f.name) // pflag has parsed it, here and below
	case boolean:
		members[name], _ = flags.GetBool(f.name)
	case texts:
		members[name], _ = flags.GetStringSlice(f.name)
	case version:
		r.Header = http.Header{"If-Match": {strconv.Quote(given)}}
	case millis:
		d, _ := flags.GetDuration(f.name)
		members[name+"_ms"] = d.Milliseconds()
	case instants:
		t, err := time.Parse(time.RFC3339, given)
		if err != nil {
			return usage("--%s: want a time like 2026-11-22T20:00:00Z, got %q", f.name, given)
		}
		members[name] = t.UnixMilli()
	case object:
		if !json.Valid([]byte(given)) {
			return usage("--%s: want JSON, got %q", f.name, given)
		}
		members[name] = json.RawMessage(given)
	}
	return nil
}
