package extension

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"

	"switchboard/broker/api"
	"switchboard/broker/limit"
)

// Owned is one kind of objects that users own in the store of an extension, such as avatars.
type Owned struct {
	// Kind names the objects in the API.
	Kind string
	// Usage returns how many objects of a user count towards its budget, and the most. Nil means that
	// there is no budget.
	Usage func(ctx context.Context, user string) (used, most int, err error)
	// Forget removes the objects of users that have ended, and returns how many there were. It may be
	// repeated.
	Forget func(ctx context.Context, users []string) (removed int, err error)
}

// Usage is how much of a budget a user has used.
type Usage struct {
	Used int `json:"used"`
	Max  int `json:"max"`
}

// owned returns the kinds of objects of all extensions.
func (s *Set) owned() (all []Owned) {
	for _, e := range s.list {
		all = append(all, e.Owned...)
	}
	return all
}

// Forget removes the objects of users that have ended in all extensions, and returns how many there
// were of each kind. After an error, the caller repeats it.
func (h *Host) Forget(ctx context.Context, users ...string) (map[string]int, error) {
	return h.set.forget(ctx, users)
}

func (s *Set) forget(ctx context.Context, users []string) (map[string]int, error) {
	removed, errs := map[string]int{}, []error(nil)
	for _, kind := range s.owned() {
		n, err := kind.Forget(ctx, users)
		if removed[kind.Kind] += n; err != nil {
			errs = append(errs, fmt.Errorf("forget %s: %w", kind.Kind, err))
		}
	}
	return removed, errors.Join(errs...)
}

// usage returns how much a user has used of each budget.
func (s *Set) usage(ctx context.Context, user string) (map[string]Usage, error) {
	var kinds []Owned
	for _, kind := range s.owned() {
		if kind.Usage != nil {
			kinds = append(kinds, kind)
		}
	}
	used := make([]Usage, len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	for i, kind := range kinds {
		group.Go(func() (err error) {
			used[i].Used, used[i].Max, err = kind.Usage(ctx, user)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	byKind := make(map[string]Usage, len(kinds))
	for i, kind := range kinds {
		byKind[kind.Kind] = used[i]
	}
	return byKind, nil
}

// ownedCalls are the HTTP calls about what users own.
func (s *Set) ownedCalls() []api.Call {
	return []api.Call{
		{Pattern: "GET /v1/users/{user}/budget", Scope: api.ScopeRead, Handle: s.getBudget},
		{Pattern: "POST /v1/users/{user}/forget", Scope: api.ScopeAdmin, Handle: s.postForget},
	}
}

func (s *Set) getBudget(r *http.Request) (any, error) {
	user, err := api.PathName(r, "user")
	if err != nil {
		return nil, err
	}
	objects, err := s.usage(r.Context(), user)
	if err != nil {
		return nil, err
	}
	stored, err := s.Stored(r.Context(), user)
	return struct {
		User    string           `json:"user"`
		Objects map[string]Usage `json:"objects"`
		Stored  map[string]Usage `json:"stored"`
	}{user, objects, usageOf(stored)}, err
}

// usageOf returns what a user has stored, by the limits that there are.
func usageOf(stored limit.StoredUse) map[string]Usage {
	all := map[string]Usage{}
	for kind, u := range map[string]limit.Used{"bytes": stored.Bytes, "channels": stored.Channels} {
		if u.Max > 0 {
			all[kind] = Usage(u)
		}
	}
	return all
}

func (s *Set) postForget(r *http.Request) (any, error) {
	user, err := api.PathName(r, "user")
	if err != nil {
		return nil, err
	}
	removed, err := s.forget(r.Context(), []string{user})
	return struct {
		User    string         `json:"user"`
		Removed map[string]int `json:"removed"`
	}{user, removed}, err
}
