package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"switchboard/internal/nearest"
	"switchboard/internal/wire"
)

const verbsHelp = `  subscribe CHANNEL [after=ID] [state] [presence]
  unsubscribe CHANNEL
  publish CHANNEL DATA
  set CHANNEL FIELD DATA                sets a field of the channel
  del CHANNEL FIELD...                  removes fields
  fields CHANNEL [PREFIX]               reads the fields
  presence CHANNEL                      reads the clients in the channel
  here CHANNEL DATA                     shows a value to them; null ends it
  history CHANNEL [AFTER]               reads the messages that the channel keeps
  request DATA                          asks the backend
  call METHOD [DATA]                    calls a method of the broker, such as room.list {}
  refresh                               sends the token again, for example a newer one
  ping, help, quit
`

// verbs parse the words after the first one. rest is the text after a number of words.
var verbs = map[string]func(words []string, rest func(int) string) (wire.Request, error){
	"subscribe": parseSubscribe,
	"unsubscribe": func(words []string, _ func(int) string) (wire.Request, error) {
		return wire.Request{Type: wire.TypeUnsubscribe, Channel: at(words, 0)}, nil
	},
	"publish": parseData(wire.TypePublish),
	"here":    parseData(wire.TypeHere),
	"set": func(words []string, rest func(int) string) (wire.Request, error) {
		if len(words) < 3 {
			return wire.Request{}, usage("want: set CHANNEL FIELD DATA")
		}
		value, err := payload(rest(2), false)
		change := &wire.Change{Set: wire.Values{{Name: words[1], JSON: value}}}
		return wire.Request{Type: wire.TypePublish, Channel: words[0], Change: change}, err
	},
	"del": func(words []string, _ func(int) string) (wire.Request, error) {
		if len(words) < 2 {
			return wire.Request{}, usage("want: del CHANNEL FIELD...")
		}
		return wire.Request{Type: wire.TypePublish, Channel: words[0], Change: &wire.Change{Del: words[1:]}}, nil
	},
	"fields": func(words []string, _ func(int) string) (wire.Request, error) {
		return wire.Request{Type: wire.TypeState, Channel: at(words, 0), StateRequest: &wire.StateRequest{Prefix: at(words, 1)}}, nil
	},
	"presence": func(words []string, _ func(int) string) (wire.Request, error) {
		return wire.Request{Type: wire.TypePresence, Channel: at(words, 0)}, nil
	},
	"history": func(words []string, _ func(int) string) (wire.Request, error) {
		r := wire.Request{Type: wire.TypeHistory, Channel: at(words, 0)}
		if len(words) < 2 {
			return r, nil
		}
		id, err := idIn(words[1])
		r.After = &id
		return r, err
	},
	"request": func(_ []string, rest func(int) string) (wire.Request, error) {
		data, err := payload(rest(0), false)
		return wire.Request{Type: wire.TypeRequest, Data: data}, err
	},
	"call": func(words []string, rest func(int) string) (wire.Request, error) {
		if len(words) == 0 {
			return wire.Request{}, usage("want: call METHOD [DATA]")
		}
		r := wire.Request{Type: wire.TypeRequest, Method: words[0], Data: json.RawMessage("{}")}
		if len(words) == 1 {
			return r, nil
		}
		var err error
		r.Data, err = payload(rest(1), false)
		return r, err
	},
	"refresh": func([]string, func(int) string) (wire.Request, error) {
		return wire.Request{Type: wire.TypeRefresh}, nil
	},
	"ping": func([]string, func(int) string) (wire.Request, error) { return wire.Request{Type: wire.TypePing}, nil },
	"help": nil, "quit": nil, // see execute
}

func at(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return ""
}

func idIn(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return 0, usage("want the id of a message, got %q", text)
	}
	return id, nil
}

// parseData parses CHANNEL DATA.
func parseData(kind string) func([]string, func(int) string) (wire.Request, error) {
	return func(words []string, rest func(int) string) (wire.Request, error) {
		if len(words) < 2 {
			return wire.Request{}, usage("want: %s CHANNEL DATA", kind)
		}
		data, err := payload(rest(1), false)
		return wire.Request{Type: kind, Channel: words[0], Data: data}, err
	}
}

func parseSubscribe(words []string, _ func(int) string) (wire.Request, error) {
	r := wire.Request{Type: wire.TypeSubscribe, Channel: at(words, 0)}
	for _, word := range words[min(1, len(words)):] {
		text, isAfter := strings.CutPrefix(word, "after=")
		switch {
		case word == "state":
			r.StateRequest = &wire.StateRequest{State: &wire.Selector{}}
		case word == "presence":
			r.Presence = true
		case isAfter:
			id, err := idIn(text)
			if err != nil {
				return r, err
			}
			r.After = &id
		default:
			return r, usage("want: subscribe CHANNEL [after=ID] [state] [presence]")
		}
	}
	return r, nil
}

// parseLine parses a command: words, or a message of the protocol.
func parseLine(line string) (r wire.Request, err error) {
	if strings.HasPrefix(line, "{") {
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&r); err != nil {
			return r, usage("this is not a message: %w", err)
		}
		return r, nil
	}
	words := strings.Fields(line)
	parse, known := verbs[words[0]]
	if !known {
		return r, usage("unknown command %q%s", words[0], nearest.Question(words[0], slices.Sorted(maps.Keys(verbs))))
	}
	rest := func(n int) string { // the text after the verb and n words
		text := line
		for range n + 1 {
			text = strings.TrimSpace(text)
			_, text, _ = cutSpace(text)
		}
		return strings.TrimSpace(text)
	}
	return parse(words[1:], rest)
}

// cutSpace is like strings.Cut at the first white space.
func cutSpace(text string) (before, after string, found bool) {
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}
