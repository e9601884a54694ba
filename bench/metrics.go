package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// goMemory is the memory in use by the broker's Go runtime, in bytes.
type goMemory struct {
	heap, stacks float64
}

// readGoMemory runs a garbage collection in the broker, through its pprof listener, and reads the
// memory in use from /metrics. ok is false for a broker without these endpoints.
func readGoMemory(ctx context.Context, addr, pprof string) (m goMemory, ok bool, err error) {
	if pprof == "" {
		return m, false, nil
	}
	collected, err := getBody(ctx, "http://"+pprof+"/debug/pprof/heap?gc=1", func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
	if errors.Is(err, unix.ECONNREFUSED) { // an older program without the pprof setting
		return m, false, nil
	}
	if err != nil || !collected {
		return m, false, err
	}
	found := 0
	_, err = getBody(ctx, "http://"+addr+"/metrics", func(r io.Reader) error {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), " ")
			into := map[string]*float64{"go_memstats_heap_alloc_bytes": &m.heap, "go_memstats_stack_inuse_bytes": &m.stacks}[name]
			if into == nil {
				continue
			}
			if *into, err = strconv.ParseFloat(value, 64); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			found++
		}
		return lines.Err()
	})
	return m, found == 2, err
}

// getBody passes the body of a response with status 200 to read. ok is false for other statuses.
func getBody(ctx context.Context, url string, read func(io.Reader) error) (ok bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return false, fmt.Errorf("GET %s: %w", url, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, nil
	}
	if err := read(resp.Body); err != nil {
		return false, fmt.Errorf("GET %s: %w", url, err)
	}
	return true, nil
}
