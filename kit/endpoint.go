package kit

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"switchboard/broker/api"
	"switchboard/internal/wire"
)

// A Binder makes the In of a call from an HTTP request. The tags of a field of In say where it
// comes from:
//
//	path:"room"                          the part {room} of the path
//	query:"cursor"                       the parameter of the query; an absent one is zero
//	query:"limit" range:"page"           the same, the most items of a page, see [PageLimit]
//	query:"from" range:"0,99"            the same, a number within the bounds
//	header:"If-Match"                    the condition: a [Match], see [MatchExisting], or a version,
//	                                     see [IfMatch]; any version is nil, or 0 without a pointer
//	header:"If-Match,If-None-Match"      the condition: a [Match], see [ParseMatch]
//	json:"name"                          the member of the body
//
// A field with one of the first tags and json is a member of the data of a method of clients, which
// has neither a path nor a query, so that both can have one In. Embedded structs are parts of In.
type Binder[In any] struct {
	// Query are the parameters of the query.
	Query []string
	// Conditions says which of the headers If-Match and If-None-Match the call takes.
	Conditions api.Conditions
	// Body reports whether the call has a body.
	Body bool

	decode func(r *http.Request, into any) error
	parts  []part       // all but the body
	body   reflect.Type // a struct with the members of the body
	fields [][]int      // the fields of In for those of body
}

// part is a field of an In that is not in the body.
type part struct {
	index  []int
	bind   func(r *http.Request, p *part, to reflect.Value) error
	name   string   // in the path or the query
	bounds [2]int64 // of a number
}

// NewBinder returns the binder for In. decode decodes a body, as api.DecodeBody does. It panics if
// In has a tag or a type that it does not know.
func NewBinder[In any](decode func(r *http.Request, into any) error) *Binder[In] {
	b := &Binder[In]{decode: decode}
	var body []reflect.StructField
	b.add(reflect.TypeFor[In](), nil, &body)
	if b.Body = len(body) > 0; b.Body {
		b.body = reflect.StructOf(body)
	}
	return b
}

// add adds the fields of a struct, which is In or embedded in it.
func (b *Binder[In]) add(t reflect.Type, at []int, body *[]reflect.StructField) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(at), i)
		member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := part{index: index}
		switch path, query, header := f.Tag.Get("path"), f.Tag.Get("query"), f.Tag.Get("header"); {
		case path != "" && f.Type.Kind() == reflect.String:
			p.name, p.bind = path, bindPath
		case path != "":
		case query != "":
			p.name, p.bind = query, bindQuery(f)
			p.bounds = boundsOf(f)
			b.Query = append(b.Query, query)
		case header != "":
			b.Conditions, p.bind = api.Conditions(strings.Count(header, ",")+1), matchBinders[header+" "+f.Type.String()]
		case f.Anonymous && member == "" && f.Type.Kind() == reflect.Struct:
			b.add(f.Type, index, body)
			continue
		case member != "" && member != "-":
			*body = append(*body, reflect.StructField{Name: fmt.Sprint("F", len(*body)), Type: f.Type, Tag: f.Tag})
			b.fields = append(b.fields, index)
			continue
		default:
			continue
		}
		if p.bind == nil {
			panic(fmt.Sprintf("kit: the field %s of %v cannot be bound", f.Name, t))
		}
		b.parts = append(b.parts, p)
	}
}

// Bind returns the In of a request. The error is bad_request.
func (b *Binder[In]) Bind(r *http.Request) (in In, err error) {
	to := reflect.ValueOf(&in).Elem()
	if b.Body {
		body := reflect.New(b.body)
		if err := b.decode(r, body.Interface()); err != nil {
			return in, err
		}
		for i, index := range b.fields {
			to.FieldByIndex(index).Set(body.Elem().Field(i))
		}
	}
	for i := range b.parts {
		p := &b.parts[i]
		if err := p.bind(r, p, to.FieldByIndex(p.index)); err != nil {
			return in, err
		}
	}
	return in, nil
}

// Call returns the HTTP call that runs an operation with the bound request. scope is that of the
// API key.
func Call[In, Out any](pattern, scope string, run func(context.Context, In) (Out, error)) api.Call {
	return CallWith(NewBinder[In](api.DecodeBody), pattern, scope, run)
}

// CallWith is [Call] with another binder.
func CallWith[In, Out any](b *Binder[In], pattern, scope string, run func(context.Context, In) (Out, error)) api.Call {
	return api.Call{
		Pattern: pattern, Scope: scope, Query: b.Query, Conditions: b.Conditions, Body: b.Body, Handle: Handle(b, run),
	}
}

// Handle returns the function that makes an HTTP call, see api.Call: it binds the request, and runs
// the operation.
func Handle[In, Out any](b *Binder[In], run func(context.Context, In) (Out, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		in, err := b.Bind(r)
		if err != nil {
			return nil, err
		}
		return run(r.Context(), in)
	}
}

func bindPath(r *http.Request, p *part, to reflect.Value) error {
	to.SetString(r.PathValue(p.name))
	return nil
}

// bindQuery returns the function that binds a field to a parameter, nil if the type is not known.
func bindQuery(f reflect.StructField) func(*http.Request, *part, reflect.Value) error {
	switch f.Type.Kind() {
	case reflect.String:
		return func(r *http.Request, p *part, to reflect.Value) error {
			to.SetString(r.URL.Query().Get(p.name))
			return nil
		}
	case reflect.Int, reflect.Int64:
		return bindNumber
	case reflect.Bool:
		return bindBool
	}
	return nil
}

func bindNumber(r *http.Request, p *part, to reflect.Value) error {
	n, err := api.QueryInt(r, p.name, 0, p.bounds[0], p.bounds[1])
	to.SetInt(n)
	return err
}

func bindBool(r *http.Request, p *part, to reflect.Value) error {
	switch r.URL.Query().Get(p.name) {
	case "", "0", "false":
	case "1", "true":
		to.SetBool(true)
	default:
		return wire.Errorf(wire.BadRequest, "%s: it is neither true nor false", p.name)
	}
	return nil
}

// boundsOf returns the bounds of a number.
func boundsOf(f reflect.StructField) (bounds [2]int64) {
	if f.Type.Kind() != reflect.Int && f.Type.Kind() != reflect.Int64 {
		return bounds
	}
	if f.Tag.Get("range") == "page" {
		return [2]int64{1, MaxPage}
	}
	if _, err := fmt.Sscanf(f.Tag.Get("range"), "%d,%d", &bounds[0], &bounds[1]); err != nil {
		panic(fmt.Sprintf("kit: the field %s has no range: %v", f.Name, err))
	}
	return bounds
}

// matchBinders bind the conditions of a request, by the value of the tag header and the type of the
// field.
var matchBinders = map[string]func(*http.Request, *part, reflect.Value) error{
	"If-Match kit.Match":               matchBinder(MatchExisting),
	"If-Match,If-None-Match kit.Match": matchBinder(ParseMatch),
	"If-Match int64":                   matchBinder(IfMatch),
	"If-Match *int64": matchBinder(func(h http.Header) (*int64, error) {
		version, err := IfMatch(h)
		if version == 0 {
			return nil, err
		}
		return &version, err
	}),
}

func matchBinder[T any](parse func(http.Header) (T, error)) func(*http.Request, *part, reflect.Value) error {
	return func(r *http.Request, _ *part, to reflect.Value) error {
		match, err := parse(r.Header)
		to.Set(reflect.ValueOf(match))
		return err
	}
}
