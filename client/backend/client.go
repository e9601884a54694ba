package backend

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Options configures a Client. Only URLs is required.
type Options struct {
	// URLs are the HTTP ports of instances, such as http://127.0.0.1:8080. All calls go to one of
	// them, and to the next one when it cannot be reached. Zero means an error.
	URLs []string
	// Key is an API key. Zero means none, for an open broker.
	Key string
	// Timeout bounds one attempt. The broker may need 5 s for a push while its store fails over, so
	// less can abandon calls that succeed. Zero means 10 s.
	Timeout time.Duration
	// RetryFor bounds the time in which a call is repeated, without the last attempt. Zero means 10
	// s. A negative value means that only other instances are tried, each of them once.
	RetryFor time.Duration
	// HTTP makes the requests. Zero means one with connections of its own.
	HTTP *http.Client
}

// Client makes calls of the HTTP API. It is safe for concurrent use.
type Client struct {
	urls []string // without the last slash
	opts Options
	at   atomic.Int64 // index of the instance in use, modulo len(urls)
}

// New returns a Client. It does not connect. The error says which option is invalid.
func New(o Options) (*Client, error) {
	if len(o.URLs) == 0 {
		return nil, errors.New("no URLs: at least one is needed")
	}
	c := &Client{opts: o}
	for _, raw := range o.URLs {
		u, err := url.Parse(raw)
		switch {
		case err != nil:
			return nil, errors.New("URLs: one of them is not a URL") // err would repeat it with its secrets
		case u.User != nil:
			return nil, errors.New("URLs: a URL ends up in logs, give the key in Key")
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return nil, fmt.Errorf("URLs: %q is not the address of a broker, such as http://127.0.0.1:8080", u.Redacted())
		}
		c.urls = append(c.urls, strings.TrimSuffix(raw, "/"))
	}
	c.opts.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	c.opts.RetryFor = cmp.Or(o.RetryFor, 10*time.Second)
	if o.HTTP == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 64 // the default of 2 closes most connections of parallel calls
		c.opts.HTTP = &http.Client{Transport: transport}
	}
	return c, nil
}

// URL returns the address of the instance that the next call uses.
func (c *Client) URL() string { return c.url(c.at.Load()) }

func (c *Client) url(at int64) string { return c.urls[at%int64(len(c.urls))] }

// Close closes connections that are not in use.
func (c *Client) Close() { c.opts.HTTP.CloseIdleConnections() }
