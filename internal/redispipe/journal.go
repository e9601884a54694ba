package redispipe

import (
	"context"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/note"
)

// Journal writes what pipelines change before they change it. Package broker/notes has one. Redis
// executes a pipeline in order, so no command with a Note runs before its name is written.
//
// In a Cluster this holds for the commands of one node only. So pipelines with Notes are sent to
// the node itself. A command that is redirected from there goes into another pipeline, to the
// other node, and is noted again.
type Journal interface {
	// Begin is called before a pipeline is sent to a node, with the Notes of its commands. The node
	// is a *redis.Client, or the *redis.ClusterClient if it is not known.
	Begin(ctx context.Context, node any, names []note.Name) Entry
}

// Entry is what a Journal does for one pipeline.
type Entry interface {
	// Commands are the first commands of the pipeline. If a script is unknown to the node, the
	// pipeline that sends its source begins with them again, since the node may be another one.
	Commands() []redis.Cmder
	// End is called after the replies, before the callers get them.
	End()
}

// noEntry is the Entry of a pipeline without Notes.
type noEntry struct{}

func (noEntry) Commands() []redis.Cmder { return nil }
func (noEntry) End()                    {}

// begin calls the Journal for a pipeline. noted is whether the pipeline has Notes.
func (p *Pipe) begin(ctx context.Context, to node, batch []*call) (e Entry, noted bool) {
	if p.opts.Journal == nil {
		return noEntry{}, false
	}
	var names []note.Name
	for i, c := range batch {
		if c.note.Kind == 0 {
			continue
		}
		if names == nil {
			names = make([]note.Name, 0, len(batch)-i)
		}
		names = append(names, c.note)
	}
	if names == nil {
		return noEntry{}, false
	}
	return p.opts.Journal.Begin(ctx, to, names), true
}
