package configs

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Check has the arguments of `broker check`.
type Check struct {
	User    string
	Channel string
	Fields  []string
	Token   Secret
	Config  []string // the arguments for LoadBroker
}

// CheckHelp is the help of `broker check`.
const CheckHelp = `broker check prints what a client may do on a channel, and why. It reads the broker's settings
like the broker, and does not need a running one.

Usage: broker check --channel CHANNEL [flags]

  --channel CHANNEL       the channel
  --field FIELD           a field of the channel's state: may the client write it? Several are possible
  --user USER             the user; leave out for a client without a user
  --token TOKEN           the client's token: if it is valid, its user and grants apply;
                          - reads the token from the standard input
  --config FILE           the broker's file; the environment applies too
  -h, --help              print this

Exit codes: 0 success; 1 the settings or the token are wrong; 2 the command line is wrong
`

// LoadCheck reads the arguments of `broker check`. Its errors are like those of LoadBroker.
func LoadCheck(args []string) (Check, error) {
	var c Check
	var config, token string
	flags := pflag.NewFlagSet("broker check", pflag.ContinueOnError)
	flags.StringVar(&c.Channel, "channel", "", "")
	flags.StringArrayVar(&c.Fields, "field", nil, "")
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

// Key has the arguments of `broker key`.
type Key struct {
	Scopes []string
	Name   string
	Stdin  bool
}

// KeyHelp is the help of `broker key`.
const KeyHelp = `broker key creates an API key. It prints the key for the backend, once, and the entry for auth.keys or
for a line of auth.keys_file. The entry contains only a digest of the key.

Usage: broker key [flags]

  --scopes SCOPES         push, read or admin, separated by commas; admin includes the others (default push,read)
  --name NAME             a name for the key; the answer contains it when a scope is missing
  --stdin                 read an existing key from the standard input and print its entry
  -h, --help              print this
`

// LoadKey reads the arguments of `broker key`. Its errors are like those of LoadBroker.
func LoadKey(args []string) (Key, error) {
	var k Key
	flags := pflag.NewFlagSet("broker key", pflag.ContinueOnError)
	flags.StringSliceVar(&k.Scopes, "scopes", []string{"push", "read"}, "")
	flags.StringVar(&k.Name, "name", "", "")
	flags.BoolVar(&k.Stdin, "stdin", false, "")
	if err := parseCommand(flags, args); err != nil {
		return k, err
	}
	if len(k.Scopes) == 0 {
		return k, UsageError{errors.New("--scopes: missing")}
	}
	if strings.ContainsAny(k.Name, " \t\n\r,") {
		return k, UsageError{errors.New("--name: white space and commas are not allowed")}
	}
	return k, nil
}

func parseCommand(flags *pflag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard)
	help := flags.BoolP("help", "h", false, "")
	switch err := flags.Parse(args); {
	case err != nil:
		return UsageError{flagError(flags, err)}
	case *help:
		return ErrHelp
	case flags.NArg() > 0:
		return UsageError{errors.New("there is an argument that belongs to no flag")}
	}
	return nil
}
