package setup

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"switchboard/configs"
)

// The exit codes, as --help tells them.
const (
	OK     = 0
	Failed = 1
	Usage  = 2
)

// Exit gives the code for err, and writes what there is to say: the help or the version
// to stdout, anything else as one line to stderr.
func Exit(name, help string, err error, stdout, stderr io.Writer) int {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, configs.ErrHelp):
		fmt.Fprint(stdout, help)
		return OK
	case errors.Is(err, configs.ErrVersion):
		fmt.Fprintln(stdout, name, Version())
		return OK
	}
	// Several errors joined are several lines.
	fmt.Fprintf(stderr, "%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
	if _, usage := errors.AsType[configs.UsageError](err); usage {
		fmt.Fprintf(stderr, "Try %s --help.\n", name)
		return Usage
	}
	return Failed
}
