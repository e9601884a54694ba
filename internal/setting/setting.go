// Package setting reads settings from the tags of struct fields, so that a setting has one place: a
// field in the options of the package that uses its value.
//
//	Read int `setting:"limits.user_read" default:"2097152" zero:"true" help:"bytes a second ..."`
//
// The tags are:
//
//	setting   the key. A struct without it holds the settings of its fields. "-" means no setting
//	help      the text of the help; lines end where they are full, unless it has \n
//	default   the default, as an operator writes it
//	unset     what the help says about a default that is empty or zero
//	zero      "true" if 0 is a value: an operator may write it, and [Fill] keeps it
//	choices   the permitted texts, separated by commas
//	number    "true" if a text may look like a number
//	flag      the placeholder of the flag's value, empty for a bool. Without the tag there is no flag
package setting

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is a field with the tag setting.
type Setting struct {
	Key     string
	Help    string
	Unset   string
	Flag    bool
	Arg     string // placeholder of the flag's value
	Number  bool
	Choices []string // nil permits all texts
	Type    reflect.Type

	zero       bool
	defaultTag string
	field      reflect.Value
}

var durationType = reflect.TypeFor[time.Duration]()

// Of returns the settings of a struct, to which options points, in the order of its fields.
func Of(options any) []*Setting { return appendFields(nil, reflect.ValueOf(options).Elem()) }

func appendFields(list []*Setting, v reflect.Value) []*Setting {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch key, tagged := field.Tag.Lookup("setting"); {
		case !field.IsExported() && !field.Anonymous || key == "-":
		case tagged:
			list = append(list, newSetting(key, field, v.Field(i)))
		case field.Type.Kind() == reflect.Struct:
			list = appendFields(list, v.Field(i))
		}
	}
	return list
}

func newSetting(key string, field reflect.StructField, v reflect.Value) *Setting {
	tag := field.Tag
	s := &Setting{
		Key: key, Help: tag.Get("help"), Unset: tag.Get("unset"), Number: tag.Get("number") == "true", Type: field.Type,
		zero: tag.Get("zero") == "true", defaultTag: tag.Get("default"), field: v,
	}
	s.Arg, s.Flag = tag.Lookup("flag")
	if choices := tag.Get("choices"); choices != "" {
		s.Choices = strings.Split(choices, ",")
	}
	return s
}

// SetDefaults sets all settings of the struct to which options points to their defaults.
func SetDefaults(options any) {
	for _, s := range Of(options) {
		s.setDefault()
	}
}

// Fill sets the settings that are zero to their defaults, except those for which zero is a value.
func Fill(options any) {
	for _, s := range Of(options) {
		if s.field.IsZero() && !s.zero {
			s.setDefault()
		}
	}
}

// Negative reports whether a setting of the struct to which options points is below zero.
func Negative(options any) bool {
	return slices.ContainsFunc(Of(options), func(s *Setting) bool { return s.field.CanInt() && s.field.Int() < 0 })
}

func (s *Setting) setDefault() {
	if s.defaultTag == "" {
		return
	}
	value, err := s.Parse(s.defaultTag)
	if err != nil {
		panic(fmt.Sprintf("default of %s: %v", s.Key, err))
	}
	s.Set(value)
}

// FlagName returns the name of the flag.
func (s *Setting) FlagName() string { return strings.ReplaceAll(s.Key, "_", "-") }

// Set sets the field to a value that Parse returned.
func (s *Setting) Set(value any) {
	list, isList := value.([]string)
	switch {
	case value == nil:
		s.field.SetZero()
	case isList:
		texts := reflect.MakeSlice(s.Type, len(list), len(list))
		for i, text := range list {
			texts.Index(i).SetString(text)
		}
		s.field.Set(texts)
	default:
		s.field.Set(reflect.ValueOf(value).Convert(s.Type))
	}
}

// Parse converts the text of a flag or of a variable to a value for Set. The error never contains a
// text that may be a secret.
func (s *Setting) Parse(text string) (any, error) {
	switch {
	case s.Type == durationType:
		return s.parseDuration(text)
	case s.Type.Kind() == reflect.Bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("want true or false, got %q", text)
		}
		return v, nil
	case s.Type.Kind() == reflect.Slice:
		var list []string
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		return list, s.CheckChoices(list...)
	case s.Type.Kind() == reflect.String:
		return text, s.CheckChoices(text)
	}
	return s.parseNumber(text)
}

// CheckChoices returns an error unless all texts are permitted.
func (s *Setting) CheckChoices(texts ...string) error {
	for _, text := range texts {
		if s.Choices != nil && !slices.Contains(s.Choices, text) {
			return fmt.Errorf("want %s, got %q", OrList(s.Choices), text)
		}
	}
	return nil
}

func (s *Setting) parseDuration(text string) (any, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("want a duration like 2s or 30m, got %q", text)
	}
	return d, s.checkBound(int64(d), text)
}

func (s *Setting) parseNumber(text string) (any, error) {
	n, err := strconv.ParseInt(text, 0, s.Type.Bits())
	switch {
	case errors.Is(err, strconv.ErrRange):
		return nil, fmt.Errorf("%s is too large", text)
	case err != nil:
		return nil, fmt.Errorf("want a whole number, got %q", text)
	}
	return n, s.checkBound(n, text)
}

// checkBound returns an error if n, whose text is a number or a duration, is too small.
func (s *Setting) checkBound(n int64, text string) error {
	switch {
	case n < 0 && s.zero:
		return fmt.Errorf("want zero or more, got %s", text)
	case n <= 0 && !s.zero:
		return fmt.Errorf("want more than zero, got %s", text)
	}
	return nil
}

// OrList returns words as in "a, b or c".
func OrList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// DefaultText returns the field's value as the default in the help. It does not read the tag
// default, so the field must have the default.
func (s *Setting) DefaultText() string {
	if s.field.IsZero() {
		return s.Unset
	}
	value := fmt.Sprint(s.field)
	if s.Type == durationType {
		value = shortDuration(time.Duration(s.field.Int()))
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
