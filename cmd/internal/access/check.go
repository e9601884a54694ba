// Package access has the commands that print rights of clients and make API keys.
package access

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"switchboard/broker/rights"
	"switchboard/configs"
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

// printRights prints what a client may do.
func printRights(request configs.Check, environ []string, stdin io.Reader, stdout io.Writer) error {
	settings, err := configs.LoadBroker(request.Config, environ)
	if err != nil {
		return err
	}
	opts, err := settings.Options()
	if err != nil {
		return err
	}
	q := rights.Query{Token: string(request.Token), User: request.User, Channel: request.Channel, Fields: request.Fields}
	if q.Token == "-" {
		if q.Token, err = readToken(stdin); err != nil {
			return err
		}
	}
	if remote := opts.Access.Tokens.Remote(); q.Token != "" && remote != nil {
		if _, err := remote.Round(context.Background()); err != nil { // it has its own timeout
			return fmt.Errorf("auth.jwks_url: %w", err)
		}
	}
	rules := rights.Rules{Tokens: opts.Access.Tokens, Anonymous: opts.Access.Anonymous, Namespaces: opts.Access.Rules()}
	answer, err := rules.Explain(q)
	if err != nil {
		return err
	}
	printAnswer(stdout, answer)
	return nil
}

// readToken reads a token from the standard input.
func readToken(stdin io.Reader) (string, error) {
	line, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", errors.New("--token: there is no token on the standard input")
	}
	return line, nil
}

// printAnswer prints an answer, one right a line.
func printAnswer(stdout io.Writer, a rights.Answer) {
	fmt.Fprintf(stdout, "user %s, channel %s\n", cmp.Or(a.User, "(none)"), a.Channel)
	printDecision(stdout, "connect", a.Connect.Allowed, a.Connect.Why)
	for _, r := range a.Rights {
		printDecision(stdout, r.Right, r.Allowed, r.Why)
	}
	printLimits(stdout, "limits", a.Limits)
	for _, f := range a.Fields {
		printDecision(stdout, "field", f.Allowed, f.Field+": "+f.Why)
		printLimits(stdout, "", f.Limits)
	}
}

func printDecision(stdout io.Writer, name string, allowed bool, why string) {
	fmt.Fprintf(stdout, "  %-10s %-4s %s\n", name, yesNo[allowed], why)
}

var yesNo = map[bool]string{true: "yes", false: "no"}

func printLimits(stdout io.Writer, name, limits string) {
	if limits != "" {
		fmt.Fprintf(stdout, "  %-10s      %s\n", name, limits)
	}
}
