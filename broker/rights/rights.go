// Package rights explains what a client may do on a channel, and why. It decides with the code of
// the broker, for `broker check` and for the HTTP API.
package rights

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"switchboard/broker/auth"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
)

// Rules are the access rules of a broker.
type Rules struct {
	Tokens     *auth.Tokens
	Anonymous  bool // clients without a token may connect
	Namespaces *namespace.Set
}

// Query names a client and a channel.
type Query struct {
	Token   string   `json:"token,omitempty"` // "" for a client without a token
	User    string   `json:"user,omitempty"`  // with a token, the user that it must be for; "" for any
	Channel string   `json:"channel" required:"true"`
	Fields  []string `json:"fields,omitempty"` // of the channel's state
}

// Answer is what the client may do. Texts are for people.
type Answer struct {
	User    string   `json:"user,omitempty"`    // "" for a client without a user
	Client  string   `json:"client,omitempty"`  // that the token names
	Issued  int64    `json:"issued,omitempty"`  // of the token, ms since 1970; 0 if it does not say it
	Expires int64    `json:"expires,omitempty"` // of the token, ms since 1970; 0 for never
	Connect Decision `json:"connect"`
	Channel string   `json:"channel"`
	Rule    string   `json:"rule,omitempty"`   // the namespace; "" if none fits, or if none are configured
	Limits  string   `json:"limits,omitempty"` // of the namespace
	Rights  []Right  `json:"rights"`
	Fields  []Field  `json:"fields,omitempty"`
}

// Decision says whether something is allowed, and why.
type Decision struct {
	Allowed bool   `json:"allowed"`
	Why     string `json:"why"`
}

// Right is the decision about an action.
type Right struct {
	Right string `json:"right"` // see namespace.Actions
	Decision
}

// Field is the decision about writing a field.
type Field struct {
	Field string `json:"field"`
	Decision
	Limits string `json:"limits,omitempty"` // that apply if it is allowed
}

// Explain answers a query. The error says why the token is refused. It never contains the token.
func (r Rules) Explain(q Query) (Answer, error) {
	a := Answer{User: q.User, Channel: q.Channel}
	subject := namespace.Subject{User: q.User, Open: r.Tokens.Open()}
	if q.Token == "" {
		a.Connect = r.connect(q.User)
	} else {
		claims, err := r.verify(q)
		if err != nil {
			return Answer{}, fmt.Errorf("token: %w", err)
		}
		subject = namespace.Subject{User: claims.User, Grants: claims.Grants, Subscribed: claims.Subscribe}
		a.Issued = claims.Issued
		a.User, a.Client, a.Connect = claims.User, claims.Client, Decision{true, "the token is valid and does not expire"}
		if !claims.Expires.IsZero() {
			a.Expires, a.Connect.Why = claims.Expires.UnixMilli(), "the token is valid until "+claims.Expires.UTC().Format(time.RFC3339)
		}
	}
	for _, action := range namespace.Actions {
		allowed, why := r.decide(subject, action, q.Channel)
		a.Rights = append(a.Rights, Right{action.String(), Decision{allowed, why}})
	}
	if rule := r.Namespaces.For(q.Channel); rule != nil {
		a.Rule, a.Limits = rule.Name, limits(rule)
	}
	for _, field := range q.Fields {
		a.Fields = append(a.Fields, r.field(subject, q.Channel, field))
	}
	return a, nil
}

// decide decides whether the client may do the action. A client subscribes to $user:<name> to
// follow a user.
func (r Rules) decide(subject namespace.Subject, action namespace.Action, channel string) (allowed bool, why string) {
	user, follows := strings.CutPrefix(channel, wire.UserChannelPrefix)
	if follows && action == namespace.Subscribe && wire.CheckName("user", user) == nil {
		return r.Namespaces.DecideFollow(subject, user)
	}
	return r.Namespaces.Decide(subject, action, channel)
}

// connect decides whether a client without a token may connect, or one with a token of the user.
func (r Rules) connect(user string) Decision {
	switch {
	case r.Tokens.Open():
		return Decision{true, "no token keys are configured: clients choose their user freely"}
	case user != "":
		return Decision{true, "with a valid token whose sub is the user; give the token to apply its grants"}
	case r.Anonymous:
		return Decision{true, "auth.anonymous: clients without a token may connect"}
	}
	return Decision{false, "a token is required"}
}

// verify verifies the token of a query.
func (r Rules) verify(q Query) (auth.Claims, error) {
	if r.Tokens.Open() {
		return auth.Claims{}, errors.New("no token keys are configured, so the broker ignores tokens")
	}
	claims, err := r.Tokens.Verify(q.Token)
	if err == nil && q.User != "" && q.User != claims.User {
		err = fmt.Errorf("its user is %s, not %s", claims.User, q.User)
	}
	return claims, err
}

// field decides whether the client may write a field.
func (r Rules) field(subject namespace.Subject, channel, field string) Field {
	f := Field{Field: field}
	f.Allowed, f.Why = r.Namespaces.DecideField(subject, channel, field)
	if match, _ := r.Namespaces.AllowsField(subject, channel, field); f.Allowed {
		f.Limits = fieldLimits(r.Namespaces.For(channel), match, field)
	}
	return f
}
