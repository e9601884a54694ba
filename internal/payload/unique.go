package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// UniqueFields parses a JSON object that grants rights, such as the claims of a token. Names are
// compared byte by byte, and two fields with the same name are an error (RFC 7519 §4).
// encoding/json would use the last one, and accept SUB for sub. The program that wrote or checked
// the text may have used another one.
func UniqueFields(text []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	fields := map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // Token returns an error for any other token
		if _, twice := fields[name]; twice || strings.ContainsRune(name, utf8.RuneError) {
			return nil, fmt.Errorf("%.40q occurs twice, or is not valid Unicode", name)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		fields[name] = value
	}
	if _, err := decoder.Token(); err != nil { // the end of the object
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("text follows the JSON object")
	}
	return fields, nil
}
