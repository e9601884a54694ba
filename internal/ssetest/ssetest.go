// Package ssetest reads Server-Sent Events in tests, as HTML Living Standard §9.2.6 says, and
// resumes streams as §9.2.3 says. Lines end in LF or CR LF. In the standard a lone CR
// ends a line, too; here it does not.
package ssetest

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// Event is one event, or a comment.
type Event struct {
	ID      string // the last id up to this event
	Name    string // "message" if the stream gives none
	Data    string
	Retry   int    // ms; 0 if the event sets none
	Comment bool   // a comment, not an event
	Raw     string // its bytes
}

// Reader reads a stream.
type Reader struct {
	r      *bufio.Reader
	lastID string
}

// NewReader returns a Reader of a response body. lastID is the id that the request had.
func NewReader(r io.Reader, lastID string) *Reader {
	if b, ok := r.(*bufio.Reader); ok {
		return &Reader{b, lastID}
	}
	return &Reader{bufio.NewReader(r), lastID}
}

// Next returns the next event or comment. An incomplete event, without the empty line after it, is
// dropped. With an error, Next returns in Raw the bytes after the last complete event, and in Retry
// the retry delay of these bytes: a retry delay applies as soon as its line is complete.
func (r *Reader) Next() (Event, error) {
	e := Event{Name: "message"}
	id, data := r.lastID, []string(nil)
	for {
		line, err := r.r.ReadString('\n')
		if err != nil {
			return Event{Retry: e.Retry, Raw: e.Raw + line}, err
		}
		e.Raw += line
		field, value, _ := strings.Cut(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "\n" || line == "\r\n":
			r.lastID = id
			if e.ID = id; data == nil {
				if e.Comment {
					return e, nil
				}
				e.Name = "message"
				continue
			}
			if e.Name == "" {
				e.Name = "message"
			}
			e.Comment = false
			e.Data = strings.Join(data, "\n")
			return e, nil
		case field == "":
			e.Comment = true
		case field == "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		case field == "event":
			e.Name = value
		case field == "data":
			data = append(data, value)
		case field == "retry":
			if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
				e.Retry = int(ms)
			}
		}
	}
}
