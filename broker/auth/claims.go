package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker/namespace"
	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

// MaxInfo is the most bytes of info. It is small since a list of members contains the info of each
// member.
const MaxInfo = 1 << 10

// maxDate is the end of the year 9999, in seconds since 1970. Conversions of later dates may
// overflow.
const maxDate = 253402300799

// claims is the payload of a token. Its UnmarshalJSON is stricter than encoding/json, which uses
// the last of two claims of the same name and accepts SUB for sub. The issuer may have checked the
// other claim.
type claims struct {
	jwt.RegisteredClaims
	client string // "" if absent
	issued int64  // iat in ms, 0 if absent; RegisteredClaims has whole seconds
	info   json.RawMessage
	grants namespace.Grants
	// subscribe is the channels that the connections are subscribed to.
	subscribe []string
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *claims) UnmarshalJSON(text []byte) error {
	fields, err := payload.UniqueFields(text)
	if err != nil {
		return err
	}
	for name, read := range map[string]func(json.RawMessage) error{
		"sub":       func(raw json.RawMessage) error { return jsonString(raw, &c.Subject) },
		"iss":       func(raw json.RawMessage) error { return jsonString(raw, &c.Issuer) },
		"aud":       func(raw json.RawMessage) error { return c.Audience.UnmarshalJSON(raw) },
		"exp":       func(raw json.RawMessage) error { return numericDate(raw, &c.ExpiresAt) },
		"nbf":       func(raw json.RawMessage) error { return numericDate(raw, &c.NotBefore) },
		"iat":       c.readIssued,
		"client":    c.readClient,
		"info":      c.readInfo,
		"channels":  c.readChannels,
		"subscribe": c.readSubscribe,
	} {
		if raw, present := fields[name]; present {
			if err := read(raw); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func jsonString(raw json.RawMessage, into *string) error {
	if len(raw) == 0 || raw[0] != '"' {
		return errors.New("it is not a string")
	}
	return json.Unmarshal(raw, into)
}

func numericDate(raw json.RawMessage, into **jwt.NumericDate) error {
	ms, err := milliseconds(raw)
	if err == nil {
		*into = jwt.NewNumericDate(time.UnixMilli(ms))
	}
	return err
}

// milliseconds reads a NumericDate: seconds since 1970, perhaps with a fraction.
func milliseconds(raw json.RawMessage) (int64, error) {
	var seconds float64
	if string(raw) == "null" || json.Unmarshal(raw, &seconds) != nil || seconds < 0 || seconds > maxDate {
		return 0, errors.New("it is not a number of seconds since 1970")
	}
	return int64(seconds * 1000), nil
}

func (c *claims) readIssued(raw json.RawMessage) (err error) {
	if c.issued, err = milliseconds(raw); err != nil {
		return err
	}
	return numericDate(raw, &c.IssuedAt)
}

func (c *claims) readClient(raw json.RawMessage) error {
	if err := jsonString(raw, &c.client); err != nil {
		return err
	}
	if strings.ContainsRune(c.client, '\uFFFD') { // as in Tokens.check
		return errors.New("it is not valid Unicode")
	}
	return wire.CheckClientPart(c.client)
}

func (c *claims) readInfo(raw json.RawMessage) error {
	if err := payload.CheckText(raw); err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return err
	}
	switch info := compact.Bytes(); {
	case info[0] != '{':
		return errors.New("it is not a JSON object")
	case len(info) > MaxInfo:
		return fmt.Errorf("it has %d bytes, at most %d are allowed", len(info), MaxInfo)
	default:
		c.info = info
	}
	return nil
}

// readChannels reads {"chat:1":"sub pub","team:*":"*"}.
func (c *claims) readChannels(raw json.RawMessage) error {
	fields, err := payload.UniqueFields(raw)
	if err != nil {
		return err
	}
	for name, value := range fields {
		var actions string
		if err := jsonString(value, &actions); err != nil {
			return fmt.Errorf("%.40q: %w", name, err)
		}
		if err := c.grants.Add(name, actions); err != nil {
			return err
		}
	}
	return nil
}

// MaxSubscribe is the most channels in the claim subscribe.
const MaxSubscribe = 64

// readSubscribe reads ["news","team:7"].
func (c *claims) readSubscribe(raw json.RawMessage) error {
	var list []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return errors.New("it is not a list of channels")
	}
	if len(list) > MaxSubscribe {
		return fmt.Errorf("it has %d channels, at most %d are allowed", len(list), MaxSubscribe)
	}
	for _, value := range list {
		var channel string
		if err := jsonString(value, &channel); err != nil {
			return fmt.Errorf("%.40q: %w", value, err)
		}
		if err := wire.CheckName("channel", channel); err != nil {
			return err
		}
		switch {
		case wire.IsSystem(channel):
			return fmt.Errorf("%.40q: it is a system channel", channel)
		case strings.ContainsRune(channel, '\uFFFD'): // as in Tokens.check
			return fmt.Errorf("%.40q: it is not valid Unicode", channel)
		case !slices.Contains(c.subscribe, channel):
			c.subscribe = append(c.subscribe, channel)
		}
	}
	return nil
}
