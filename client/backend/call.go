package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/client"
)

const (
	// firstDelay is the first delay between attempts. It doubles up to lastDelay.
	firstDelay = 100 * time.Millisecond
	lastDelay  = 2 * time.Second
	// maxAnswer bounds an answer in bytes. A page of a thousand messages can have 64 MiB.
	maxAnswer = 128 << 20
)

// Request is a call of the HTTP API. Use it for calls that have no method of their own.
type Request struct {
	Method string     // such as http.MethodPost
	Path   string     // such as "/v1/rooms/arena", with names escaped by url.PathEscape
	Query  url.Values // nil means none
	Header http.Header
	Body   any           // encoded as JSON; nil means none
	Wait   time.Duration // how long the broker may wait before it answers, in addition to Options.Timeout
	// Repeatable says that a second execution changes nothing. Calls with GET, those that the API
	// describes as repeatable, and calls of which no instance has received anything, are repeated in
	// any case.
	Repeatable bool
}

// Call makes a call and decodes the JSON of the answer into the value to which into points; nil
// ignores the answer. Refusals are an [*Error].
func (c *Client) Call(ctx context.Context, r Request, into any) error {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = json.Marshal(r.Body); err != nil {
			return fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
		}
	}
	delay, end := firstDelay, time.Now().Add(max(0, c.opts.RetryFor))
	for attempt := 1; ; attempt++ {
		at := c.at.Load()
		answer, err := c.once(ctx, c.url(at), r, body)
		if err == nil {
			return decode(r, answer, into)
		}
		again, elsewhere := retry(err, r.mayRepeat(body))
		if elsewhere {
			c.at.CompareAndSwap(at, at+1)
		}
		if !again || ctx.Err() != nil {
			return err
		}
		if elsewhere && attempt < len(c.urls) {
			continue // the next instance has not been asked yet
		}
		pause := max(delay/2+rand.N(delay/2+1), afterOf(err))
		if time.Now().Add(pause).After(end) {
			return err
		}
		delay = min(2*delay, lastDelay)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// Special versions of the calls that take one.
const (
	Absent int64 = -1 // there must be no document
	Exists int64 = -2 // there must be a document, of any version
)

// condition returns the header that asks for a version, nil for 0 or none.
func condition(version ...int64) http.Header {
	switch {
	case len(version) == 0 || version[0] == 0:
		return nil
	case version[0] == Absent:
		return http.Header{"If-None-Match": {"*"}}
	case version[0] == Exists:
		return http.Header{"If-Match": {"*"}}
	}
	return http.Header{"If-Match": {strconv.Quote(strconv.FormatInt(version[0], 10))}}
}

// once makes one attempt.
func (c *Client) once(ctx context.Context, base string, r Request, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout+r.Wait)
	defer cancel()
	target := base + r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	for name, values := range r.Header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.opts.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Key)
	}
	res, err := c.opts.HTTP.Do(req)
	if err != nil {
		return nil, unreachable(base, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, unreachable(base, err)
	}
	if res.StatusCode/100 != 2 {
		return nil, newError(res, answer)
	}
	return answer, nil
}

func decode(r Request, answer []byte, into any) error {
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("%s %s: the answer is not that of a broker: %w", r.Method, r.Path, err)
	}
	return nil
}

// retry reports whether a call that failed with err may succeed later, and whether another instance
// may answer it better.
func retry(err error, repeatable bool) (again, elsewhere bool) {
	if lost, ok := errors.AsType[*UnreachableError](err); ok {
		return !lost.Sent || repeatable, true
	}
	refused, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		return false, false
	case refused.Code == client.RateLimited: // it was not executed, and the limit is that of all instances
		return true, false
	case refused.Code == client.Unavailable, refused.Code == client.Timeout:
		return repeatable, repeatable
	}
	return false, false
}

// repeatRule says when a call may be made again after its answer was lost.
type repeatRule struct {
	method, path string   // * in the path stands for any name
	with         []string // the body must have one of these members; nil means that it need not
	unless       []string // headers, and members of the body, that the call must not have
}

// mayRepeat reports whether a second execution of the call changes nothing. body is its JSON.
func (r *Request) mayRepeat(body []byte) bool {
	if r.Repeatable || r.Method == http.MethodGet {
		return true
	}
	segments := strings.Split(r.Path, "/")
	i := slices.IndexFunc(repeats, func(rule repeatRule) bool {
		return rule.method == r.Method && slices.EqualFunc(strings.Split(rule.path, "/"), segments, func(want, got string) bool { return want == got || want == "*" })
	})
	if i < 0 {
		return false
	}
	rule := &repeats[i]
	has := func(name string) bool { return r.Header.Get(name) != "" || hasMember(body, name) }
	return (rule.with == nil || slices.ContainsFunc(rule.with, has)) && !slices.ContainsFunc(rule.unless, has)
}

// hasMember reports whether a body has a member that is not empty. A batch has it if all of its
// messages have it.
func hasMember(body []byte, name string) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return false
	}
	var messages []json.RawMessage
	if json.Unmarshal(members["messages"], &messages) == nil && len(messages) > 0 {
		return !slices.ContainsFunc(messages, func(m json.RawMessage) bool { return !hasMember(m, name) })
	}
	value := string(members[name])
	return value != "" && value != "null" && value != `""`
}

// afterOf returns the delay that the broker asks for. It is at most 10 s, so that a wrong number
// cannot stop a caller.
func afterOf(err error) time.Duration {
	if refused, ok := errors.AsType[*Error](err); ok {
		return min(refused.After, 10*time.Second)
	}
	return 0
}

// UnreachableError is returned if an instance cannot be reached, or does not answer in time.
type UnreachableError struct {
	URL  string // of the instance
	Sent bool   // the instance may have received and executed the call
	Err  error
}

// Error implements error.
func (e *UnreachableError) Error() string {
	if e.Sent {
		return fmt.Sprintf("no answer from %s: %v", e.URL, e.Err)
	}
	return fmt.Sprintf("cannot reach %s: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// unreachable returns the UnreachableError for an error of http.Client.
func unreachable(base string, err error) error {
	e := &UnreachableError{URL: base, Sent: true, Err: err}
	if wrapped, ok := errors.AsType[*url.Error](err); ok { // it would repeat the method and the URL
		e.Err = wrapped.Err
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		e.Sent = false
	}
	return e
}
