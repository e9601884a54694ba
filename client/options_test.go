package client

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestOptionsAreChecked(t *testing.T) {
	source := func(context.Context) (string, error) { return "", nil }
	for name, tc := range map[string]struct {
		opts Options
		want string // part of the error, "" for none
	}{
		"tcp":             {opts: Options{URLs: []string{"tcp://127.0.0.1:7070"}}},
		"wss":             {opts: Options{URLs: []string{"wss://example.org"}}},
		"long min":        {opts: Options{URLs: []string{"ws://h"}, BackoffMin: time.Minute}},
		"without URLs":    {want: "URLs"},
		"unknown scheme":  {opts: Options{URLs: []string{"http://h/ws"}}, want: "scheme"},
		"without port":    {opts: Options{URLs: []string{"tcp://h"}}, want: "port"},
		"without host":    {opts: Options{URLs: []string{"ws:///ws"}}, want: "host"},
		"malformed URL":   {opts: Options{URLs: []string{"ws://%zz"}}, want: "not a URL"},
		"token in URL":    {opts: Options{URLs: []string{"ws://h/ws?token=t"}}, want: "Token"},
		"password in URL": {opts: Options{URLs: []string{"ws://u:p@h/ws"}}, want: "Token"},
		"both tokens":     {opts: Options{URLs: []string{"ws://h"}, Token: "t", TokenSource: source}, want: "TokenSource"},
		"client name":     {opts: Options{URLs: []string{"ws://h"}, Client: "a b"}, want: "client"},
		"user name":       {opts: Options{URLs: []string{"ws://h"}, User: "{"}, want: "user"},
		"negative min":    {opts: Options{URLs: []string{"ws://h"}, BackoffMin: -1}, want: "BackoffMin"},
		"max below min":   {opts: Options{URLs: []string{"ws://h"}, BackoffMax: 1}, want: "BackoffMax"},
		"second URL":      {opts: Options{URLs: []string{"ws://h", "h"}}, want: "URLs"},
	} {
		_, err := New(tc.opts)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: error %v, want one about %q", name, err, tc.want)
		}
	}
}

func TestPathDefault(t *testing.T) {
	for raw, want := range map[string]string{
		"ws://h:1": "ws://h:1/ws", "ws://h/": "ws://h/ws", "wss://h/other?x=1": "wss://h/other?x=1",
	} {
		if e, err := parseEndpoint(raw); err != nil || e.url.String() != want {
			t.Errorf("%s became %v, %v", raw, e.url, err)
		}
	}
}
