package snippets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// largest is the largest number that an answer must have as shown. Larger ones are ids and times.
const largest = 100_000

var (
	bareEllipsis   = regexp.MustCompile(`\b\d*…\d*`)
	anyEllipsis    = regexp.MustCompile(`([\[{,:])\s*…`)
	placeholderKey = `"…":0`
)

// decode reads JSON values that may have … in place of numbers, values and the rest of an object.
func decode(text string) (values []any, err error) {
	var b strings.Builder
	inString := false
	for part := range strings.SplitSeq(text, `"`) { // no snippet has an escaped quote before an ellipsis
		if !inString {
			part = anyEllipsis.ReplaceAllStringFunc(part, func(s string) string {
				if s[0] == '{' || s[0] == ',' && !strings.Contains(part, "[") {
					return s[:1] + placeholderKey
				}
				return s[:1] + "null"
			})
			part = bareEllipsis.ReplaceAllString(part, "735000000000000")
		}
		b.WriteString(part)
		b.WriteString(`"`)
		inString = !inString
	}
	decoder := json.NewDecoder(strings.NewReader(strings.TrimSuffix(b.String(), `"`)))
	for decoder.More() {
		var v any
		if err := decoder.Decode(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// differs returns how the answer differs from the one that the page shows, or "". A shown null
// stands for any value, a string with … for any string, and a large number for any number.
func differs(path string, shown, got any) string {
	switch shown := shown.(type) {
	case nil:
		return ""
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, the page shows an object", path, got)
		}
		for name, want := range shown {
			if name == "…" {
				continue
			}
			value, ok := object[name]
			if !ok {
				return fmt.Sprintf("%s has no %q", path, name)
			}
			if d := differs(path+"."+name, want, value); d != "" {
				return d
			}
		}
		if _, more := shown["…"]; !more {
			for name := range object {
				if _, ok := shown[name]; !ok {
					return fmt.Sprintf("the page does not show %s.%s", path, name)
				}
			}
		}
		return ""
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(shown) {
			return fmt.Sprintf("%s is %v, the page shows %d values", path, got, len(shown))
		}
		for i := range shown {
			if d := differs(fmt.Sprintf("%s[%d]", path, i), shown[i], list[i]); d != "" {
				return d
			}
		}
		return ""
	case string:
		if value, ok := got.(string); ok && (value == shown || strings.Contains(shown, "…")) {
			return ""
		}
	case float64:
		if value, ok := got.(float64); ok && (value == shown || value > largest && shown > largest) {
			return ""
		}
	default:
		if shown == got {
			return ""
		}
	}
	return fmt.Sprintf("%s is %v, the page shows %v", path, got, shown)
}

// compare compares an answer with the one that the page shows.
func compare(shown, answer string) string {
	want, err := decode(shown)
	if err != nil {
		return "the shown answer: " + err.Error()
	}
	var got []any
	for decoder := json.NewDecoder(bytes.NewReader([]byte(answer))); decoder.More(); {
		var v any
		if err := decoder.Decode(&v); err != nil {
			return fmt.Sprintf("the answer is no JSON: %q", answer)
		}
		got = append(got, v)
	}
	return differs("answer", want, got)
}

func TestCompare(t *testing.T) {
	const answer = `{"channel":"news","id":735325130218701,"list":[1,"x"],"at":1795330758518}`
	for shown, equal := range map[string]bool{
		`{"channel":"news","id":735…701,"list":[1,"x"],"at":1795…}`:       true,
		`{"channel":"news","id":…,"list":…,"at":1795330758000}`:           true,
		`{"channel":"n…","id":735325130218999,"list":[1,"x"],"at":1795…}`: true,
		`{"channel":"news",…}`:                                                true,
		`{"channel":"news","id":735…}`:                                        false,
		`{"channel":"new","id":735…,"list":[1,"x"],"at":1795…}`:               false,
		`{"channel":"news","id":735…,"list":[2,"x"],"at":1795…}`:              false,
		`{"channel":"news","id":735…,"list":[1,"x"],"at":1795…,"more":false}`: false,
		`{"channel":"news","id":"735…","list":[1,"x"],"at":1795…}`:            false,
	} {
		if d := compare(shown, answer); (d == "") != equal {
			t.Errorf("%s: %q", shown, d)
		}
	}
}
