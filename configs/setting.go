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

// spec describes one setting: its names, its help and its permitted values.
type spec struct {
	key         string
	arg         string   // placeholder for the flag's value in the help; "" for a bool
	text        string   // for the help
	flag        bool     // there is a flag for it
	allowZero   bool     // 0 is a permitted number or duration
	allowNumber bool     // the text may look like a number
	choices     []string // the permitted texts; nil permits all
	unset       string   // for the help: what an empty default means

	// bare permits the key of a section without a value: it has the defaults then. Without bare, it
	// is as if the key were missing.
	bare bool
	// readSection reads a section whose names the operator chooses. Nil means a plain value.
	readSection func(*yaml.Node) (any, error)
}

// sectionReader converts read to the type of spec.readSection.
func sectionReader[T any](read func(*yaml.Node) (T, error)) func(*yaml.Node) (any, error) {
	return func(node *yaml.Node) (any, error) { return read(node) }
}

// setting is a spec with the field of Broker or Janitor that it describes.
type setting struct {
	spec
	group string
	typ   reflect.Type
	def   reflect.Value // the default
}

var durationType = reflect.TypeFor[time.Duration]()

func (s *setting) flagName() string { return strings.ReplaceAll(s.key, "_", "-") }

// fields returns the fields of a struct by the keys of their settings. A section's name and a dot
// come before the keys of its fields.
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

// store sets a field to a value that parse or read returned.
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

// parse converts the text of a flag or of a variable to a value for store. The error never contains
// a text that may be a secret.
func (s *setting) parse(text string) (any, error) {
	switch {
	case s.readSection != nil:
		node, err := parseYAML([]byte(text))
		if err != nil || node == nil {
			return nil, err
		}
		return s.readSection(node)
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
		return list, s.checkChoices(list...)
	case s.typ.Kind() == reflect.String:
		return text, s.checkChoices(text)
	}
	return s.parseNumber(text)
}

// checkChoices returns an error unless all texts are permitted.
func (s *setting) checkChoices(texts ...string) error {
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
	case d < 0 && s.allowZero:
		return nil, fmt.Errorf("want zero or more, got %q", text)
	case d <= 0 && !s.allowZero:
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
	case n < 0 && s.allowZero:
		return nil, fmt.Errorf("want zero or more, got %d", n)
	case n <= 0 && !s.allowZero:
		return nil, fmt.Errorf("want more than zero, got %d", n)
	}
	return n, nil
}

func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// defaultText returns the default of a setting for the help.
func (s *setting) defaultText() string {
	if s.def.IsZero() {
		return s.unset
	}
	value := fmt.Sprint(s.def)
	if s.typ == durationType {
		value = shortDuration(time.Duration(s.def.Int()))
	}
	return "default " + cmp.Or(value, "none")
}

// shortDuration formats a duration like 30m, for which time.Duration prints 30m0s.
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
