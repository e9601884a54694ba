package main

import (
	"strings"

	"github.com/spf13/cobra"

	"switchboard/cmd/internal/access"
	"switchboard/configs"
)

func (a *app) keyCommand() *cobra.Command {
	help := strings.ReplaceAll(configs.KeyHelp, "broker key", "switchboard key")
	return a.program("key", "Makes an API key", help, nil, func(args []string) error {
		return access.Key(args, a.stdin, a.stdout)
	})
}
