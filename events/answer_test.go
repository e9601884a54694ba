package events

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"switchboard/webhook"
)

// TestAnswers checks what operators see of the result of an attempt: never the whole URL, which may
// have a secret.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want Answer
	}{
		{nil, Answer{Status: 200}},
		{&webhook.Refusal{Status: 503}, Answer{Status: 503}},
		{&url.Error{Op: "Post", URL: "https://b/?key=secret", Err: errors.New("connection\nrefused")}, Answer{Error: "connection refused"}},
		{&url.Error{Op: "Post", URL: "https://b/?key=secret", Err: context.DeadlineExceeded}, Answer{Error: "no answer in time"}},
		{errors.New(strings.Repeat("x", 1000)), Answer{Error: strings.Repeat("x", maxAnswerError)}},
	} {
		got := answerTo(tt.err)
		if got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.err, got, tt.want)
		}
		parsed, err := parseAnswer("0 " + got.text())
		if parsed.At = got.At; parsed != got || err != nil {
			t.Errorf("%q is parsed as %+v, %v", got.text(), parsed, err)
		}
	}
	for _, bad := range []string{"1", "1 200", "x 200 ", "1 x "} {
		if _, err := parseAnswer(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
