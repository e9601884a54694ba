package configs

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Check is what `broker check` is asked.
type Check struct {
	User    string
	Channel string
	Token   Secret
	Config  []string // the arguments that name the broker's file
}

// CheckHelp is what `broker check --help` prints.
const CheckHelp = `broker check tells what a client may do on a channel, and why. It reads the broker's settings
as the broker does, and asks no running one.

Usage: broker check --channel CHANNEL [flags]

  --channel CHANNEL       the channel
  --user USER             the user; none for a client without a token
  --token TOKEN           what the client connects with: its user and its grants count, if it is good;
                          - reads it from the standard input
  --config FILE           the broker's file; its environment counts as well
  -h, --help              print this

Exit codes: 0 it has told; 1 the settings or the token are wrong; 2 the command line is wrong
`

// LoadCheck reads the arguments behind `broker check`. Its errors are those of LoadBroker.
func LoadCheck(args []string) (Check, error) {
	var c Check
	var config, token string
	flags := pflag.NewFlagSet("broker check", pflag.ContinueOnError)
	flags.StringVar(&c.Channel, "channel", "", "")
	flags.StringVar(&c.User, "user", "", "")
	flags.StringVar(&token, "token", "", "")
	flags.StringVar(&config, "config", "", "")
	if err := parseCommand(flags, args); err != nil {
		return c, err
	}
	if c.Channel == "" {
		return c, UsageError{errors.New("--channel: missing")}
	}
	if config != "" {
		c.Config = []string{"--config", config}
	}
	c.Token = Secret(token)
	return c, nil
}

// Key is what `broker key` is asked.
type Key struct {
	Scopes []string
	Name   string
	Stdin  bool
}

// KeyHelp is what `broker key --help` prints.
const KeyHelp = `broker key makes an API key: the key for the backend, which is shown once, and the entry for auth.keys
or for a line of auth.keys_file, which holds its digest only. A line there that begins with # is a comment.

Usage: broker key [flags]

  --scopes SCOPES         push, read or admin, several with commas; admin includes the others (default admin)
  --name NAME             for people: it stands in the answer when a scope is missing
  --stdin                 make the entry of a key that exists, read from the standard input
  -h, --help              print this
`

// LoadKey reads the arguments behind `broker key`. Its errors are those of LoadBroker.
func LoadKey(args []string) (Key, error) {
	var k Key
	flags := pflag.NewFlagSet("broker key", pflag.ContinueOnError)
	flags.StringSliceVar(&k.Scopes, "scopes", []string{"admin"}, "")
	flags.StringVar(&k.Name, "name", "", "")
	flags.BoolVar(&k.Stdin, "stdin", false, "")
	if err := parseCommand(flags, args); err != nil {
		return k, err
	}
	if len(k.Scopes) == 0 {
		return k, UsageError{errors.New("--scopes: missing")}
	}
	if strings.ContainsAny(k.Name, " \t\n\r,") {
		return k, UsageError{errors.New("--name: no white space and no comma")}
	}
	return k, nil
}

func parseCommand(flags *pflag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard)
	help := flags.BoolP("help", "h", false, "")
	switch err := flags.Parse(args); {
	case err != nil:
		return UsageError{flagError(err)}
	case *help:
		return ErrHelp
	case flags.NArg() > 0:
		return UsageError{errors.New("there is an argument that belongs to no flag")}
	}
	return nil
}
