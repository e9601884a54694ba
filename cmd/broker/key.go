package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"switchboard/broker/auth"
	"switchboard/cmd/internal/setup"
	"switchboard/configs"
)

// key is `broker key`.
func key(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	asked, err := configs.LoadKey(args)
	if err == nil {
		err = makeKey(asked, stdin, stdout)
	}
	return setup.Exit("broker key", configs.KeyHelp, err, stdout, stderr)
}

// makeKey prints a key and its entry, or the entry alone of a key that exists.
func makeKey(asked configs.Key, stdin io.Reader, stdout io.Writer) error {
	if err := auth.CheckScopes(asked.Scopes); err != nil {
		return fmt.Errorf("--scopes: %w", err)
	}
	var entry string
	if asked.Stdin {
		line, err := bufio.NewReader(stdin).ReadString('\n')
		if line = strings.TrimSpace(line); err != nil && !errors.Is(err, io.EOF) || line == "" {
			return errors.New("--stdin: there is no key on the standard input")
		}
		if len(line) < auth.MinKey {
			return fmt.Errorf("--stdin: the key has less than %d bytes, so its digest tells it to everybody who tries", auth.MinKey)
		}
		entry = auth.EntryOf(line)
	} else {
		var made string
		made, entry = auth.NewKey()
		fmt.Fprintln(stdout, "key:  ", made)
	}
	fmt.Fprintln(stdout, "entry:", strings.TrimSpace(entry+" "+strings.Join(asked.Scopes, "+")+" "+asked.Name))
	return nil
}
