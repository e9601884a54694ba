package sketch

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"
)

// of returns a Sketch of the names user-from to user-(to-1).
func of(from, to int) *Sketch {
	s := &Sketch{}
	for i := from; i < to; i++ {
		s.Add(fmt.Sprint("user-", i))
	}
	return s
}

// TestExact checks that summaries of few names are exact, also after a merge of many.
func TestExact(t *testing.T) {
	all := &Sketch{}
	for i := range 30 {
		all.Merge(of(1000*i, 1000*i+1500)) // half of them are also in the next one
		all.Merge(of(1000*i, 1000*i+1500))
	}
	if n, exact := all.Count(); n != 30_500 || !exact {
		t.Errorf("%d names, exact %t, want 30500 exactly", n, exact)
	}
	if n, exact := new(Sketch).Count(); n != 0 || !exact {
		t.Errorf("the empty set has %d names, exact %t", n, exact)
	}
	if n, exact := of(0, MaxExact).Count(); n != MaxExact || !exact {
		t.Errorf("%d names, exact %t", n, exact)
	}
}

// TestEstimate checks that estimates of sets of all sizes are within four standard errors, and on
// average within one.
func TestEstimate(t *testing.T) {
	var squares float64
	tests := 0
	for _, n := range []int{MaxExact + 1, 5000, 20_000, 60_000, 200_000} {
		for seed := range 5 {
			all := &Sketch{}
			first := 10_000_000 * seed
			for part := range 4 { // three quarters of each part are also in the next one
				size := 4 * n / 7
				all.Merge(of(first+part*n/7, first+part*n/7+size))
			}
			all.Merge(of(first, first+10)) // an exact one
			got, exact := all.Count()
			want := 3*n/7 + 4*n/7
			off := float64(got-want) / float64(want)
			if exact && n > 4000 || math.Abs(off) > 4*StandardError {
				t.Errorf("%d names are counted as %d, exact %t", want, got, exact)
			}
			squares, tests = squares+off*off, tests+1
		}
	}
	if rms := math.Sqrt(squares / float64(tests)); rms > 1.2*StandardError {
		t.Errorf("the root mean square of the errors is %f", rms)
	} else {
		t.Logf("the root mean square of the errors is %f", rms)
	}
}

// TestEncoding checks that a Sketch survives its encoding.
func TestEncoding(t *testing.T) {
	for _, s := range []*Sketch{{}, of(0, 1), of(0, MaxExact), of(0, MaxExact+1), of(0, 50_000)} {
		data, err := s.AppendBinary(nil)
		if err != nil || len(data) > 16<<10+1 {
			t.Errorf("%d bytes, %v", len(data), err)
		}
		var got Sketch
		if err := got.UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		n, exact := s.Count()
		if k, same := got.Count(); k != n || same != exact {
			t.Errorf("%d names, exact %t, want %d, %t", k, same, n, exact)
		}
	}
}

func FuzzUnmarshalBinary(f *testing.F) {
	for _, s := range []*Sketch{{}, of(0, 3), of(0, MaxExact+1)} {
		data, _ := s.AppendBinary(nil)
		f.Add(data)
	}
	f.Add(append([]byte{kindRegisters}, bytes.Repeat([]byte{rankBits + 1}, registers)...))
	f.Add([]byte("h1234567"))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Sketch
		if err := s.UnmarshalBinary(data); err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Error(err)
			}
			return
		}
		merged := of(0, 10)
		merged.Merge(&s)
		if n, _ := merged.Count(); n < 0 {
			t.Errorf("%d names", n)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	s := of(0, MaxExact+1)
	for b.Loop() {
		s.Add("some/user")
	}
}
