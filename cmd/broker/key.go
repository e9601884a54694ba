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

// key runs `broker key`.
func key(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	request, err := configs.LoadKey(args)
	if err == nil {
		err = makeKey(request, stdin, stdout)
	}
	return setup.Exit("broker key", configs.KeyHelp, err, stdout, stderr)
}

// makeKey prints a new key and its entry, or only the entry of an existing key.
func makeKey(request configs.Key, stdin io.Reader, stdout io.Writer) error {
	if err := auth.CheckScopes(request.Scopes); err != nil {
		return fmt.Errorf("--scopes: %w", err)
	}
	var entry string
	if request.Stdin {
		line, err := bufio.NewReader(stdin).ReadString('\n')
		if line = strings.TrimSpace(line); err != nil && !errors.Is(err, io.EOF) || line == "" {
			return errors.New("--stdin: there is no key on the standard input")
		}
		if len(line) < auth.MinKey {
			return fmt.Errorf("--stdin: the key has less than %d bytes; such a key can be guessed from its digest", auth.MinKey)
		}
		entry = auth.EntryOf(line)
	} else {
		var secret string
		secret, entry = auth.NewKey()
		fmt.Fprintln(stdout, "key:  ", secret)
	}
	fmt.Fprintln(stdout, "entry:", strings.TrimSpace(entry+" "+strings.Join(request.Scopes, "+")+" "+request.Name))
	return nil
}
