package configs

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"switchboard/broker/namespace"
)

type testOptions struct {
	testEmbedded
	On     bool          `setting:"on"`
	Places int           `setting:"places"`
	Share  float64       `setting:"share"`
	Grace  time.Duration `setting:"grace"`
	Name   string        `setting:"name"`
	List   []string      `setting:"list"`
	Modes  map[string]struct {
		Rated  bool `setting:"rated"`
		Places int  `setting:"places"`
	} `setting:"modes"`
	Fields []namespace.FieldRule `setting:"fields"`
	Inner  *testOptions          `setting:"inner"`
	Hidden int
}

type testEmbedded struct {
	Read namespace.Access `setting:"read"`
}

func readTest(text string) (o testOptions, err error) {
	node, err := parseYAML([]byte(text))
	if err == nil {
		err = readInto(node, "kit.x", reflect.ValueOf(&o).Elem())
	}
	return o, err
}

func TestReadInto(t *testing.T) {
	got, err := readTest(`
on: true
read: [named, grant]
places: 4
share: 0.5
grace: 15s
name: a
list: [b, c]
modes: {chess: {places: 2}, go: }
fields: {"g/*": {write: users}}
inner:
  inner:
`)
	if err != nil {
		t.Fatal(err)
	}
	chess := got.Modes["chess"]
	_, found := got.Modes["go"]
	switch {
	case !got.On, got.Read != namespace.Named|namespace.Grant, got.Places != 4, got.Share != 0.5, got.Grace != 15*time.Second, got.Name != "a",
		!reflect.DeepEqual(got.List, []string{"b", "c"}), chess.Places != 2, !found,
		len(got.Fields) != 1 || got.Fields[0].Pattern != "g/*", got.Inner == nil || got.Inner.Inner == nil:
		t.Errorf("got %+v", got)
	}
}

func TestReadIntoErrors(t *testing.T) {
	for text, want := range map[string]string{
		"hidden: 1":                      "line 1: kit.x.hidden: unknown key; want read, on, places, ",
		"places: 0":                      "line 1: kit.x.places: want a whole number above zero",
		"modes: {chess: {size: 1}}":      "line 1: kit.x.modes.chess.size: unknown key; want rated or places",
		"modes: [a]":                     "line 1: kit.x.modes: want settings as key: value",
		"read: [users, all]":             "line 1: kit.x.read: ",
		"on: 1":                          "line 1: kit.x.on: want true or false",
		"grace:":                         "line 1: kit.x.grace: there is no value; remove the line for the default",
		"inner: {grace: soon}":           "line 1: kit.x.inner.grace: want a duration",
		`fields: {"g/*": {write: evil}}`: `line 1: kit.x.fields.g/*.write: "evil"`,
	} {
		if _, err := readTest(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
