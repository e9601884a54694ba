// Package access has the commands that print rights of clients and make API keys.
package access

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"switchboard/broker"
	"switchboard/broker/namespace"
	"switchboard/configs"
	"switchboard/internal/state"
)

// Check prints what a client may do on a channel, and why. The flags in args are those of
// configs.CheckHelp. environ has the broker's settings, in the form of os.Environ.
func Check(args, environ []string, stdin io.Reader, stdout io.Writer) error {
	request, err := configs.LoadCheck(args)
	if err != nil {
		return err
	}
	return printRights(request, environ, stdin, stdout)
}

// printRights prints what a client may do. It decides with the same code as a broker.
func printRights(request configs.Check, environ []string, stdin io.Reader, stdout io.Writer) error {
	settings, err := configs.LoadBroker(request.Config, environ)
	if err != nil {
		return err
	}
	opts, err := settings.Options()
	if err != nil {
		return err
	}
	client := namespace.Subject{User: request.User, Open: opts.Access.Tokens.Open()}
	connect := mayConnect(opts, request)
	if request.Token != "" {
		if client, connect, err = checkToken(opts, request, stdin); err != nil {
			return err
		}
	}
	set := opts.Access.Rules()
	fmt.Fprintf(stdout, "user %s, channel %s\n", orNone(client.User), request.Channel)
	fmt.Fprintf(stdout, "  %-10s %s\n", "connect", connect)
	for _, action := range namespace.Actions {
		allowed, why := set.Decide(client, action, request.Channel)
		fmt.Fprintf(stdout, "  %-10s %-4s %s\n", action, yesNo[allowed], why)
	}
	if r := set.For(request.Channel); r != nil {
		if text := limits(r); text != "" {
			fmt.Fprintf(stdout, "  %-10s      %s\n", "limits", text)
		}
	}
	for _, field := range request.Fields {
		printField(stdout, set, client, request.Channel, field)
	}
	return nil
}

// printField prints whether a client may write a field, and the rules that then apply.
func printField(stdout io.Writer, set *namespace.Set, client namespace.Subject, channel, field string) {
	allowed, why := set.DecideField(client, channel, field)
	fmt.Fprintf(stdout, "  %-10s %-4s %s: %s\n", "field", yesNo[allowed], field, why)
	if m, _ := set.AllowsField(client, channel, field); allowed {
		if text := fieldLimits(set.For(channel), m, field); text != "" {
			fmt.Fprintf(stdout, "  %-10s      %s\n", "", text)
		}
	}
}

var yesNo = map[bool]string{true: "yes", false: "no"}

func orNone(user string) string {
	if user == "" {
		return "(none)"
	}
	return user
}

// mayConnect returns the text of the line about connect. It does not look at the token.
func mayConnect(opts broker.Options, request configs.Check) string {
	switch {
	case opts.Access.Tokens.Open():
		return "yes  no token keys are configured: clients choose their user freely"
	case request.User != "":
		return "yes  with a valid token whose sub is the user; give it as --token to apply its grants"
	case opts.Access.Anonymous:
		return "yes  auth.anonymous: clients without a token may connect"
	}
	return "no   a token is required"
}

// checkToken verifies the token and returns its client, and the text of the line about connect.
func checkToken(opts broker.Options, request configs.Check, stdin io.Reader) (client namespace.Subject, connect string, err error) {
	token := string(request.Token)
	if token == "-" {
		line, err := bufio.NewReader(stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return client, "", err
		}
		token = strings.TrimSpace(line)
	}
	if opts.Access.Tokens.Open() {
		return client, "", errors.New("token: no token keys are configured, so the broker ignores tokens")
	}
	if remote := opts.Access.Tokens.Remote(); remote != nil {
		if _, err := remote.Round(context.Background()); err != nil { // it has its own timeout
			return client, "", fmt.Errorf("auth.jwks_url: %w", err)
		}
	}
	claims, err := opts.Access.Tokens.Verify(token)
	if err != nil {
		return client, "", fmt.Errorf("token: %w", err)
	}
	if request.User != "" && request.User != claims.User {
		return client, "", fmt.Errorf("token: its user is %s, not %s", claims.User, request.User)
	}
	connect = "yes  the token is valid and does not expire"
	if !claims.Expires.IsZero() {
		connect = "yes  the token is valid until " + claims.Expires.UTC().Format(time.RFC3339)
	}
	return namespace.Subject{User: claims.User, Grants: claims.Grants}, connect, nil
}

// limits returns the limits of a namespace as text.
func limits(r *namespace.Rule) string {
	var list []string
	if r.Message > 0 {
		list = append(list, fmt.Sprintf("%d bytes a message", r.Message))
	}
	if r.PublishRate > 0 {
		list = append(list, fmt.Sprintf("%g messages a second from a connection", r.PublishRate))
	}
	if r.HistoryMessages > 0 {
		list = append(list, fmt.Sprintf("%d messages kept", r.HistoryMessages))
	}
	if r.HistoryAge > 0 {
		list = append(list, fmt.Sprintf("kept for %v", r.HistoryAge))
	}
	switch {
	case r.StateKeep == namespace.KeepForever:
		list = append(list, "state kept forever")
	case r.StateKeep > 0:
		list = append(list, fmt.Sprintf("state kept for %v", r.StateKeep))
	}
	if r.FieldsGone {
		list = append(list, "an event for fields that end")
	}
	return strings.Join(list, ", ")
}

// fieldLimits returns the rules for a field that a client may write, as text.
func fieldLimits(r *namespace.Rule, m namespace.FieldMatch, field string) string {
	var list []string
	add := func(show bool, format string, args ...any) {
		if show {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	f := m.Rule
	add(f.Write == namespace.Claim, "only the user who wrote it may change it")
	add(m.Parent != "", "part of %s: only the holder of that field may write it", m.Parent)
	add(f.Own, "the client owns it")
	add(f.TTL > 0, "a lease of at most %v", f.TTL)
	add(f.Bytes > 0, "%d bytes", f.Bytes)
	group := state.Group(field)
	add(r.GroupMax(group) > 0, "%d fields in %s", r.GroupMax(group), group)
	switch grace := r.GraceOf(f); {
	case grace == namespace.GraceNever:
		list = append(list, "stays after its owner has left")
	case f.Grace > 0 || f.Own:
		list = append(list, fmt.Sprintf("ends %v after its owner has left", grace))
	}
	return strings.Join(list, ", ")
}
