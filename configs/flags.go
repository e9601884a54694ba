package configs

import (
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/spf13/pflag"

	"switchboard/internal/nearest"
)

// flagText is the value of a flag. Its type is that of the setting.
type flagText struct {
	row   *row
	value any
}

// Set implements pflag.Value.
func (f *flagText) Set(text string) (err error) {
	f.value, err = f.row.parse(text)
	return err
}

// Type implements pflag.Value.
func (f *flagText) Type() string { return f.row.Type.String() }

// String implements pflag.Value. It returns nothing, since the value may be a secret.
func (f *flagText) String() string { return "" }

// parseFlags returns the settings in args, and the path after --config.
func (p *program) parseFlags(rows []*row, args []string) (given values, path string, err error) {
	flags := pflag.NewFlagSet(p.name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&path, "config", "", "")
	help := flags.BoolP("help", "h", false, "")
	version := flags.Bool("version", false, "")
	for _, r := range rows {
		if !r.Flag {
			continue
		}
		f := flags.VarPF(&flagText{row: r}, r.FlagName(), "", "")
		if r.Type.Kind() == reflect.Bool {
			f.NoOptDefVal = "true"
		}
	}
	switch err := flags.Parse(args); {
	case err != nil:
		return nil, "", UsageError{flagError(flags, err)}
	case *help:
		return nil, "", ErrHelp
	case *version:
		return nil, "", ErrVersion
	case flags.NArg() > 0:
		return nil, "", UsageError{errors.New("there is an argument that belongs to no flag (use = for a bool, like --insecure=false)")}
	}
	given = values{}
	flags.Visit(func(f *pflag.Flag) {
		if v, ok := f.Value.(*flagText); ok { // --config, --help and --version are not settings
			given[v.row.Key] = v.value
		}
	})
	return given, path, nil
}

// flagError replaces errors of pflag that contain a whole argument, which may hold a secret like
// -redis=redis://user:password@host. It adds the flags that a mistyped one may mean.
func flagError(flags *pflag.FlagSet, err error) error {
	if wrong, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if wrong.GetSpecifiedShortnames() != "" {
			return fmt.Errorf("unknown flag: -%.1s; flags begin with two dashes", wrong.GetSpecifiedShortnames())
		}
		return fmt.Errorf("%w%s", err, nearest.Flags(wrong.GetSpecifiedName(), flags))
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s: %w", wrong.GetFlag().Name, wrong.Unwrap())
	}
	if _, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return errors.New("an argument begins with dashes but is not a flag")
	}
	return err
}
