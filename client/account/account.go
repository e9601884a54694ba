// Package account registers accounts, logs in to them, and gives a [client.Client] its tokens.
//
//	accounts, err := account.New(account.Options{URL: "https://push.example.com"})
//	session, err := accounts.Login(ctx, account.Credentials{Name: "amy", Password: password})
//	c, err := client.New(client.Options{URLs: urls, TokenSource: session.Token})
package account

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/xdg-go/scram"

	"switchboard/client"
)

// Options configures Accounts. Only URL is required.
type Options struct {
	// URL is the address of the broker's HTTP port, without a path.
	URL string
	// HTTP makes the calls. Zero means a client with a timeout of 10 s.
	HTTP *http.Client
	// Renewed is called with each new renewal token, before the call that received it returns. The
	// token before is no longer valid, so store the new one. Zero means no call.
	Renewed func(renewal string)
}

// Accounts makes the calls without an API key.
type Accounts struct {
	url     string
	http    *http.Client
	renewed func(string)
}

// New returns an Accounts. The error says why the URL is not valid.
func New(o Options) (*Accounts, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("account: %q is not the URL of a broker, such as https://push.example.com", o.URL)
	}
	a := &Accounts{strings.TrimSuffix(o.URL, "/") + "/v1/accounts", o.HTTP, o.Renewed}
	if a.http == nil {
		a.http = &http.Client{Timeout: 10 * time.Second}
	}
	if a.renewed == nil {
		a.renewed = func(string) {}
	}
	return a, nil
}

// Credentials are a name and a password.
type Credentials struct {
	Name     string
	Password string
	Client   string // as in Registration
}

// Register makes an account and logs in to it. The error has the code client.Conflict if the name
// is taken.
func (a *Accounts) Register(ctx context.Context, r Registration) (*Session, error) {
	return a.begin(ctx, "", r)
}

// Login logs in by SCRAM-SHA-256: the broker verifies the password without receiving it, and proves
// that it knows the account. The error has the code client.Unauthorized if the name is not known or
// the password is wrong, and client.Locked if the account is locked.
func (a *Accounts) Login(ctx context.Context, c Credentials) (*Session, error) {
	prover, err := scram.SHA256.NewClient(c.Name, c.Password, "")
	if err != nil {
		return nil, errors.New("account: the name or the password has a character that is not allowed")
	}
	conversation := prover.NewConversation()
	first, err := conversation.Step("")
	if err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	var challenge struct{ Challenge, Message string }
	if err := a.call(ctx, http.MethodPost, "/challenge", "", map[string]string{"message": first}, &challenge); err != nil {
		return nil, err
	}
	final, err := conversation.Step(challenge.Message)
	if err != nil {
		return nil, fmt.Errorf("account: the broker's challenge: %w", err)
	}
	s := a.newSession()
	body := map[string]string{"challenge": challenge.Challenge, "message": final, "client": c.Client}
	return s, s.fetch(ctx, "/login", body, func(proof string) error {
		if _, err := conversation.Step(proof); err != nil {
			return fmt.Errorf("account: the broker has not proved that it knows the account: %w", err)
		}
		return nil
	})
}

// LoginByPassword logs in by sending the password, which needs TLS.
func (a *Accounts) LoginByPassword(ctx context.Context, c Credentials) (*Session, error) {
	return a.begin(ctx, "/login", map[string]string{"name": c.Name, "password": c.Password, "client": c.Client})
}

// Resume continues a login with its stored renewal token.
func (a *Accounts) Resume(ctx context.Context, renewal string) (*Session, error) {
	return a.begin(ctx, "/renew", map[string]string{"renewal": renewal})
}

// begin makes a call whose answer is a session.
func (a *Accounts) begin(ctx context.Context, path string, body any) (*Session, error) {
	s := a.newSession()
	return s, s.fetch(ctx, path, body, func(string) error { return nil })
}

func (a *Accounts) newSession() *Session { return &Session{accounts: a, lock: make(chan struct{}, 1)} }

// call makes a call and decodes the answer. A refusal is a *client.Error.
func (a *Accounts) call(ctx context.Context, method, path, token string, body, into any) error {
	return a.callIf(ctx, nil, method, path, token, body, into)
}

// callIf is call with the header of a condition.
func (a *Accounts) callIf(ctx context.Context, condition http.Header, method, path, token string, body, into any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	if condition != nil {
		req.Header = condition
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(resp, answer)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("account: the answer is not valid: %w", err)
	}
	return nil
}

// maxAnswer is the most bytes of an answer.
const maxAnswer = 64 << 10

// refusal returns the error of an answer.
func refusal(resp *http.Response, answer []byte) error {
	var body struct {
		Error struct {
			Code    client.ErrorCode
			Message string
		}
	}
	if err := json.Unmarshal(answer, &body); err != nil || body.Error.Code == "" {
		return fmt.Errorf("account: the broker answers %s", resp.Status)
	}
	e := &client.Error{Code: body.Error.Code, Message: body.Error.Message}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.After = time.Duration(seconds) * time.Second
	}
	return fmt.Errorf("account: %w", e)
}
