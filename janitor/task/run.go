package task

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Run runs the checks one after the other, and calls report for each finding that counts. Checks
// with two looks share the wait between them: all checks look once, then those with findings look
// again. A check that fails does not stop the others. Run returns the number of findings, and the
// errors of the checks.
func Run(ctx context.Context, checks []Check, report func(check string, f Finding)) (findings int, err error) {
	if err := validate(checks); err != nil {
		return 0, err
	}
	var errs []error
	var again []firstLook
	for _, c := range checks {
		found, err := c.look(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if c.Apart > 0 && len(found) > 0 {
			again = append(again, firstLook{c, time.Now(), found})
			continue
		}
		for _, f := range found {
			report(c.Name, f)
		}
		findings += len(found)
	}
	for _, first := range again {
		stayed, err := first.stayed(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, f := range stayed {
			report(first.check.Name, f)
		}
		findings += len(stayed)
	}
	return findings, errors.Join(errs...)
}

// validate returns an error if a check is not valid, or if two have the same name.
func validate(checks []Check) error {
	names := make(map[string]struct{}, len(checks))
	for _, c := range checks {
		if err := c.Validate(); err != nil {
			return err
		}
		if _, again := names[c.Name]; again {
			return fmt.Errorf("two checks have the name %s", c.Name)
		}
		names[c.Name] = struct{}{}
	}
	return nil
}

// look returns the findings of one look.
func (c Check) look(ctx context.Context) ([]Finding, error) {
	found, err := c.Find(ctx)
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", c.Name, err)
	}
	return found, nil
}

// firstLook is the first of two looks.
type firstLook struct {
	check Check
	ended time.Time
	found []Finding
}

// stayed looks again when the time has come. It returns the findings of both looks, in the order of
// the second one.
func (l firstLook) stayed(ctx context.Context) (stayed []Finding, err error) {
	select {
	case <-time.After(l.check.Apart - time.Since(l.ended)):
	case <-ctx.Done():
		return nil, fmt.Errorf("check %s: %w", l.check.Name, ctx.Err())
	}
	second, err := l.check.look(ctx)
	if err != nil {
		return nil, err
	}
	before := make(map[Finding]struct{}, len(l.found))
	for _, f := range l.found {
		before[f] = struct{}{}
	}
	for _, f := range second {
		if _, found := before[f]; found {
			stayed = append(stayed, f)
		}
	}
	return stayed, nil
}
