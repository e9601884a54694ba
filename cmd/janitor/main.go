// Command janitor removes the bindings of dead brokers from Redis, trims channels, and sends events
// to the backend; see --help.
package main

import (
	"io"
	"os"

	"switchboard/cmd/internal/setup"
	"switchboard/cmd/internal/sweep"
	"switchboard/configs"
)

func main() { os.Exit(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr)) }

func run(args, environ []string, stdout, stderr io.Writer) int {
	var err error
	if len(args) > 0 && args[0] == "check" {
		err = sweep.Check(args[1:], environ, stdout, stderr)
	} else {
		err = sweep.Run(args, environ, stdout, stderr)
	}
	return setup.Exit("janitor", configs.JanitorHelp(), err, stdout, stderr)
}
