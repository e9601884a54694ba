package wire

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// JSONError turns an error of encoding/json into an *Error that says what is wrong and where.
func JSONError(err error) error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return Errorf(BadRequest, "not JSON: byte %d: %s", syntax.Offset, syntax.Error())
	}
	if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		// %.40s, because the Value of a number has all its digits.
		if typ.Field == "" {
			return Errorf(BadRequest, "a JSON object is expected, not %.40s", typ.Value)
		}
		at := ""
		if typ.Offset > 0 { // Values.UnmarshalJSON does not know it
			at = ", at byte " + strconv.FormatInt(typ.Offset, 10)
		}
		return Errorf(BadRequest, "%s: %.40s does not fit, expected %s%s", withoutEmbedded(typ.Field), typ.Value, KindOf(typ.Type), at)
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok { // this error has no type of its own
		return Errorf(BadRequest, "unknown field %.200s", field)
	}
	return Errorf(BadRequest, "not JSON: %.200s", err.Error())
}

// withoutEmbedded returns the path of a field without the names of embedded structs, which
// encoding/json includes. These names begin with a capital letter, and no member of our JSON does.
func withoutEmbedded(path string) string {
	names := strings.Split(path, ".")
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return name != "" && 'A' <= name[0] && name[0] <= 'Z' }), ".")
}

// KindOf names the JSON type of a Go type, for errors.
func KindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "an integer"
}
