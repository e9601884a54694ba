package setup

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"switchboard/configs"
)

// The exit codes that --help documents.
const (
	OK     = 0
	Failed = 1
	Usage  = 2
)

// Exit returns the exit code for err. It writes the help or the version to stdout if err requests
// it, and another error to stderr in one line.
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
	// Joined errors have one line each.
	fmt.Fprintf(stderr, "%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
	if _, usage := errors.AsType[configs.UsageError](err); usage {
		fmt.Fprintf(stderr, "Try %s --help.\n", name)
		return Usage
	}
	return Failed
}
