package configs

import (
	"reflect"
	"strings"
	"time"

	"switchboard/broker/namespace"
)

// textWidth is the longest line of a text in the help.
const textWidth = 87

// sectionText returns the help of a section that readInto reads into a t. In text, {} stands for
// the settings. It breaks lines only between two of them.
func sectionText(text string, t reflect.Type) string {
	return wrap(strings.Replace(text, "{}", valueText(t, ""), 1), ", ")
}

// valueText returns how a value of a type is written. name is the tag value of its field: what the
// operator writes instead of the type's usual word, or the name of an entry of a map.
func valueText(t reflect.Type, name string) string {
	or := func(usual string) string {
		if name == "" {
			return usual
		}
		return name
	}
	switch t.Kind() {
	case reflect.Pointer:
		return valueText(t.Elem(), name)
	case reflect.Struct:
		return "{" + strings.Join(settingTexts(t), ", ") + "}"
	case reflect.Map:
		return "{" + or("NAME") + ": " + valueText(t.Elem(), "") + "}"
	case reflect.Slice:
		if t.Elem() == reflect.TypeFor[namespace.FieldRule]() {
			return "as in a namespace"
		}
		return "[" + or("TEXT") + ", ...]"
	case reflect.Bool:
		return "true"
	case reflect.String:
		return or("TEXT")
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "DURATION"
	case reflect.TypeFor[namespace.Access]():
		return "WHO"
	}
	return or("N")
}

// settingTexts returns each setting of a struct with its value, in the order of the fields.
func settingTexts(t reflect.Type) (list []string) {
	for field := range t.Fields() {
		if field.Anonymous {
			list = append(list, settingTexts(field.Type)...)
		} else if key := field.Tag.Get("setting"); key != "" && key != "-" {
			list = append(list, key+": "+valueText(field.Type, field.Tag.Get("value")))
		}
	}
	return list
}

// wrap breaks a text into lines after the separator, which ends with a space.
func wrap(text, separator string) string {
	var b strings.Builder
	length := 0
	for part := range strings.SplitAfterSeq(text, separator) {
		if line := strings.TrimSuffix(part, " "); length > 0 && length+len(line) > textWidth {
			b.WriteString("\n")
			length = 0
		}
		b.WriteString(part)
		length += len(part)
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}
