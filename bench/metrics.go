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

// goMemory is what the broker's Go runtime says of itself, in bytes.
type goMemory struct {
	heap, stacks float64
}

// readGoMemory collects the broker's garbage, by its profiles at pprof, and reads what is left. ok
// is false for a target without these pages.
func readGoMemory(ctx context.Context, addr, pprof string) (m goMemory, ok bool, err error) {
	if pprof == "" {
		return m, false, nil
	}
	collected, err := get(ctx, "http://"+pprof+"/debug/pprof/heap?gc=1", func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
	if errors.Is(err, unix.ECONNREFUSED) { // a program that does not know the setting
		return m, false, nil
	}
	if err != nil || !collected {
		return m, false, err
	}
	found := 0
	_, err = get(ctx, "http://"+addr+"/metrics", func(r io.Reader) error {
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

// get hands the body of a 200 to read; any other status is false.
func get(ctx context.Context, url string, read func(io.Reader) error) (ok bool, err error) {
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
