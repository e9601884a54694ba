package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
)

// positions are the ids of the last messages that tail has printed, in a file: an object with
// "channel NAME" or "client ID" as names.
type positions struct {
	path  string // "" for none
	ids   map[string]int64
	saved map[string]int64 // as in the file
}

// readPositions reads the file, which need not exist.
func readPositions(path string) (positions, error) {
	p := positions{path: path, ids: map[string]int64{}}
	if path == "" {
		return p, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p.ids)
	}
	if err != nil {
		return p, fmt.Errorf("--position: %w", err)
	}
	p.saved = maps.Clone(p.ids)
	return p, nil
}

// position returns where a stream begins, -1 if its begin says so.
func (t *tail) position(s stream) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, ok := t.positions.ids[s.kind+" "+s.name]; ok {
		return id
	}
	return t.flags.after
}

// save replaces the file if the position has changed.
func (p *positions) save(s stream, id int64) error {
	p.ids[s.kind+" "+s.name] = id
	if p.path == "" || maps.Equal(p.ids, p.saved) {
		return nil
	}
	text, err := json.Marshal(p.ids)
	if err == nil {
		err = os.WriteFile(p.path+".new", append(text, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(p.path+".new", p.path)
	}
	if err != nil {
		return fmt.Errorf("--position: %w", err)
	}
	p.saved = maps.Clone(p.ids)
	return nil
}

// number returns a decimal number.
func number(n int64) string { return strconv.FormatInt(n, 10) }
