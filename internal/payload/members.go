package payload

import (
	"encoding/json"
	"slices"
	"strconv"

	"switchboard/internal/wire"
)

// maxScanned is the most members of an object, or texts of a list, that Values and Texts read.
// Values compares each name with those before it.
const maxScanned = 64

// Raw reads any value, as Value does.
func (s *Scanner) Raw() (json.RawMessage, bool) {
	value, _, ok := s.Value()
	return value, ok
}

// Bool reads true or false.
func (s *Scanner) Bool() (value, ok bool) {
	text, _, _ := s.Value()
	return string(text) == "true", string(text) == "true" || string(text) == "false"
}

// Number reads a number that fits a float64. strconv refuses values of all other kinds.
func (s *Scanner) Number() (float64, bool) {
	text, _, _ := s.Value()
	n, err := strconv.ParseFloat(string(text), 64)
	return n, err == nil
}

// Values reads an object that has at least one member and no name twice. The values share the
// memory of the text.
func (s *Scanner) Values() (list wire.Values, ok bool) {
	s.outer++
	defer func() { s.outer-- }()
	for before := byte('{'); len(list) < maxScanned; before = ',' {
		name, ok := s.Field(before)
		if !ok || slices.ContainsFunc(list, func(v wire.Value) bool { return v.Name == string(name) }) {
			return nil, false
		}
		value, ok := s.Raw()
		if !ok {
			return nil, false
		}
		list = append(list, wire.Value{Name: string(name), JSON: value})
		if s.Take('}') {
			return list, true
		}
	}
	return nil, false
}

// Texts reads a list of at least one string without escapes.
func (s *Scanner) Texts() (list []string, ok bool) {
	for before := byte('['); len(list) < maxScanned && s.Take(before); before = ',' {
		text, ok := s.Text()
		if !ok {
			return nil, false
		}
		list = append(list, string(text))
		if s.Take(']') {
			return list, true
		}
	}
	return nil, false
}
