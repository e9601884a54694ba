package main

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
	"switchboard/cmd/internal/setup"
	"switchboard/configs"
)

// check is `broker check`.
func check(args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	asked, err := configs.LoadCheck(args)
	if err == nil {
		err = tell(asked, environ, stdin, stdout)
	}
	return setup.Exit("broker check", configs.CheckHelp, err, stdout, stderr)
}

// tell answers with the very code that a broker decides with.
func tell(asked configs.Check, environ []string, stdin io.Reader, stdout io.Writer) error {
	settings, err := configs.LoadBroker(asked.Config, environ)
	if err != nil {
		return err
	}
	opts, err := settings.Options()
	if err != nil {
		return err
	}
	who := namespace.Subject{User: asked.User}
	connect := mayConnect(opts, asked)
	if asked.Token != "" {
		if who, connect, err = bearer(opts, asked, stdin); err != nil {
			return err
		}
	}
	set := opts.Access.Rules()
	fmt.Fprintf(stdout, "user %s, channel %s\n", orNone(who.User), asked.Channel)
	fmt.Fprintf(stdout, "  %-10s %s\n", "connect", connect)
	for _, do := range namespace.Actions {
		allowed, why := set.Decide(who, do, asked.Channel)
		fmt.Fprintf(stdout, "  %-10s %-4s %s\n", do, yesNo[allowed], why)
	}
	if r := set.For(asked.Channel); r != nil {
		if limits := limits(r); limits != "" {
			fmt.Fprintf(stdout, "  %-10s      %s\n", "limits", limits)
		}
	}
	return nil
}

var yesNo = map[bool]string{true: "yes", false: "no"}

func orNone(user string) string {
	if user == "" {
		return "(none)"
	}
	return user
}

// mayConnect is what is to be said of connecting without looking at a token.
func mayConnect(opts broker.Options, asked configs.Check) string {
	switch {
	case opts.Access.Tokens.Open():
		return "yes  no token keys are configured: a client says who it is"
	case asked.User != "":
		return "yes  with a good token whose sub is the user; give it as --token to have its grants count"
	case opts.Access.Anonymous:
		return "yes  auth.anonymous: clients without a token are let in"
	}
	return "no   a token is needed"
}

// bearer is who a token makes its bearer.
func bearer(opts broker.Options, asked configs.Check, stdin io.Reader) (who namespace.Subject, connect string, err error) {
	token := string(asked.Token)
	if token == "-" {
		line, err := bufio.NewReader(stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return who, "", err
		}
		token = strings.TrimSpace(line)
	}
	if opts.Access.Tokens.Open() {
		return who, "", errors.New("token: no token keys are configured, so tokens do not count")
	}
	if remote := opts.Access.Tokens.Remote(); remote != nil {
		if _, err := remote.Round(context.Background()); err != nil { // it has a timeout of its own
			return who, "", fmt.Errorf("auth.jwks_url: %w", err)
		}
	}
	claims, err := opts.Access.Tokens.Verify(token)
	if err != nil {
		return who, "", fmt.Errorf("token: %w", err)
	}
	if asked.User != "" && asked.User != claims.User {
		return who, "", fmt.Errorf("token: it is of user %s, not of %s", claims.User, asked.User)
	}
	connect = "yes  the token is good, without an end"
	if !claims.Expires.IsZero() {
		connect = "yes  the token is good until " + claims.Expires.UTC().Format(time.RFC3339)
	}
	return namespace.Subject{User: claims.User, Grants: claims.Grants}, connect, nil
}

// limits are those of a namespace, in words.
func limits(r *namespace.Rule) string {
	var list []string
	if r.Message > 0 {
		list = append(list, fmt.Sprintf("%d bytes a message", r.Message))
	}
	if r.PublishRate > 0 {
		list = append(list, fmt.Sprintf("%g messages a second from a connection", r.PublishRate))
	}
	if r.HistoryMessages > 0 {
		list = append(list, fmt.Sprintf("%d messages held", r.HistoryMessages))
	}
	if r.HistoryAge > 0 {
		list = append(list, fmt.Sprintf("held for %v", r.HistoryAge))
	}
	return strings.Join(list, ", ")
}
