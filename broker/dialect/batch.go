package dialect

// Batch is a run of messages that goes out in one write call. Its bytes are joined once for each
// form, and all connections of one event loop share them. A Batch belongs to one goroutine.
type Batch struct {
	Messages []*Message
	joined   []joined
}

// joined is the messages of a Batch in one form.
type joined struct {
	form  *Form
	bytes []byte
}

// Bytes returns the bytes of all messages in a form. The caller must not change the bytes.
func (b *Batch) Bytes(f *Form) []byte {
	if len(b.Messages) == 1 {
		return b.Messages[0].Bytes(f)
	}
	for i := range b.joined {
		if b.joined[i].form == f {
			return b.joined[i].bytes
		}
	}
	size := 0
	for _, m := range b.Messages {
		size += len(m.Bytes(f))
	}
	all := make([]byte, 0, size)
	for _, m := range b.Messages {
		all = append(all, m.Bytes(f)...)
	}
	b.joined = append(b.joined, joined{f, all})
	return all
}

// Count returns how many of the messages are not empty: how many are delivered.
func (b *Batch) Count() (n int) {
	for _, m := range b.Messages {
		if !m.IsEmpty() {
			n++
		}
	}
	return n
}

// Reset replaces the messages of b. It keeps no reference to the old ones.
func (b *Batch) Reset(messages []*Message) {
	clear(b.joined)
	b.Messages, b.joined = messages, b.joined[:0]
}

// maxWrite is the most bytes of one write call of a connection that catches up, unless a single
// item is larger. If the socket stalls, these bytes stay in memory.
const maxWrite = 32 << 10

// Fitting returns how many of items fit one write call, at least one. size returns the bytes of an
// item.
func Fitting[T any](items []T, size func(T) int) int {
	bytes := 0
	for i, item := range items {
		if bytes += size(item); bytes > maxWrite {
			return max(i, 1)
		}
	}
	return len(items)
}
