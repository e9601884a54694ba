package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"switchboard/broker/namespace"
)

func loadText(t *testing.T, text string, environ ...string) (Broker, error) {
	t.Helper()
	return LoadBroker([]string{"--config", write(t, "broker.yaml", text)}, environ)
}

func TestKit(t *testing.T) {
	b, err := loadText(t, `
kit:
  rooms: {modes: {duel: {capacity: 2, grace: 30s, fields: {"g/*": {write: users}}}}}
  holds:
  boards: {boards: {"*": {order: asc, mode: add}}}
  accounts: {guests: true, signing_key: `+testSecret+`}
`)
	if err != nil {
		t.Fatal(err)
	}
	k := b.Kit
	if k.Rooms == nil || k.Holds == nil || k.Boards == nil || k.Accounts == nil || k.Sessions != nil {
		t.Fatalf("got %+v", k)
	}
	duel := k.Rooms.Modes["duel"]
	if duel.Capacity != 2 || duel.Grace != 30*time.Second || len(duel.Fields) != 1 || k.Boards.Boards["*"].Order != "asc" || !k.Accounts.Guests {
		t.Errorf("got %+v", k)
	}
	if o, err := b.AccountOptions(); err != nil || string(o.SigningKey) != testSecret || !o.Guests {
		t.Errorf("accounts: %+v, %v", o, err)
	}
}

// TestKitRead: the access without clients differs from the default, which the packages set.
func TestKitRead(t *testing.T) {
	b, err := loadText(t, "kit: {holds: {read: nobody}, scenes: {read: nobody}}")
	if err != nil || b.Kit.Holds.Read == nil || *b.Kit.Holds.Read != namespace.BackendOnly || b.Kit.Scenes.Read == nil || *b.Kit.Scenes.Read != namespace.BackendOnly {
		t.Errorf("no clients: %+v, %v", b.Kit, err)
	}
	b, err = loadText(t, "kit: {holds: , scenes: {read: [users, grant]}}")
	if err != nil || b.Kit.Holds.Read != nil || *b.Kit.Scenes.Read != namespace.Users|namespace.Grant {
		t.Errorf("the default, and a list: %+v, %v", b.Kit, err)
	}
	if _, err := loadText(t, "kit: {holds: {read: }}"); err == nil || !strings.Contains(err.Error(), "kit.holds.read: there is no value") {
		t.Errorf("no value: %v", err)
	}
}

func TestKitIsOff(t *testing.T) {
	for _, text := range []string{"", "kit:", "kit: {}"} {
		if b, err := loadText(t, text); err != nil || b.Kit != (Kit{}) {
			t.Errorf("%q: %+v, %v", text, b.Kit, err)
		}
	}
	if b, err := loadText(t, "", "SWITCHBOARD_KIT_ROOMS={}"); err != nil || b.Kit.Rooms == nil {
		t.Errorf("the environment switches nothing on: %+v, %v", b.Kit, err)
	}
}

func TestKitErrors(t *testing.T) {
	for text, want := range map[string]string{
		"kit: {chess: }":                                         "unknown key kit.chess",
		"kit: {rooms: {mode: {}}}":                               "kit.rooms.mode: unknown key; want modes",
		"kit: {rooms: {modes: {a: {grace: }}}}":                  "kit.rooms.modes.a.grace: there is no value",
		"kit: {accounts: {signing_key: a, signing_key_file: b}}": "both are given, keep one",
	} {
		if _, err := loadText(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestSigningKey checks which key signs the tokens of accounts.
func TestSigningKey(t *testing.T) {
	other := strings.Repeat("o", 32)
	for text, want := range map[string]string{
		"kit: {accounts: }": "",
		"{kit: {accounts: }, auth: {hs256_secret: " + testSecret + "}}":                             testSecret,
		"{kit: {accounts: {signing_key: " + other + "}}, auth: {hs256_secret: " + testSecret + "}}": other,
		"kit: {accounts: {signing_key_file: " + write(t, "key", other+"\n") + "}}":                  other,
	} {
		b, err := loadText(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if o, err := b.AccountOptions(); err != nil || string(o.SigningKey) != want {
			t.Errorf("%s: got %q, %v", text, o.SigningKey, err)
		}
	}
	b, err := loadText(t, "kit: {accounts: {signing_key: short}}")
	if err == nil {
		_, err = b.AccountOptions()
	}
	if err == nil || !strings.HasPrefix(err.Error(), "kit.accounts.signing_key: ") {
		t.Errorf("a short key: %v", err)
	}
}

// TestKitExamples loads the examples in the comments of the shipped configurations.
func TestKitExamples(t *testing.T) {
	for _, path := range []string{"production.yaml", "cluster.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		example := regexp.MustCompile(`(?m)^# kit:\n(#   .*\n)+`).FindString(string(text))
		b, err := loadText(t, strings.ReplaceAll("\n"+example, "\n# ", "\n"))
		if err != nil || b.Kit.Rooms == nil || b.Kit.Rooms.Modes["duel"].Capacity != 2 || b.Kit.Accounts == nil {
			t.Errorf("%s: %+v, %v", filepath.Base(path), b.Kit, err)
		}
	}
	b, err := LoadBroker([]string{"--config", "development.yaml"}, nil)
	if k := b.Kit; err != nil || k.Rooms == nil || k.Holds == nil || k.Boards == nil || k.Accounts == nil || k.Sessions == nil || k.Scenes == nil {
		t.Errorf("development.yaml: %+v, %v", k, err)
	}
}

// TestKitOptions checks that each option of a system that a configuration can hold is a setting, or
// has the tag - if it is none.
func TestKitOptions(t *testing.T) {
	var check func(reflect.Type)
	check = func(options reflect.Type) {
		for field := range options.Fields() {
			kind := field.Type
			for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice || kind.Kind() == reflect.Map {
				kind = kind.Elem()
			}
			_, tagged := field.Tag.Lookup("setting")
			switch {
			case !field.IsExported():
			case field.Anonymous, tagged && kind.Kind() == reflect.Struct && kind != reflect.TypeFor[namespace.FieldRule]():
				check(kind)
			case !tagged && kind.Kind() != reflect.Struct && kind.Kind() != reflect.Interface:
				t.Errorf("%v: %s has no tag", options, field.Name)
			}
		}
	}
	for field := range reflect.TypeFor[Kit]().Fields() {
		check(field.Type.Elem())
	}
}
