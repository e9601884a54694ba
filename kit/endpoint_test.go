package kit

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// thing is the path of the requests of the tests. Its name is a member of the data of methods, too.
type thing struct {
	Name string `json:"name" required:"true" path:"name"`
}

type mode string

// request has a field of each kind.
type request struct {
	thing
	Mode    mode     `query:"mode"`
	Limit   int      `query:"limit" range:"page"`
	From    int64    `json:"from" query:"from" range:"0,99"`
	Desc    bool     `query:"desc"`
	Match   Match    `json:"-" header:"If-Match,If-None-Match"`
	Score   int      `json:"score" required:"true"`
	Note    *string  `json:"note,omitempty"`
	Tags    []string `json:"tags"`
	Unbound string   `json:"-"`
}

func decodeJSON(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// bind returns the request that a server with the pattern "PUT /things/{name}" binds.
func bind[In any](t *testing.T, target, body string, header ...string) (in In, err error) {
	t.Helper()
	b, mux := NewBinder[In](decodeJSON), http.NewServeMux()
	mux.HandleFunc("PUT /things/{name}", func(_ http.ResponseWriter, r *http.Request) { in, err = b.Bind(r) })
	r := httptest.NewRequest(http.MethodPut, target, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	mux.ServeHTTP(httptest.NewRecorder(), r)
	return in, err
}

func TestBind(t *testing.T) {
	note := "x"
	for _, c := range []struct {
		target, body string
		header       []string
		want         request
	}{
		{"/things/a", `{"score":1}`, nil, request{thing: thing{"a"}, Score: 1}},
		{
			"/things/a%2Fb?mode=m&limit=1000&from=99&desc=1", `{"note":"x","tags":["y","z"],"score":-2}`, []string{"If-Match", `"7"`},
			request{thing{"a/b"}, "m", 1000, 99, true, Match{Version: 7}, -2, &note, []string{"y", "z"}, ""},
		},
		{"/things/a?desc=false&limit=", `{}`, []string{"If-None-Match", "*"}, request{thing: thing{"a"}, Match: Match{Absent: true}}},
	} {
		if got, err := bind[request](t, c.target, c.body, c.header...); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s: %+v, %v, want %+v", c.target, c.body, got, err, c.want)
		}
	}
	for _, c := range []struct {
		target, body string
		header       []string
		want         string
	}{
		{"/things/a", `{"name":"b"}`, nil, `unknown field "name"`}, // the path has it
		{"/things/a", `{"from":1}`, nil, `unknown field "from"`},
		{"/things/a", `{"Match":{}}`, nil, `unknown field "Match"`},
		{"/things/a", `{"score":"1"}`, nil, "score"},
		{"/things/a?limit=1001", `{}`, nil, `limit: "1001" is not a number within 1 and 1000`},
		{"/things/a?limit=0", `{}`, nil, `limit: "0" is not a number within 1 and 1000`},
		{"/things/a?from=100", `{}`, nil, `from: "100" is not a number within 0 and 99`},
		{"/things/a?limit=x", `{}`, nil, `limit: "x" is not a number within 1 and 1000`},
		{"/things/a?desc=yes", `{}`, nil, "desc: it is neither true nor false"},
		{"/things/a", `{}`, []string{"If-Match", "W/x"}, "If-Match"},
	} {
		if got, err := bind[request](t, c.target, c.body, c.header...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %+v, %v, want the error %q", c.target, c.body, got, err, c.want)
		}
	}
}

// TestBindVersion: a version of 0 or nil is any version.
func TestBindVersion(t *testing.T) {
	type versions struct {
		Plain   int64  `header:"If-Match"`
		Pointer *int64 `json:"version" header:"If-Match"`
		Match   Match  `header:"If-Match"`
	}
	seven := int64(7)
	for text, want := range map[string]versions{"": {}, "*": {Match: Match{Exists: true}}, "7": {7, &seven, Match{Version: 7}}} {
		var header []string
		if text != "" {
			header = []string{"If-Match", text}
		}
		if got, err := bind[versions](t, "/things/a", "", header...); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("If-Match %q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	if _, err := bind[versions](t, "/things/a", "", "If-None-Match", "*"); err == nil {
		t.Error("If-None-Match is taken for a call that changes only what exists")
	}
}

// TestBinderTakes checks what a call says that it takes.
func TestBinderTakes(t *testing.T) {
	all := NewBinder[request](nil)
	if want := []string{"mode", "limit", "from", "desc"}; !slices.Equal(all.Query, want) || all.Conditions != 2 || !all.Body {
		t.Errorf("it takes %q, %d conditions, a body: %v", all.Query, all.Conditions, all.Body)
	}
	if one := NewBinder[thing](nil); len(one.Query) != 0 || one.Conditions != 0 || one.Body {
		t.Errorf("a path takes %q, %d conditions, a body: %v", one.Query, one.Conditions, one.Body)
	}
}

func TestBinderPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"a parameter of another type": func() {
			NewBinder[struct {
				F []string `query:"f"`
			}](nil)
		},
		"a number without a range": func() {
			NewBinder[struct {
				F int `query:"f"`
			}](nil)
		},
		"a condition of another type": func() {
			NewBinder[struct {
				F string `header:"If-Match"`
			}](nil)
		},
		"a part of the path, a number": func() {
			NewBinder[struct {
				F int `path:"f"`
			}](nil)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// TestHandle: the operation runs with the request, and not at all if it cannot be bound.
func TestHandle(t *testing.T) {
	ran := 0
	handle := Handle(NewBinder[struct {
		Score int `json:"score"`
	}](decodeJSON), func(_ context.Context, q struct {
		Score int `json:"score"`
	}) (int, error) {
		ran++
		return q.Score + 1, nil
	})
	for body, want := range map[string]any{`{"score":1}`: 2, `{`: nil} {
		if got, err := handle(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))); got != want || (err == nil) != (want != nil) {
			t.Errorf("%s: %v, %v, want %v", body, got, err, want)
		}
	}
	if ran != 1 {
		t.Errorf("the operation ran %d times", ran)
	}
}
