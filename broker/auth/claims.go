package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker/namespace"
	"switchboard/internal/wire"
)

// MaxInfo is the most bytes of info: every answer about who is there carries it.
const MaxInfo = 1 << 10

// lastDate is the end of the year 9999, in seconds since 1970: beyond, dates overflow somewhere.
const lastDate = 253402300799

// claims is the payload of a token. It reads itself: encoding/json alone would take the last of two
// claims of one name, and SUB for sub, while whoever issued the token may have checked the other.
type claims struct {
	jwt.RegisteredClaims
	client string // "" when it is not there
	info   json.RawMessage
	grants namespace.Grants
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *claims) UnmarshalJSON(text []byte) error {
	fields, err := object(text)
	if err != nil {
		return err
	}
	for name, read := range map[string]func(json.RawMessage) error{
		"sub":      func(raw json.RawMessage) error { return literal(raw, &c.Subject) },
		"iss":      func(raw json.RawMessage) error { return literal(raw, &c.Issuer) },
		"aud":      func(raw json.RawMessage) error { return c.Audience.UnmarshalJSON(raw) },
		"exp":      func(raw json.RawMessage) error { return date(raw, &c.ExpiresAt) },
		"nbf":      func(raw json.RawMessage) error { return date(raw, &c.NotBefore) },
		"iat":      func(raw json.RawMessage) error { return date(raw, &c.IssuedAt) },
		"client":   c.readClient,
		"info":     c.readInfo,
		"channels": c.readChannels,
	} {
		if raw, there := fields[name]; there {
			if err := read(raw); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func literal(raw json.RawMessage, into *string) error {
	if len(raw) == 0 || raw[0] != '"' {
		return errors.New("it is no text")
	}
	return json.Unmarshal(raw, into)
}

func date(raw json.RawMessage, into **jwt.NumericDate) error {
	var seconds float64
	if string(raw) == "null" || json.Unmarshal(raw, &seconds) != nil || seconds < 0 || seconds > lastDate {
		return errors.New("it is no number of seconds since 1970")
	}
	*into = jwt.NewNumericDate(time.UnixMilli(int64(seconds * 1000)))
	return nil
}

func (c *claims) readClient(raw json.RawMessage) error {
	if err := literal(raw, &c.client); err != nil {
		return err
	}
	if strings.ContainsRune(c.client, '\uFFFD') { // as of sub
		return errors.New("it is not valid Unicode")
	}
	return wire.CheckClientPart(c.client)
}

func (c *claims) readInfo(raw json.RawMessage) error {
	if err := wire.CheckText(raw); err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return err
	}
	switch info := compact.Bytes(); {
	case info[0] != '{':
		return errors.New("it is no JSON object")
	case len(info) > MaxInfo:
		return fmt.Errorf("it has %d bytes, at most %d are allowed", len(info), MaxInfo)
	default:
		c.info = info
	}
	return nil
}

// readChannels reads {"chat:1":"sub pub","team:*":"*"}.
func (c *claims) readChannels(raw json.RawMessage) error {
	fields, err := object(raw)
	if err != nil {
		return err
	}
	for name, value := range fields {
		var actions string
		if err := literal(value, &actions); err != nil {
			return fmt.Errorf("%.40q: %w", name, err)
		}
		if err := c.grants.Add(name, actions); err != nil {
			return err
		}
	}
	return nil
}

// object reads a JSON object whose names are all different (RFC 7519 §4).
func object(text []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	fields := map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // what else stands there is no JSON
		if _, twice := fields[name]; twice || strings.ContainsRune(name, '\uFFFD') {
			return nil, fmt.Errorf("%.40q is there twice, or not valid Unicode", name)
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
	return fields, nil
}
