package events

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"switchboard/webhook"
)

// maxAnswerError is the most bytes of Answer.Error.
const maxAnswerError = 200

// An Answer is what the endpoint answered to an attempt to send events. The zero value means that
// there was no attempt.
type Answer struct {
	At     time.Time // on the store's clock; set by the store
	Status int       // the HTTP status; 200 for every 2xx, 0 if there was no answer
	Error  string    // why there was no answer
}

// answerTo returns the answer for the error of [Sender].Send.
func answerTo(err error) Answer {
	if err == nil {
		return Answer{Status: 200}
	}
	if refusal, refused := errors.AsType[*webhook.Refusal](err); refused {
		return Answer{Status: refusal.Status}
	}
	if failure, ok := errors.AsType[*url.Error](err); ok { // whose text has the whole URL
		err = failure.Err
	}
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		text = "no answer in time"
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	return Answer{Error: text[:min(len(text), maxAnswerError)]}
}

// text returns the argument of scripts: <status> <error>, "" for none.
func (a Answer) text() string {
	if a.Status == 0 && a.Error == "" {
		return ""
	}
	return strconv.Itoa(a.Status) + " " + a.Error
}

// parseAnswer parses <Unix ms> <status> <error>, or "" for none.
func parseAnswer(text string) (Answer, error) {
	if text == "" {
		return Answer{}, nil
	}
	at, rest, _ := strings.Cut(text, " ")
	status, failure, found := strings.Cut(rest, " ")
	ms, err1 := strconv.ParseInt(at, 10, 64)
	code, err2 := strconv.Atoi(status)
	if !found || err1 != nil || err2 != nil {
		return Answer{}, errReply
	}
	return Answer{At: time.UnixMilli(ms), Status: code, Error: failure}, nil
}
