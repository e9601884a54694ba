package kit

import (
	"context"
	"fmt"

	"switchboard/queue"
)

// CheckFormat returns an error if the format of a record is newer than the one that this program
// knows: a change by an older program would lose what it does not know.
func CheckFormat(format, known int) error {
	if format > known {
		return fmt.Errorf("its record has version %d, this program knows up to %d", format, known)
	}
	return nil
}

// ReadOne reads a part of the state of a channel, and parses its fields.
func ReadOne[D any](ctx context.Context, r StateReader, read queue.StateRead, parse func(channel string, fields []queue.NamedField) (D, error)) (D, error) {
	list, err := parseAll(ctx, r, []queue.StateRead{read}, parse)
	if err != nil {
		return *new(D), err
	}
	return list[0], nil
}

// ReadEach reads fields of documents in one round trip, and parses those of each. prefix is that of
// the channels.
func ReadEach[D any](
	ctx context.Context, r StateReader, prefix string, ids, fields []string, parse func(channel string, fields []queue.NamedField) (D, error),
) ([]D, error) {
	reads := make([]queue.StateRead, len(ids))
	for i, id := range ids {
		reads[i] = queue.StateRead{Channel: prefix + id, Fields: fields}
	}
	return parseAll(ctx, r, reads, parse)
}

func parseAll[D any](
	ctx context.Context, r StateReader, reads []queue.StateRead, parse func(string, []queue.NamedField) (D, error),
) ([]D, error) {
	list := make([]D, len(reads))
	for i, o := range r.ReadStates(ctx, reads) {
		err := o.Err
		if err == nil {
			list[i], err = parse(reads[i].Channel, o.Value.Fields)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", reads[i].Channel, err)
		}
	}
	return list, nil
}
