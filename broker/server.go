package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"switchboard/broker/fastpush"
)

// server serves one HTTP port.
type server struct {
	http     http.Server
	listener net.Listener
	fastPush *fastpush.Server // nil for none
	abrupt   bool             // shutdown does not wait for the calls under way
}

func (s *server) addr() string { return s.listener.Addr().String() }

func (s *server) serve(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = s.http.Close() })()
	if s.fastPush != nil {
		var returned sync.WaitGroup
		returned.Go(func() { _ = s.http.Serve(s.fastPush.Returned()) }) // ends at fastPush.Close
		defer returned.Wait()
		defer s.fastPush.Close()
	}
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the HTTP listener on %s ended: %w", s.listener.Addr(), err)
	}
	return nil
}

// shutdown stops accepting and waits for the calls under way. It ends fastPush first, since that
// may return some of its connections to net/http.
func (s *server) shutdown(ctx context.Context) {
	if s.fastPush != nil {
		s.fastPush.Shutdown(ctx)
	}
	if s.abrupt || s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
}

// closeAll closes the ports of servers that do not serve yet.
func closeAll(servers []*server) {
	for _, s := range servers {
		_ = s.listener.Close()
	}
}
