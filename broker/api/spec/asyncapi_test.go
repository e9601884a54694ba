package spec_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/broker/api/spec"
	"switchboard/broker/hook"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/kit/kittest"
)

// messages are the messages of the AsyncAPI document.
type messages struct {
	*document
	fromClient, fromBroker map[string]pointer // the payloads by type
}

func parseMessages(t *testing.T) *messages {
	t.Helper()
	m := &messages{parse(t, spec.AsyncAPI(), true), map[string]pointer{}, map[string]pointer{}}
	for _, o := range m.root["operations"].(object) {
		list := m.fromBroker
		if o.(object)["action"] == "receive" {
			list = m.fromClient
		}
		for _, ref := range o.(object)["messages"].([]any) {
			p := m.follow(pointer(strings.TrimPrefix(ref.(object)["$ref"].(string), "#")))
			list[m.typeOf(p)] = p.at("payload")
		}
	}
	return m
}

// typeOf returns the type in the payload of a message.
func (m *messages) typeOf(p pointer) string {
	return m.get(p.at("payload", "properties", "type", "const")).(string)
}

// TestMessageExamples compares each example with its payload. Each message has one.
func TestMessageExamples(t *testing.T) {
	m := parseMessages(t)
	for name, message := range m.root["components"].(object)["messages"].(object) {
		p := pointer("").at("components", "messages", name)
		if got := message.(object)["name"]; got != m.typeOf(p) {
			t.Errorf("%s: its name is %v, its type %s", name, got, m.typeOf(p))
		}
		examples, _ := message.(object)["examples"].([]any)
		if len(examples) == 0 {
			t.Errorf("%s: it has no example", name)
		}
		for _, e := range examples {
			if err := m.schema(t, p.at("payload")).Validate(e.(object)["payload"]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestMessageTypes compares the types of the document with the constants of package wire, and asks
// a broker which of them it takes from clients.
func TestMessageTypes(t *testing.T) {
	m := parseMessages(t)
	described := slices.Sorted(maps.Keys(m.fromClient))
	described = append(described, slices.Sorted(maps.Keys(m.fromBroker))...)
	slices.Sort(described)
	known := wireTypes(t)
	if described = slices.Compact(described); !slices.Equal(described, known) {
		t.Errorf("the document has the types %v, package wire %v", described, known)
	}
	r := &runner{t: t, broker: newBroker(t)}
	l := r.connect(`{"type":"connect"}`)
	for _, typ := range known {
		if typ == wire.TypeAck || typ == wire.TypePong { // they have no answer
			continue
		}
		l.send(`{"type":"` + typ + `","ref":1}`)
		text, _ := l.next()["message"].(string)
		_, described := m.fromClient[typ]
		if accepted := !strings.Contains(text, "is not known"); accepted != described {
			t.Errorf("%s: the broker answers %q, described as a message of the client: %v", typ, text, described)
		}
	}
}

// wireTypes returns the values of the constants TypeX of package wire, in order.
func wireTypes(t *testing.T) (types []string) {
	t.Helper()
	files, err := filepath.Glob("../../../internal/wire/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Type") && len(v.Values) == 1 {
				text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				types = append(types, text)
			}
			return true
		})
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// TestMessageFields compares the fields of all messages with those of wire.Request and wire.Event.
func TestMessageFields(t *testing.T) {
	m := parseMessages(t)
	for _, test := range []struct {
		list   map[string]pointer
		typ    reflect.Type
		except string // only backends use it, over HTTP
	}{
		{m.fromClient, reflect.TypeFor[wire.Request](), "of"}, {m.fromBroker, reflect.TypeFor[wire.Event](), ""},
	} {
		described := map[string]bool{}
		for _, p := range test.list {
			for name := range m.get(p.at("properties")).(object) {
				described[name] = true
			}
		}
		known := map[string]bool{}
		for _, f := range reflect.VisibleFields(test.typ) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" && name != test.except {
				known[name] = true
			}
		}
		if !maps.Equal(described, known) {
			t.Errorf("%s: the document has the fields %v, the codec %v",
				test.typ, slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(known)))
		}
	}
}

// TestStoredMessages compares the fields of a message in a history with those of wire.Stored.
func TestStoredMessages(t *testing.T) {
	schema := parse(t, spec.AsyncAPI(), false).root["components"].(object)["schemas"].(object)["StoredMessage"]
	described := slices.Sorted(maps.Keys(schema.(object)["properties"].(object)))
	// Only the backend receives the first ones. The others are those of pages.
	except := []string{"from", "exclude", "first", "fields", "cursor", "group", "max"}
	known := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[wire.Stored]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && !slices.Contains(except, name) {
			known[name] = true
		}
	}
	if want := slices.Sorted(maps.Keys(known)); !slices.Equal(described, want) {
		t.Errorf("the document has the fields %v, wire.Stored %v", described, want)
	}
}

// checkFrame returns an error unless a message of the broker fits the document.
func (m *messages) checkFrame(t *testing.T, frame []byte) (typ string, err error) {
	t.Helper()
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(frame, &head); err != nil {
		return "", err
	}
	p, found := m.fromBroker[head.Type]
	if !found {
		return head.Type, wire.Errorf(wire.BadRequest, "the type %q is not described", head.Type)
	}
	return head.Type, m.check(t, p, frame)
}

// TestRefusedMessages sends the examples of each message of a client without each of its members,
// with null for it, and with a value of another type. If the payload does not fit the document, the
// broker must answer with an error that names the member; otherwise the error is not bad_request.
// null in a member that is not required means that it is absent.
func TestRefusedMessages(t *testing.T) {
	m := parseMessages(t)
	r := &runner{t: t, broker: startBroker(t, kittest.NewMemory(), func(o *broker.Options) {
		o.Requests.From, o.Requests.Backend = namespace.Anyone, hook.RequestOptions{URL: "http://127.0.0.1:9/", Secrets: []string{strings.Repeat("s", 32)}}
	})}
	sent := map[string]bool{}
	for typ, payload := range m.fromClient {
		for _, text := range m.examples(payload) {
			free := func(text string) bool { return false }
			for _, one := range mutations(text, free) {
				fits := m.fits(t, payload, one)
				switch {
				case one.outer != "" || one.kind != "missing" && one.kind != "null" && one.kind != "type":
					continue
				case one.member == "info" && one.kind == "type": // an open broker reads it
					continue
				case one.kind == "type" && fits, typ == wire.TypeRequest && one.member == "data": // any value, or what the method needs
					continue
				}
				sent[typ+" "+one.member] = true
				l := r.dial()
				if typ != wire.TypeConnect {
					l.ask(`{"type":"connect"}`)
				}
				l.send(one.body)
				if fits { // not every message has an answer
					l.send(`{"type":"ping","ref":-1}`)
				}
				answer := string(l.nextText())
				refused := strings.Contains(answer, `"code":"bad_request"`) || strings.Contains(answer, `"code":"unauthorized"`)
				if fits && strings.Contains(answer, `"code":"bad_request"`) || !fits && (!refused || !strings.Contains(answer, one.member)) {
					t.Errorf("%s %s: %s: fits: %v: %s", one.member, one.kind, one.body, fits, answer)
				}
			}
		}
		for _, path := range m.members(payload, "") {
			if !sent[typ+" "+path[1:]] && path != "/data" {
				t.Errorf("%s: no example has the member %s", typ, path[1:])
			}
		}
	}
}

// examples returns the examples of the message with a payload.
func (m *messages) examples(payload pointer) (list []string) {
	all, _ := m.get(pointer(strings.TrimSuffix(string(payload), "/payload")).at("examples")).([]any)
	for _, example := range all {
		text, _ := json.Marshal(example.(object)["payload"])
		list = append(list, string(text))
	}
	return list
}
