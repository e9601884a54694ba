package snippets

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A shape compares answers with those that a page shows. In a shown answer, … stands for omitted
// text, a number of six digits or more stands for an id or a time, and each of them for the same
// value wherever it is shown again.
type shape map[string]any // a number or a string of the page → the value for which it stands

// Marks of strings that decode returns in place of what is not JSON.
const (
	anyNumber = "\x01" // followed by the number as the page shows it
	anything  = "\x02"
)

// leastFree is the least number that an answer need not have as shown.
const leastFree = 100_000

var (
	freeNumber   = regexp.MustCompile(`\b(?:\d+…\d*|[1-9]\d{5,})|…\d+`)
	freeString   = regexp.MustCompile(`\w*…\w*`)
	bareEllipsis = regexp.MustCompile(`([\[{,:])\s*…`)
)

// decode reads JSON values with … in place of numbers, of other values and of the rest of an
// object or a list. Null, false, true and lists are those of package json.
func decode(text string) (values []any, err error) {
	if strings.TrimSpace(text) == "…" {
		return []any{anything}, nil
	}
	var b strings.Builder
	open := ""                                      // the brackets that are open
	for i, part := range strings.Split(text, `"`) { // no page shows an escaped quote
		if i > 0 {
			b.WriteByte('"')
		}
		if i%2 == 1 {
			b.WriteString(part)
			continue
		}
		part = freeNumber.ReplaceAllString(part, `"\u0001$0"`)
		last := 0
		for _, m := range bareEllipsis.FindAllStringSubmatchIndex(part, -1) {
			open = brackets(open, part[last:m[3]])
			b.WriteString(part[last:m[3]])
			if strings.HasSuffix(open, "{") && part[m[2]] != ':' {
				b.WriteString(`"…":`)
			}
			b.WriteString(`"\u0002"`)
			last = m[1]
		}
		open = brackets(open, part[last:])
		b.WriteString(part[last:])
	}
	for decoder := json.NewDecoder(strings.NewReader(b.String())); decoder.More(); {
		var v any
		if err := decoder.Decode(&v); err != nil {
			return nil, fmt.Errorf("the page shows %s: %w", text, err)
		}
		values = append(values, v)
	}
	return values, nil
}

// brackets returns the brackets that are open after the text.
func brackets(open, text string) string {
	for _, c := range text {
		switch c {
		case '{', '[':
			open += string(c)
		case '}', ']':
			open = open[:max(0, len(open)-1)]
		}
	}
	return open
}

// differs returns how the answer differs from the one that the page shows, or "".
func (s shape) differs(path string, shown, got any) string {
	equal := false
	switch shown := shown.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			break
		}
		return s.differsInObject(path, shown, object)
	case []any:
		list, ok := got.([]any)
		if !ok {
			break
		}
		if n := len(shown) - 1; n > 0 && shown[n] == anything && len(list) >= n {
			shown, list = shown[:n], list[:n]
		}
		if len(list) != len(shown) {
			break
		}
		for i := range shown {
			if d := s.differs(fmt.Sprintf("%s[%d]", path, i), shown[i], list[i]); d != "" {
				return d
			}
		}
		return ""
	case string:
		equal = s.fits(shown, got)
	default:
		equal = shown == got
	}
	if equal {
		return ""
	}
	text, _ := json.Marshal(got)
	return fmt.Sprintf("%s is %s, the page shows %v", path, text, shown)
}

func (s shape) differsInObject(path string, shown, got map[string]any) string {
	for name, want := range shown {
		if name == "…" {
			continue
		}
		value, ok := got[name]
		if !ok {
			return fmt.Sprintf("%s has no %q", path, name)
		}
		if d := s.differs(path+"."+name, want, value); d != "" {
			return d
		}
	}
	if _, more := shown["…"]; more {
		return ""
	}
	for name := range got {
		if _, ok := shown[name]; !ok {
			return fmt.Sprintf("the page does not show %s.%s", path, name)
		}
	}
	return ""
}

// fits reports whether a value is one for which the shown string stands.
func (s shape) fits(shown string, got any) bool {
	if shown == anything {
		return true
	}
	if number, ok := strings.CutPrefix(shown, anyNumber); ok {
		value, ok := got.(float64)
		return ok && value >= leastFree && (strings.HasSuffix(number, "…") || s.isBound(number, got))
	}
	text, ok := got.(string)
	if !ok || !strings.Contains(shown, "…") {
		return ok && text == shown
	}
	return matches(shown, text) && (shown == "…" || strings.Contains(shown, " ") || s.isBound(shown, got))
}

// matches reports whether a text is the shown one, in which … and the letters and digits around it
// stand for any text.
func matches(shown, text string) bool {
	pattern := freeString.ReplaceAllString(regexp.QuoteMeta(shown), ".*")
	return regexp.MustCompile("(?s)^" + pattern + "$").MatchString(text)
}

// isBound reports whether what is shown stands for the value. It does from now on if it was not
// shown before.
func (s shape) isBound(shown string, value any) bool {
	if before, ok := s[shown]; ok {
		return before == value
	}
	s[shown] = value
	return true
}

// filled returns a text that the reader sends, with the values for which its ids and strings stand.
func (s shape) filled(text string) (string, error) {
	for shown, value := range s {
		if value, ok := value.(string); ok {
			text = strings.ReplaceAll(text, shown, value)
		}
	}
	text = freeNumber.ReplaceAllStringFunc(text, func(number string) string {
		if value, ok := s[number].(float64); ok {
			return strconv.FormatFloat(value, 'f', -1, 64)
		}
		return number
	})
	if strings.Contains(text, "…") {
		return "", errors.New("no answer has shown a value for the … in " + text)
	}
	return text, nil
}

// compare returns how an answer differs from the one that the page shows, or "".
func (s shape) compare(shown, answer string) string {
	want, err := decode(shown)
	if err != nil {
		return err.Error()
	}
	var got []any
	for decoder := json.NewDecoder(strings.NewReader(answer)); decoder.More(); {
		var v any
		if err := decoder.Decode(&v); err != nil {
			return fmt.Sprintf("the answer is no JSON: %q", answer)
		}
		got = append(got, v)
	}
	return s.differs("answer", want, got)
}

func TestCompare(t *testing.T) {
	const answer = `{"channel":"news","id":735325130218701,"list":[1,"x"],"at":1795330758518,"none":null}`
	for shown, equal := range map[string]bool{
		`{"channel":"news","id":735…701,"list":[1,"x"],"at":1795…,"none":null}`:     true,
		`{"channel":"news","id":…,"list":…,"at":1795330758000,"none":null}`:         true,
		`{"channel":"n…","id":735325130218999,"list":[1,…],"at":1795…,"none":null}`: true,
		`{"channel":"news",…}`:                true,
		`{"channel":"news","list":[1,"x"],…}`: true,
		`{"channel":"news","id":735…}`:        false,
		`{"channel":"new",…}`:                 false,
		`{"channel":"x…",…}`:                  true,
		`{"channel":"x-…",…}`:                 false,
		`{"list":[2,"x"],…}`:                  false,
		`{"list":[1],…}`:                      false,
		`{"list":null,…}`:                     false,
		`{"id":"735…",…}`:                     false,
		`{"id":735…701,"at":735…701,…}`:       false,
		`{"id":12,…}`:                         false,
	} {
		if d := make(shape).compare(shown, answer); (d == "") != equal {
			t.Errorf("%s: %q", shown, d)
		}
	}
}

func TestFilled(t *testing.T) {
	s := shape{"735…701": float64(735325130218799), "eyJ…": "eyJhbGciOi"}
	got, err := s.filled(`/x?after=735…701 {"token":"eyJ…","n":735…701}`)
	if err != nil || got != `/x?after=735325130218799 {"token":"eyJhbGciOi","n":735325130218799}` {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := s.filled(`{"n":735…702}`); err == nil {
		t.Errorf("%q has a number that no answer has shown", got)
	}
}
