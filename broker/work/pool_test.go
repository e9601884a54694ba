package work

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWorkersAreBounded(t *testing.T) {
	const size = 3
	p := New(size)
	started, finish := make(chan struct{}), make(chan struct{})
	var running, most atomic.Int64
	for range size * 4 {
		p.Go(func() {
			most.Store(max(most.Load(), running.Add(1)))
			started <- struct{}{}
			<-finish
			running.Add(-1)
		})
	}
	for range size {
		<-started
	}
	if n := p.Queued(); n != size*3 {
		t.Fatalf("%d jobs are queued, want %d", n, size*3)
	}
	select {
	case <-started:
		t.Fatal("more jobs run than there are workers")
	default:
	}
	for range size * 3 {
		finish <- struct{}{}
		<-started
	}
	close(finish)
	p.Wait()
	if most.Load() != size {
		t.Fatalf("%d jobs ran at once, want %d", most.Load(), size)
	}
	if p.Queued() != 0 || p.running != 0 {
		t.Fatal("jobs or workers are left after Wait")
	}
}

func TestJobsStartInOrder(t *testing.T) {
	p := New(1)
	hold := make(chan struct{})
	p.Go(func() { <-hold })
	var got, want []int
	for i := range 100 {
		want = append(want, i)
		p.Go(func() { got = append(got, i) })
	}
	close(hold)
	p.Wait()
	if !slices.Equal(got, want) {
		t.Fatalf("the jobs ran in the order %v", got)
	}
}

// TestWait checks that Wait also waits for jobs that running jobs post.
func TestWait(t *testing.T) {
	p := New(2)
	p.Wait() // nothing to do
	var ran atomic.Int64
	var post func(n int)
	post = func(n int) {
		p.Go(func() {
			ran.Add(1)
			if n > 0 {
				post(n - 1)
			}
		})
	}
	for range 10 {
		post(9)
	}
	p.Wait()
	if ran.Load() != 100 {
		t.Fatalf("Wait returned after %d jobs of 100", ran.Load())
	}
}

func TestConcurrentGo(t *testing.T) {
	p := New(0)
	var ran atomic.Int64
	var posters sync.WaitGroup
	for range 8 {
		posters.Go(func() {
			for range 1000 {
				p.Go(func() { ran.Add(1) })
			}
		})
	}
	posters.Wait()
	p.Wait()
	if ran.Load() != 8000 {
		t.Fatalf("%d jobs ran of 8000", ran.Load())
	}
}

// TestWorkersLinger checks that a burst of jobs soon after another reuses its workers, and that
// idle workers stop later.
func TestWorkersLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(4)
		started, alive := 0, atomic.Int64{}
		p.start = func(worker func()) {
			started++
			alive.Add(1)
			go func() { defer alive.Add(-1); worker() }()
		}
		burst := func() {
			for range 8 {
				p.Go(func() { time.Sleep(time.Millisecond) })
			}
			p.Wait()
		}
		for range 50 {
			burst()
			time.Sleep(lingerTime / 2)
		}
		if started != 4 {
			t.Errorf("%d workers were started for 50 bursts, want 4", started)
		}
		time.Sleep(3 * lingerTime)
		synctest.Wait()
		if n := alive.Load(); n != 0 || p.lingering != 0 || p.woken != 0 || p.running != 0 {
			t.Errorf("%d workers are left: %d linger, %d are woken, %d run", n, p.lingering, p.woken, p.running)
		}
		burst()
		if started != 8 {
			t.Errorf("%d workers were started, want 8", started)
		}
		time.Sleep(3 * lingerTime)
	})
}

func BenchmarkGo(b *testing.B) {
	p := New(0)
	b.ReportAllocs()
	for b.Loop() {
		p.Go(func() {})
	}
	p.Wait()
}
