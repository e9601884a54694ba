package access

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"switchboard/broker/auth"
	"switchboard/configs"
)

// Key prints a new API key and its entry for the settings, or the entry of an existing key. The
// flags in args are those of configs.KeyHelp.
func Key(args []string, stdin io.Reader, stdout io.Writer) error {
	request, err := configs.LoadKey(args)
	if err != nil {
		return err
	}
	return makeKey(request, stdin, stdout)
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
