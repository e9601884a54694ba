package backend_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/client/backend"
	"switchboard/client/hold"
	"switchboard/internal/apicheck"
)

// noCalls are the methods that make no call, or one that their caller chooses.
var noCalls = map[string]bool{"Client.Call": true, "Client.Close": true, "Client.URL": true}

// dropped are the members of answers that methods do not return, and converted the methods whose
// results have another form than the answer.
var (
	dropped = map[string][]string{
		"Rooms.Create": {"n"}, "Rooms.Get": {"n"}, "Rooms.Patch": {"n"}, "Rooms.Query": {"rooms/n"}, // only clients are members
		"Rooms.Reserve":    {"room"},
		"Accounts.Create":  {"expires_in", "message", "renewal", "renewal_expires_in", "token"}, // a login that nothing uses
		"Accounts.History": {"account"},
		"Rooms.Delete":     {"deleted", "id"}, "Holds.Delete": {"deleted"}, "Sessions.Delete": {"deleted"},
		"Rooms.Leave": {"n", "room"},
		"Rooms.Kick":  {"n", "room"}, "Rooms.KickFor": {"n", "room"},
		"Rooms.Lock":          {"channel", "code", "id", "members", "n", "owner", "owner_user", "room", "version"},
		"Rooms.Start":         {"channel", "code", "id", "members", "n", "owner", "owner_user", "room", "version"},
		"Rooms.Finish":        {"channel", "code", "id", "members", "n", "owner", "owner_user", "room", "version"},
		"Scenes.DeleteAvatar": {"created", "data", "figure", "id", "name", "scene", "status", "user", "version"},
		"Scenes.Leave":        {"created", "data", "figure", "id", "name", "scene", "status", "user", "version"},
		"Scenes.Delete":       {"count", "created", "data", "id", "name", "status", "time", "version", "world"},
	}
	converted = map[string]bool{"Client.Online": true}
)

// only are the parts of arguments that some methods do not send.
var only = map[string][]any{
	"Client.Channels": {backend.PageQuery{Prefix: "x", Cursor: "x", Limit: 1}},
	"Client.State":    {backend.PageQuery{Prefix: "x", Cursor: "x", Limit: 1}},
	"":                {backend.PageQuery{Cursor: "x", Limit: 1}},
	"Boards.Around":   {backend.BoardQuery{Season: "x", Limit: 1}},
	"Holds.Sell":      {backend.Places{ID: "x", Key: "x", User: "x", Seats: []string{"x"}, Count: 1, Durable: true}},
}

// TestOperations calls every method with all arguments and with none, and compares the requests,
// the repetition after a lost answer, and the results with the OpenAPI document.
func TestOperations(t *testing.T) {
	s := newRecorder(t)
	var wait sync.WaitGroup
	for _, m := range s.methods() {
		for _, arguments := range []func(reflect.Type) reflect.Value{m.filled, reflect.Zero} {
			wait.Go(func() { s.record(m, arguments) })
		}
		wait.Go(func() { s.compareResult(m) })
	}
	wait.Wait()
	problems, err := apicheck.Compare(s.calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// method is a method of the client.
type method struct {
	name string // with its type
	call func(c *backend.Client) reflect.Value
}

// filled returns a value of a type all of whose parts are set that the method sends.
func (m method) filled(typ reflect.Type) reflect.Value {
	for _, v := range append(only[m.name], only[""]...) {
		if reflect.TypeOf(v) == typ {
			return reflect.ValueOf(v)
		}
	}
	return filled(typ)
}

// recorder is a server that records requests. Each call has a base URL of its own.
type recorder struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	sessions []func(w http.ResponseWriter, r *http.Request)
	calls    []apicheck.Call
}

func newRecorder(t *testing.T) *recorder {
	s := &recorder{t: t}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, target, _ := strings.Cut(strings.TrimPrefix(r.RequestURI, "/"), "/")
		n, _ := strconv.Atoi(id)
		r.RequestURI = "/" + target
		s.mu.Lock()
		serve := s.sessions[n]
		s.mu.Unlock()
		serve(w, r)
	}))
	t.Cleanup(s.server.Close)
	return s
}

// client returns a client whose requests serve answers.
func (s *recorder) client(serve http.HandlerFunc) *backend.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = append(s.sessions, serve)
	url := s.server.URL + "/" + strconv.Itoa(len(s.sessions)-1)
	c, err := backend.New(backend.Options{URLs: []string{url}, RetryFor: time.Minute, Timeout: time.Minute})
	if err != nil {
		s.t.Error(err)
	}
	return c
}

// methods returns all methods of the client that make a call. Those of a client have a full id too,
// since the paths with a user are operations of their own.
func (s *recorder) methods() (list []method) {
	types := []func(c *backend.Client) any{
		func(c *backend.Client) any { return c },
		func(c *backend.Client) any { return backend.Rooms{Client: c} }, func(c *backend.Client) any { return backend.Holds{Client: c} },
		func(c *backend.Client) any { return backend.Boards{Client: c} }, func(c *backend.Client) any { return backend.Accounts{Client: c} },
		func(c *backend.Client) any { return backend.Sessions{Client: c} }, func(c *backend.Client) any { return backend.Scenes{Client: c} },
	}
	base := reflect.TypeFor[*backend.Client]()
	for _, make := range types {
		typ := reflect.TypeOf(make(nil))
		typeName := strings.TrimLeft(typ.String(), "*")[len("backend."):]
		for i := range typ.NumMethod() {
			name := typ.Method(i).Name
			of, inherited := base.MethodByName(name)
			same := inherited && of.Type.NumIn() == typ.Method(i).Type.NumIn() && of.Type.String()[len("func(*backend.Client"):] == typ.Method(i).Type.String()[len("func("+typ.String()):]
			if !noCalls[typeName+"."+name] && (typ == base || !same) {
				list = append(list, method{typeName + "." + name, func(c *backend.Client) reflect.Value { return reflect.ValueOf(make(c)).MethodByName(name) }})
			}
		}
	}
	const id = "user/client"
	return append(list,
		method{"Client.Client", func(c *backend.Client) reflect.Value {
			return reflect.ValueOf(func(ctx context.Context) (backend.ClientStatus, error) { return c.Client(ctx, id) })
		}},
		method{"Client.Queue", func(c *backend.Client) reflect.Value {
			return reflect.ValueOf(func(ctx context.Context, q backend.HistoryQuery) (backend.QueuePage, error) {
				return c.Queue(ctx, id, q)
			})
		}},
		method{"Holds.Put", func(c *backend.Client) reflect.Value {
			return reflect.ValueOf(func(ctx context.Context, s backend.ResourceSettings) (hold.Resource, error) {
				return backend.Holds{Client: c}.Put(ctx, "x", s, backend.Absent)
			})
		}},
		method{"Sessions.Put", func(c *backend.Client) reflect.Value {
			return reflect.ValueOf(func(ctx context.Context) (backend.Session, error) {
				return backend.Sessions{Client: c}.Put(ctx, "x", 1, 0, backend.Absent)
			})
		}},
		method{"Client.RevokeClient", func(c *backend.Client) reflect.Value {
			return reflect.ValueOf(func(ctx context.Context, r backend.Revocation) (backend.Revoked, error) {
				return c.RevokeClient(ctx, id, r)
			})
		}},
		method{"Client.SubscribeClient", func(c *backend.Client) reflect.Value {
			return reflect.ValueOf(func(ctx context.Context, sub backend.Subscriptions) (backend.SubscriptionsChanged, error) {
				return c.SubscribeClient(ctx, id, sub)
			})
		}},
		method{"Client.UnsubscribeClient", func(c *backend.Client) reflect.Value {
			return reflect.ValueOf(func(ctx context.Context) (backend.SubscriptionsChanged, error) {
				return c.UnsubscribeClient(ctx, id, "news")
			})
		}},
		method{"Client.DisconnectClient", func(c *backend.Client) reflect.Value {
			return reflect.ValueOf(func(ctx context.Context) (int, error) { return c.DisconnectClient(ctx, id) })
		}})
}

// record calls a method and loses the first answer.
func (s *recorder) record(m method, arguments func(reflect.Type) reflect.Value) {
	made := apicheck.Call{By: m.name}
	attempts := 0
	c := s.client(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if attempts++; attempts > 1 {
			made.Repeated = true
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		made.Method, made.Target, made.Header = r.Method, r.RequestURI, r.Header
		made.Body, _ = io.ReadAll(r.Body)
		panic(http.ErrAbortHandler)
	})
	call(s.t.Context(), m.call(c), arguments)
	s.mu.Lock()
	defer s.mu.Unlock()
	if attempts == 0 {
		s.t.Errorf("%s makes no call", m.name)
		return
	}
	s.calls = append(s.calls, made)
}

// compareResult calls a method, and compares its result with the answer. Of operations with several
// kinds of answers, one must fit.
func (s *recorder) compareResult(m method) {
	if converted[m.name] {
		return
	}
	var problems []string
	for i := 0; ; i++ {
		given := make(chan []json.RawMessage, 1)
		c := s.client(func(w http.ResponseWriter, r *http.Request) {
			answers, err := apicheck.Answers(r.Method, strings.Split(r.RequestURI, "?")[0])
			if err != nil {
				s.t.Error(err)
			}
			given <- answers
			_, _ = w.Write(answers[i])
		})
		results := call(s.t.Context(), m.call(c), m.filled)
		answers := <-given
		answer, kinds := answers[i], len(answers)
		var result any
		if n := len(results); n > 1 {
			result = results[0].Interface()
		}
		if err, _ := results[len(results)-1].Interface().(error); err != nil {
			s.t.Errorf("%s: %s: %v", m.name, answer, err)
			return
		}
		text, err := json.Marshal(result)
		if err != nil {
			s.t.Errorf("%s: %v", m.name, err)
			return
		}
		found := apicheck.CompareAnswer(m.name, answer, text, dropped[m.name])
		if len(found) == 0 {
			return
		}
		if problems = append(problems, found...); i+1 == kinds {
			s.t.Errorf("%s", strings.Join(problems, "\n"))
			return
		}
	}
}

// call calls a method.
func call(ctx context.Context, method reflect.Value, arguments func(reflect.Type) reflect.Value) []reflect.Value {
	var in []reflect.Value
	for i := range method.Type().NumIn() {
		typ := method.Type().In(i)
		switch {
		case typ == reflect.TypeFor[context.Context]():
			in = append(in, reflect.ValueOf(ctx))
		case method.Type().IsVariadic() && i == method.Type().NumIn()-1:
			if one := arguments(typ.Elem()); !one.IsZero() {
				in = append(in, one)
			}
		case typ.Kind() == reflect.String: // a name in the path
			in = append(in, filled(typ))
		default:
			in = append(in, arguments(typ))
		}
	}
	return method.Call(in)
}

// filled returns a value of a type all of whose parts are set.
func filled(typ reflect.Type) reflect.Value {
	v := reflect.New(typ).Elem()
	switch {
	case typ == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(time.Second))
	case typ == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.UnixMilli(1)))
	case typ == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"any":1}`))
	case typ.Kind() == reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
		v.Elem().Set(filled(typ.Elem()))
	case typ.Kind() == reflect.Struct:
		for i := range typ.NumField() {
			if typ.Field(i).IsExported() {
				v.Field(i).Set(filled(typ.Field(i).Type))
			}
		}
	case typ.Kind() == reflect.Slice:
		v.Set(reflect.Append(v, filled(typ.Elem())))
	case typ.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(typ))
		v.SetMapIndex(filled(typ.Key()), filled(typ.Elem()))
	case typ.Kind() == reflect.String:
		v.SetString("x")
	case typ.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	case v.CanFloat():
		v.SetFloat(1)
	case typ.Kind() == reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{"any": 1}))
	}
	return v
}
