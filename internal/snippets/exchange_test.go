package snippets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A step is one line of an exchange with the broker, with the lines that continue it. The section
// "Notation" of docs/protocol.md describes the lines for readers.
type step struct {
	page string
	line int

	who  string // a client or a backend; "" is the one that the page speaks of
	sent bool   // to the broker, otherwise received from it

	method, path string // of an HTTP request
	status       string // of an HTTP answer
	header       []string
	text         string // JSON: a message of a client, or the body of a request or an answer
	disconnects  bool
}

var (
	stepLine    = regexp.MustCompile(`^(?:(\w+) *)?([<>]) (.*)$`)
	requestLine = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) (/\S*)(?: (.*))?$`)
	answerLine  = regexp.MustCompile(`^(\d{3})(?: (.*))?$`)
	headerLine  = regexp.MustCompile(`^ +([A-Z][\w-]+: .*)$`)
	note        = regexp.MustCompile(`  +# .*$`)
)

// stepsOf parses a block of the language wire.
func stepsOf(b block) (steps []step, err error) {
	for i, line := range strings.Split(strings.TrimSuffix(b.code, "\n"), "\n") {
		line = note.ReplaceAllString(line, "")
		m := stepLine.FindStringSubmatch(line)
		switch header := headerLine.FindStringSubmatch(line); {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, "# "):
		case m != nil:
			s := step{page: b.page, line: b.line + i, who: m[1], sent: m[2] == ">", text: m[3]}
			if request := requestLine.FindStringSubmatch(m[3]); request != nil {
				s.method, s.path, s.text = request[1], request[2], request[3]
			} else if answer := answerLine.FindStringSubmatch(m[3]); answer != nil {
				s.status, s.text = answer[1], answer[2]
			} else if s.disconnects = m[3] == "(disconnects)"; s.disconnects {
				s.text = ""
			}
			steps = append(steps, s)
		case !strings.HasPrefix(line, " ") || len(steps) == 0:
			return nil, fmt.Errorf("%s:%d: %q is no line of an exchange", b.page, b.line+i, line)
		case header != nil:
			s := &steps[len(steps)-1]
			s.header = append(s.header, header[1])
		default:
			steps[len(steps)-1].text += line
		}
	}
	for _, s := range steps {
		isMessage := s.method == "" && s.status == "" && !s.disconnects
		if values, err := decode(s.text); err != nil || isMessage && (len(values) != 1 || !strings.HasPrefix(s.text, `{"type":`)) {
			return nil, fmt.Errorf("%s:%d: %q is no message: %w", s.page, s.line, s.text, err)
		}
	}
	return steps, nil
}

func TestStepsOf(t *testing.T) {
	got, err := stepsOf(block{"p", 10, "wire", "", `amy > {"type":"ping"}
amy < {"type":"pong"}  # at once
amy > (disconnects)

> GET /v1/users/amy
  X-Trace: 1
< 200 {"user":"amy",
       "clients":[]}
`})
	want := []step{
		{page: "p", line: 10, who: "amy", sent: true, text: `{"type":"ping"}`},
		{page: "p", line: 11, who: "amy", text: `{"type":"pong"}`},
		{page: "p", line: 12, who: "amy", sent: true, disconnects: true},
		{page: "p", line: 14, sent: true, method: "GET", path: "/v1/users/amy", header: []string{"X-Trace: 1"}},
		{page: "p", line: 16, status: "200", text: `{"user":"amy",       "clients":[]}`},
	}
	if err != nil || !slices.EqualFunc(got, want, func(a, b step) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for _, wrong := range []string{"POST /v1/push {}\n", "> {\"a\":1}\n", "> {\"type\":\n", "  {}\n"} {
		if steps, err := stepsOf(block{code: wrong}); err == nil {
			t.Errorf("%q is accepted: %+v", wrong, steps)
		}
	}
}
