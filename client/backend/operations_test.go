package backend_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"switchboard/client/backend"
	"switchboard/client/room"
	"switchboard/internal/apicheck"
)

// notCompared are the methods that make no call, or one that their caller chooses. The call of
// Accounts.Create needs no API key.
var notCompared = map[string]bool{"Client.Call": true, "Client.Close": true, "Client.URL": true, "Accounts.Create": true}

// arguments are those of the methods, by type. Types that are not here have their zero values.
var arguments = map[reflect.Type]any{
	reflect.TypeFor[string]():               "x",
	reflect.TypeFor[time.Duration]():        time.Second,
	reflect.TypeFor[backend.PageQuery]():    backend.PageQuery{Cursor: "x", Limit: 1},
	reflect.TypeFor[backend.HistoryQuery](): backend.HistoryQuery{After: 1, Limit: 1, Wait: time.Second},
	reflect.TypeFor[backend.BoardQuery]():   backend.BoardQuery{Limit: 1, Season: "x"},
	reflect.TypeFor[backend.RoomQuery]():    backend.RoomQuery{ListOptions: room.ListOptions{Mode: "x", Free: 1, Desc: true}, Owner: "x"},
	reflect.TypeFor[backend.RoomCount]():    backend.RoomCount{Mode: "x", Status: "x", Region: "x", Visibility: "x", Owner: "x"},
	reflect.TypeFor[backend.Push]():         backend.Push{Channel: "x"},
}

// TestOperations calls every method, and compares the requests with the OpenAPI document.
func TestOperations(t *testing.T) {
	requests := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()
	c := newClient(t, server.URL)
	var calls []apicheck.Call
	call := func(name string, method reflect.Value) {
		callWithArguments(t.Context(), method)
		select {
		case r := <-requests:
			calls = append(calls, apicheck.Call{By: name, Method: r.Method, Target: r.RequestURI})
		default:
			t.Errorf("%s makes no call", name)
		}
	}
	for _, receiver := range []any{
		c, backend.Rooms{Client: c}, backend.Holds{Client: c}, backend.Boards{Client: c}, backend.Accounts{Client: c},
		backend.Sessions{Client: c}, backend.Scenes{Client: c},
	} {
		v := reflect.ValueOf(receiver)
		typeName := strings.TrimLeft(v.Type().String(), "*")[len("backend."):]
		for i := range v.NumMethod() {
			name := typeName + "." + v.Type().Method(i).Name
			if !notCompared[name] && (receiver == any(c) || !inherited(c, v.Type().Method(i).Name, v.Method(i))) {
				call(name, v.Method(i))
			}
		}
	}
	id := "user/client" // the paths of clients with a user are operations of their own
	call("Client.Client", reflect.ValueOf(func(ctx context.Context) { _, _ = c.Client(ctx, id) }))
	call("Client.Queue", reflect.ValueOf(func(ctx context.Context) { _, _ = c.Queue(ctx, id, backend.HistoryQuery{}) }))
	call("Client.DisconnectClient", reflect.ValueOf(func(ctx context.Context) { _, _ = c.DisconnectClient(ctx, id) }))
	problems, err := apicheck.Compare(calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// inherited returns whether a method is that of the embedded Client.
func inherited(c *backend.Client, name string, method reflect.Value) bool {
	of := reflect.ValueOf(c).MethodByName(name)
	return of.IsValid() && of.Type() == method.Type()
}

func callWithArguments(ctx context.Context, method reflect.Value) {
	var in []reflect.Value
	for i := range method.Type().NumIn() {
		typ := method.Type().In(i)
		if method.Type().IsVariadic() && i == method.Type().NumIn()-1 {
			break
		}
		v := reflect.Zero(typ)
		if typ == reflect.TypeFor[context.Context]() {
			v = reflect.ValueOf(ctx)
		} else if argument, found := arguments[typ]; found {
			v = reflect.ValueOf(argument)
		}
		in = append(in, v)
	}
	method.Call(in)
}
