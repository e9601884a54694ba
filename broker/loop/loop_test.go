package loop

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manualHost is a host whose runs the test calls.
type manualHost struct{ runs []func() }

func (m *manualHost) schedule(run func()) { m.runs = append(m.runs, run) }

func (m *manualHost) next(t *testing.T) {
	t.Helper()
	if len(m.runs) != 1 {
		t.Fatalf("%d runs are outstanding, want 1", len(m.runs))
	}
	run := m.runs[0]
	m.runs = nil
	run()
}

func TestTasksRunInOrderOneRunAtATime(t *testing.T) {
	host := &manualHost{}
	l := New(0)
	l.Attach(host.schedule)
	var got []int
	for i := range 3 {
		l.Post(func() { got = append(got, i) })
	}
	l.Post(func() {
		l.Post(func() { got = append(got, 4) })
		got = append(got, 3)
	})
	host.next(t)
	if want := []int{0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Fatalf("the first run did %v, want %v: tasks posted during a run wait for the next one", got, want)
	}
	host.next(t)
	if want := []int{0, 1, 2, 3, 4}; !slices.Equal(got, want) {
		t.Fatalf("the second run did %v, want %v", got, want)
	}
	if len(host.runs) != 0 {
		t.Fatal("an empty queue scheduled a run")
	}
	l.Post(func() { got = append(got, 5) })
	host.next(t)
	if got[len(got)-1] != 5 {
		t.Fatal("a loop that was idle did not run again")
	}
}

// TestPostLast checks that last tasks come after the others of their run, also those that a task of
// the run has posted, and that those of a last task belong to the next run.
func TestPostLast(t *testing.T) {
	host := &manualHost{}
	l := New(0)
	l.Attach(host.schedule)
	var got []int
	note := func(i int) Task { return taskFunc(func() { got = append(got, i) }) }
	l.PostLast(note(2))
	l.Post(func() {
		l.PostLast(taskFunc(func() {
			got = append(got, 3)
			l.PostLast(note(5))
			l.PostTask(note(4))
		}))
		got = append(got, 0)
	})
	l.PostTask(note(1))
	host.next(t)
	if want := []int{0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Fatalf("the first run did %v, want %v", got, want)
	}
	host.next(t)
	if want := []int{0, 1, 2, 3, 4, 5}; !slices.Equal(got, want) {
		t.Fatalf("the second run did %v, want %v", got, want)
	}
	l.PostLast(note(6))
	host.next(t)
	if got[len(got)-1] != 6 {
		t.Fatal("a last task alone did not run")
	}
}

// TestConcurrentPosts checks that each poster's tasks run in order, never two at once, and that
// none is lost, while hosts attach and detach.
func TestConcurrentPosts(t *testing.T) {
	const posters, each = 8, 2000
	l := NewGoroutine(0)
	var (
		next    [posters]int // without a lock, so that the race detector finds two tasks that run at once
		done    sync.WaitGroup
		posting sync.WaitGroup
	)
	done.Add(posters * each)
	for p := range posters {
		posting.Go(func() {
			for i := range each {
				l.Post(func() {
					if next[p] != i {
						t.Errorf("poster %d: task %d ran in place of %d", p, i, next[p])
					}
					next[p]++
					done.Done()
				})
			}
		})
	}
	for range 20 {
		stop := make(chan struct{})
		var host sync.WaitGroup
		host.Go(func() { l.Run(stop) })
		ran := make(chan struct{})
		l.Post(func() { close(ran) })
		<-ran
		close(stop)
		host.Wait()
	}
	posting.Wait()
	done.Wait()
}

// TestWithoutHost posts a task from a task that runs without a host. It must run, without a
// deadlock.
func TestWithoutHost(t *testing.T) {
	l := New(0)
	first, second := make(chan struct{}), make(chan struct{})
	l.Post(func() {
		l.Post(func() { close(second) })
		close(first)
	})
	<-first
	<-second
}

func TestAttachWaitsForTheCurrentRun(t *testing.T) {
	l := New(0)
	host := &manualHost{}
	started, finish := make(chan struct{}), make(chan struct{})
	finished, late := false, false
	l.Post(func() {
		close(started)
		<-finish
		finished = true
	})
	<-started
	l.Post(func() { late = true })
	attached := make(chan bool)
	go func() {
		l.Attach(host.schedule)
		attached <- finished
	}()
	for begun := false; !begun; runtime.Gosched() {
		l.mu.Lock()
		begun = l.host != nil
		l.mu.Unlock()
	}
	close(finish)
	if !<-attached {
		t.Fatal("Attach returned while a task ran elsewhere")
	}
	if late {
		t.Fatal("a task ran without the attached host")
	}
	host.next(t)
	if !late {
		t.Fatal("a task was lost when a host attached")
	}
}

func TestDetachRunsQueuedTasks(t *testing.T) {
	l := New(0)
	host := &manualHost{}
	l.Attach(host.schedule)
	ran := 0
	l.Post(func() { ran++ })
	l.Detach()
	if ran != 1 {
		t.Fatal("Detach did not run the queued task")
	}
	again := make(chan struct{})
	l.Post(func() { close(again) })
	<-again
	if len(host.runs) != 1 {
		t.Fatal("a run was scheduled on the detached host")
	}
}

func TestBurstMemoryIsReleased(t *testing.T) {
	l := New(0)
	host := &manualHost{}
	l.Attach(host.schedule)
	for range maxSpare * 4 {
		l.Post(func() {})
	}
	host.next(t)
	if n := max(cap(l.spare), cap(l.tasks)); n > maxSpare {
		t.Fatalf("room for %d tasks is kept, want at most %d", n, maxSpare)
	}
	l.Post(func() {})
	host.next(t)
	if cap(l.spare) == 0 {
		t.Fatal("a small task slice is not reused")
	}
}

func BenchmarkPost(b *testing.B) {
	l := New(0)
	l.Attach(func(run func()) { run() })
	b.ReportAllocs()
	for b.Loop() {
		l.Post(func() {})
	}
}
