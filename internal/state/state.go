package state

import (
	"maps"
	"slices"
	"strings"
)

// maxEntry is the size of an entry above which fields that ended go to entries of their own, in
// bytes.
const maxEntry = 32 << 10

// State is the state of one channel. It is not safe for concurrent use.
type State struct {
	fields    tree
	children  map[string]map[string]struct{} // by parent
	owners    map[string]*owner              // by client
	bytes     int
	nextEnd   int64 // earliest end of a field, 0 for none, or unknownEnd
	keepUntil int64 // time at which the state ends, 0 for never
}

// owner is a client that owns fields, or that did so less than FenceMS ago.
type owner struct {
	generation int64
	server     string // "" if the generation has ended for good
	ended      int64  // time of its end, 0 while it is connected
	fields     map[string]struct{}
}

// fences reports whether a connection is too old to change the state: a higher generation is
// recorded, or this one has ended. A generation that ended with its server goes on if another
// server holds the connection: a server that was taken for dead gets a new id.
func (o *owner) fences(generation int64, server string) bool {
	switch {
	case o == nil || o.generation < generation:
		return false
	case o.generation > generation:
		return true
	}
	return o.ended > 0 && (o.server == "" || o.server == server)
}

// FenceMS is how long the generation of a client that has ended is remembered, at least.
const FenceMS = 3600_000

// New returns an empty state.
func New() *State {
	return &State{children: make(map[string]map[string]struct{}), owners: make(map[string]*owner)}
}

// Logged is an entry of the log.
type Logged struct {
	ID    int64
	Entry *Entry
}

// Result is the outcome of a call that changes a state.
type Result struct {
	// Entries are those to append to the log, in order. Only the last one may have data.
	Entries []Logged
	// ID is that of the update; 0 if it was refused, or changed nothing.
	ID int64
	// Numbers are the results of Add, by field.
	Numbers map[string]int64
}

// change is a call that changes a state.
type change struct {
	*State
	now    int64
	next   func() int64
	entry  *Entry
	size   int  // about the bytes of the entry; only the changes that grow counts
	whole  bool // the entry may not be split: it has the id of an update
	result Result
}

// begin returns a change that is prepared.
func (s *State) begin(now int64, next func() int64) *change {
	c := &change{State: s, now: now, next: next, entry: new(Entry)}
	c.prepare()
	return c
}

// prepare does the first two steps of every change.
func (c *change) prepare() {
	if c.keepUntil > 0 && c.now >= c.keepUntil {
		c.clear()
	}
	c.expire()
}

// clear removes all fields.
func (c *change) clear() {
	if c.fields.len() == 0 {
		return
	}
	c.entry.Cleared = true
	for _, o := range c.owners {
		clear(o.fields)
	}
	c.fields.removeAll()
	clear(c.children)
	c.bytes, c.nextEnd = 0, 0
}

// end removes a field and its children, which end for the given reason.
func (c *change) end(name, reason string) {
	for _, ended := range c.remove(name) {
		c.grow(len(ended))
		c.entry.setGone(ended, reason)
	}
}

// grow makes space for n bytes, and for the syntax of a member of the entry. If the entry becomes
// too large, it is appended, and the change continues in another one.
func (c *change) grow(n int) {
	if c.size += n + 24; c.size > maxEntry && !c.whole {
		c.flush()
		c.size = n + 24
	}
}

// flush appends what has changed so far as an entry of its own.
func (c *change) flush() {
	c.result.Entries = append(c.result.Entries, Logged{c.next(), c.entry})
	c.entry = new(Entry)
}

// finish appends the entry, unless it is empty.
func (c *change) finish() Result {
	if !c.entry.isEmpty() {
		c.flush()
	}
	return c.result
}

// remove removes a field and its children, and returns their names.
func (c *change) remove(name string) []string {
	f := c.fields.get(name)
	if f == nil {
		return nil
	}
	removed := []string{name}
	for _, child := range slices.Sorted(maps.Keys(c.children[name])) {
		removed = append(removed, c.remove(child)...)
	}
	c.setParent(name, f, "")
	for _, client := range f.Owners {
		delete(c.owners[client].fields, name)
	}
	c.bytes -= f.size(name)
	c.endChanged(f.Until(), 0)
	c.fields.remove(name)
	return removed
}

// setParent changes the parent of a field.
func (c *change) setParent(name string, f *Field, parent string) {
	if f.Parent == parent {
		return
	}
	if siblings := c.children[f.Parent]; siblings != nil {
		if delete(siblings, name); len(siblings) == 0 {
			delete(c.children, f.Parent)
		}
	}
	if f.Parent = parent; parent == "" {
		return
	}
	if c.children[parent] == nil {
		c.children[parent] = make(map[string]struct{})
	}
	c.children[parent][name] = struct{}{}
}

// Sweep removes what is due: fields, the whole state, and the generations of clients that ended
// more than FenceMS ago and own nothing.
func (s *State) Sweep(now int64, next func() int64) Result {
	c := s.begin(now, next)
	for client, o := range s.owners {
		if o.ended > 0 && now-o.ended > FenceMS && len(o.fields) == 0 {
			delete(s.owners, client)
		}
	}
	return c.finish()
}

// Servers returns the servers that hold the connections of owners, in order.
func (s *State) Servers() []string {
	var servers []string
	for _, o := range s.owners {
		if o.ended == 0 {
			servers = append(servers, o.server)
		}
	}
	slices.Sort(servers)
	return slices.Compact(servers)
}

// IsEmpty reports whether the state has neither fields nor generations.
func (s *State) IsEmpty() bool { return s.fields.len() == 0 && len(s.owners) == 0 }

// Read returns the live fields that begin with prefix and come after cursor in the order of names,
// at most limit of them and, except for the first, bytes of them. Zero means no limit. next is the
// last name if there are more, otherwise "".
func (s *State) Read(now int64, prefix, cursor string, limit, bytes int) (names []string, fields []*Field, next string) {
	if s.keepUntil > 0 && now >= s.keepUntil {
		return nil, nil, ""
	}
	size := 0
	for name, f := range s.fields.group(prefix, cursor) {
		if !f.live(now) {
			continue
		}
		size += f.size(name)
		if n := len(names); n > 0 && (limit > 0 && n == limit || bytes > 0 && size > bytes) {
			return names, fields, names[n-1]
		}
		names, fields = append(names, name), append(fields, f.clone())
	}
	return names, fields, ""
}

// FieldGroup selects fields: those whose names begin with a prefix, which is not empty.
type FieldGroup struct {
	Prefix string
	// Parents selects the parts of the fields whose names begin with the prefix, instead of these
	// fields.
	Parents bool
}

// selects returns the name that must begin with the prefix.
func (g FieldGroup) selects(name string, f *Field) string {
	if g.Parents {
		return f.Parent
	}
	return name
}

// Count returns how many live fields each of the groups has, when the next field ends that is not
// due, Unix ms, 0 for never, and how many fields are due.
func (s *State) Count(now int64, groups []FieldGroup) (counts []int, ends int64, due int) {
	counts = make([]int, len(groups))
	if s.keepUntil > 0 && now >= s.keepUntil {
		return counts, 0, 0
	}
	for name, f := range s.fields.all() {
		if !f.live(now) {
			due++
			continue
		}
		if end := f.Until(); end > 0 && (ends == 0 || end < ends) {
			ends = end
		}
		for i, g := range groups {
			if strings.HasPrefix(g.selects(name, f), g.Prefix) {
				counts[i]++
			}
		}
	}
	return counts, ends, due
}

// Get returns the live field of that name, or nil.
func (s *State) Get(now int64, name string) *Field {
	f := s.fields.get(name)
	if f == nil || s.keepUntil > 0 && now >= s.keepUntil || !f.live(now) {
		return nil
	}
	return f.clone()
}

// KeepUntil returns when all fields end unless the state is written. -1 means never, and 0 that
// there are no fields.
func (s *State) KeepUntil() int64 {
	switch {
	case s.fields.len() == 0:
		return 0
	case s.keepUntil == 0:
		return -1
	}
	return s.keepUntil
}
