package configs

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// about describes one setting to a person.
type about struct {
	key     string
	arg     string // what stands behind the flag; "" for yes or no
	text    string
	flag    bool
	zero    bool     // 0 means something of its own
	number  bool     // the text may be a number
	choices []string // all that is allowed; nil means anything
	unset   string   // what happens when it is not given and has no default

	document func(*yaml.Node) (any, error) // reads a section of names of the operator's own
}

// documentOf is about.document for a field of the type that read returns.
func documentOf[T any](read func(*yaml.Node) (T, error)) func(*yaml.Node) (any, error) {
	return func(node *yaml.Node) (any, error) { return read(node) }
}

// setting is a field of Broker or Janitor.
type setting struct {
	about
	group string
	typ   reflect.Type
	def   reflect.Value
}

var durationType = reflect.TypeFor[time.Duration]()

func (s *setting) flagName() string { return strings.ReplaceAll(s.key, "_", "-") }

// fields are the keys of a struct with its defaults, those of its sections with dots.
func fields(v reflect.Value, prefix string) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	for i := range v.NumField() {
		switch key := v.Type().Field(i).Tag.Get("setting"); {
		case key == "-":
		case v.Field(i).Kind() == reflect.Struct:
			for name, field := range fields(v.Field(i), prefix+key+".") {
				all[name] = field
			}
		default:
			all[prefix+key] = v.Field(i)
		}
	}
	return all
}

// store sets a field to what parse or read returned.
func store(field reflect.Value, value any) {
	list, isList := value.([]string)
	switch {
	case value == nil:
		field.SetZero()
	case isList:
		texts := reflect.MakeSlice(field.Type(), len(list), len(list))
		for i, text := range list {
			texts.Index(i).SetString(text)
		}
		field.Set(texts)
	default:
		field.Set(reflect.ValueOf(value).Convert(field.Type()))
	}
}

// parse turns the text of a flag or of a variable into a value for the field: see store. The
// error does not repeat what may be a secret.
func (s *setting) parse(text string) (any, error) {
	switch {
	case s.document != nil:
		node, err := parseYAML([]byte(text))
		if err != nil || node == nil {
			return nil, err
		}
		return s.document(node)
	case s.typ == durationType:
		return s.parseDuration(text)
	case s.typ.Kind() == reflect.Bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("want true or false, got %q", text)
		}
		return v, nil
	case s.typ.Kind() == reflect.Slice:
		var list []string
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		return list, s.chosen(list...)
	case s.typ.Kind() == reflect.String:
		return text, s.chosen(text)
	}
	return s.parseNumber(text)
}

// chosen checks texts where only some are allowed.
func (s *setting) chosen(texts ...string) error {
	for _, text := range texts {
		if s.choices != nil && !slices.Contains(s.choices, text) {
			return fmt.Errorf("want %s, got %q", orList(s.choices), text)
		}
	}
	return nil
}

func (s *setting) parseDuration(text string) (any, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("want a duration like 2s or 30m, got %q", text)
	case d < 0 || d == 0 && !s.zero:
		return nil, fmt.Errorf("want more than zero, got %q", text)
	}
	return d, nil
}

func (s *setting) parseNumber(text string) (any, error) {
	n, err := strconv.ParseInt(text, 0, s.typ.Bits())
	switch {
	case errors.Is(err, strconv.ErrRange):
		return nil, fmt.Errorf("%s is too large", text)
	case err != nil:
		return nil, fmt.Errorf("want a whole number, got %q", text)
	case n < 0 || n == 0 && !s.zero:
		return nil, fmt.Errorf("want more than zero, got %d", n)
	}
	return n, nil
}

func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// fallback is what the help says of a setting that is not given.
func (s *setting) fallback() string {
	if s.def.IsZero() {
		return s.unset
	}
	value := fmt.Sprint(s.def)
	if s.typ == durationType {
		value = shortDuration(time.Duration(s.def.Int()))
	}
	return "default " + cmp.Or(value, "none")
}

// shortDuration is 30m where time.Duration prints 30m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
