// Command broker holds client connections, and delivers the pushes of a backend to them; see
// --help.
package main

import (
	"io"
	"os"

	"switchboard/cmd/internal/access"
	"switchboard/cmd/internal/serve"
	"switchboard/cmd/internal/setup"
	"switchboard/configs"
)

func main() { os.Exit(run(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)) }

func run(args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	switch name {
	case "check":
		err := access.Check(args[1:], environ, stdin, stdout)
		return setup.Exit("broker check", configs.CheckHelp, err, stdout, stderr)
	case "key":
		err := access.Key(args[1:], stdin, stdout)
		return setup.Exit("broker key", configs.KeyHelp, err, stdout, stderr)
	}
	return setup.Exit("broker", configs.BrokerHelp(), serve.Run(args, environ, stderr), stdout, stderr)
}
