package state

// unknownEnd is a State.nextEnd that earliestEnd has to compute.
const unknownEnd = -1

// earliestEnd returns when the next field ends, or 0 for never. It looks at all fields only if the
// field that ended first has changed since the last call: most updates change no end, and looking
// at 1024 fields takes four times as long as the rest of an update.
func (s *State) earliestEnd() int64 {
	if s.nextEnd == unknownEnd {
		s.nextEnd = 0
		for _, f := range s.fields.all() {
			s.endChanged(0, f.Until())
		}
	}
	return s.nextEnd
}

// endChanged records that the end of a field has changed, see [Field.Until]. A field that does not
// exist has no end.
func (s *State) endChanged(before, after int64) {
	switch {
	case before == after || s.nextEnd == unknownEnd:
	case before > 0 && before == s.nextEnd:
		s.nextEnd = unknownEnd
	case after > 0 && (s.nextEnd == 0 || after < s.nextEnd):
		s.nextEnd = after
	}
}

// expire removes the fields that are due.
func (c *change) expire() {
	if end := c.earliestEnd(); end == 0 || end > c.now {
		return
	}
	var due []string
	for name, f := range c.fields.all() {
		if !f.live(c.now) {
			due = append(due, name)
		}
	}
	for _, name := range due {
		f := c.fields.get(name)
		if f == nil { // it has ended with its parent
			continue
		}
		reason := Expired
		if f.Until() == f.Away {
			reason = Left
		}
		c.end(name, reason)
	}
}

// NextDue returns when the next field ends, or all of them because the keeping time ends. 0 means
// never.
func (s *State) NextDue() int64 {
	end, keep := s.earliestEnd(), max(s.KeepUntil(), 0)
	if end == 0 || keep > 0 && keep < end {
		return keep
	}
	return end
}
