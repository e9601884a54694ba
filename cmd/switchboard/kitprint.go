package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/cmd/internal/screen"
)

// times are the members of answers that are times in Unix ms.
var times = map[string]bool{
	"created": true, "started": true, "finished": true, "last_activity": true, "joined": true, "until": true, "last": true,
	"sold": true, "ended": true, "ends": true, "at": true,
}

// printAnswer prints the answer to a call of the kit: its members, and its list as a table.
func (a *app) printAnswer(k kitCommand, answer json.RawMessage) error {
	members, err := membersOf(answer)
	if err != nil {
		return fmt.Errorf("the answer is not that of a broker: %w", err)
	}
	a.screen.Value(answer, func() {
		var pairs []string
		for _, m := range members {
			if m.name != k.list && m.name != "cursor" && m.name != "next" {
				pairs = append(pairs, m.name, a.shown(m.name, m.value))
			}
		}
		var rows []json.RawMessage
		for _, m := range members {
			if m.name == k.list {
				_ = json.Unmarshal(m.value, &rows) // anything else is shown as no rows
			}
			if text := a.shown(m.name, m.value); m.name == "cursor" && text != "" {
				defer a.note("there are more: --cursor %s", text)
			}
		}
		if k.list == "" || a.screen.Terminal || !isList(k, members) {
			a.screen.Pairs(pairs...)
		}
		if len(rows) > 0 || k.list != "" && len(pairs) == 0 {
			a.screen.Table(k.columns, a.kitRows(k.columns, rows))
		}
	})
	return nil
}

// isList reports whether the answer is a list, and not a thing that also has one.
func isList(k kitCommand, members []member) bool {
	return !slices.ContainsFunc(members, func(m member) bool { return m.name == "id" || m.name == "resource" })
}

func (a *app) kitRows(columns []string, rows []json.RawMessage) [][]screen.Cell {
	table := make([][]screen.Cell, len(rows))
	for i, row := range rows {
		members, _ := membersOf(row) // a row without members has empty cells
		for j, column := range columns {
			cell := screen.Cell{}
			for _, m := range members {
				if m.name == column {
					cell.Text = a.shown(column, m.value)
				}
			}
			if j == 0 {
				cell.Color = screen.Bold
			}
			table[i] = append(table[i], cell)
		}
	}
	return table
}

// member is a member of a JSON object. Members of nested objects have the name OUTER.INNER.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of an object in their order, and those of objects in it. Other
// values than objects are one member without a name.
func membersOf(text json.RawMessage) (list []member, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return []member{{value: text}}, err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		nested, err := membersOf(value)
		if err != nil {
			return nil, err
		}
		outer := fmt.Sprint(name)
		if len(nested) == 1 && nested[0].name == "" || outer == "data" {
			list = append(list, member{outer, value})
			continue
		}
		for _, inner := range nested {
			list = append(list, member{outer + "." + inner.name, inner.value})
		}
	}
	return list, nil
}

// shown returns a value for people: texts without quotes, lists of texts with spaces in between,
// and times. null is "".
func (a *app) shown(name string, value json.RawMessage) string {
	var one string
	var several []string
	switch {
	case string(value) == "null":
		return ""
	case json.Unmarshal(value, &one) == nil:
		return one
	case json.Unmarshal(value, &several) == nil:
		return strings.Join(several, " ")
	}
	inner := name[strings.LastIndexByte(name, '.')+1:]
	// Some members are a number in one answer and a time in another one.
	if ms, err := strconv.ParseInt(string(value), 10, 64); err == nil && times[inner] && ms > 1e12 && ms < 1e13 {
		return a.screen.When(ms, time.Now())
	}
	return string(value)
}
