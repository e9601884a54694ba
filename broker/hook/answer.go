package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

// answerFields are the fields of an answer.
var answerFields = []string{"allow", "reason", "info", "user"}

// decode parses and checks an answer. Two fields of one name, and a known name in another case, are
// errors: the backend and the broker could read them differently. No error contains text of the
// answer.
func decode(k Kind, text []byte) (Answer, error) {
	if len(text) > maxAnswer {
		return Answer{}, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	fields, err := payload.UniqueFields(text)
	if err != nil {
		return Answer{}, errors.New("the answer is not a JSON object, or has a field twice")
	}
	for name := range fields {
		for _, known := range answerFields {
			if name != known && strings.EqualFold(name, known) {
				return Answer{}, fmt.Errorf("the answer has the field %s in another case", known)
			}
		}
	}
	var allow *bool
	var reason, user string
	for name, into := range map[string]any{"allow": &allow, "reason": &reason, "user": &user} {
		if raw, present := fields[name]; present && json.Unmarshal(raw, into) != nil {
			return Answer{}, fmt.Errorf("the answer's %s has a wrong type", name)
		}
	}
	switch {
	case allow == nil:
		return Answer{}, errors.New("the answer has no allow")
	case !*allow:
		return Answer{Reason: cleanReason(reason)}, nil
	case k != Connect && (user != "" || fields["info"] != nil):
		return Answer{}, errors.New("the answer sets user or info, which only connect can")
	}
	if user != "" {
		if err := wire.CheckName("user", user); err != nil {
			return Answer{}, errors.New("the answer's user is not a name")
		}
	}
	info, err := payload.CompactInfo(fields["info"])
	if err != nil {
		return Answer{}, errors.New("the answer's info is not a JSON object of at most 1 KiB")
	}
	return Answer{Allow: true, Info: info, User: user}, nil
}

// cleanReason returns reason without control characters and cut to maxReason.
func cleanReason(reason string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(reason, "?"))
	if len(clean) > maxReason {
		clean = strings.ToValidUTF8(clean[:maxReason], "") + "…"
	}
	return strings.TrimSpace(clean)
}
