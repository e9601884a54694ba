package scene

import "context"

// SetFault sets a function that is called after each step of an operation. Its error ends the
// operation there.
func (s *Scenes) SetFault(fault func(step string) error) { s.fault = fault }

// Settle makes the places of an avatar agree with its record, as the round does.
func (s *Scenes) Settle(ctx context.Context, avatar string) error {
	_, err := s.settle(ctx, avatar)
	return err
}

// Part returns text as a part of the name of a field.
var Part = part
