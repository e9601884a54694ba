package report

import (
	"fmt"
	"math"
	"strings"
)

// canvas builds an SVG drawing.
type canvas struct {
	strings.Builder
	width, height float64
}

// style supports light and dark pages. The background is the page's.
const style = `<style>
text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.soft{fill:#59636e}.bold{font-weight:600}
.grid{stroke:#d1d9e0;stroke-width:1}.axis{stroke:#59636e;stroke-width:1}.range{stroke:#1f2328;stroke-width:1.5}
.floor{stroke:#bc4c00;stroke-width:2;stroke-dasharray:6 4}.floortext{fill:#bc4c00}
.ours{fill:#0969da}.peer{fill:#9aa4af}
.line{fill:none;stroke-width:2.5;stroke-linejoin:round}
.c0{stroke:#0969da}.c1{stroke:#bc4c00}.c2{stroke:#1a7f37}.c3{stroke:#8250df}.c4{stroke:#bf3989}.c5{stroke:#6e7781}
.d0{fill:#0969da}.d1{fill:#bc4c00}.d2{fill:#1a7f37}.d3{fill:#8250df}.d4{fill:#bf3989}.d5{fill:#6e7781}
@media(prefers-color-scheme:dark){
text{fill:#e6edf3}.soft{fill:#9198a1}.grid{stroke:#3d444d}.axis{stroke:#9198a1}.range{stroke:#e6edf3}
.floor{stroke:#f0883e}.floortext{fill:#f0883e}.ours{fill:#4493f8}.peer{fill:#656c76}
.c0{stroke:#4493f8}.c1{stroke:#f0883e}.c2{stroke:#3fb950}.c3{stroke:#ab7df8}.c4{stroke:#db61a2}.c5{stroke:#9198a1}
.d0{fill:#4493f8}.d1{fill:#f0883e}.d2{fill:#3fb950}.d3{fill:#ab7df8}.d4{fill:#db61a2}.d5{fill:#9198a1}
}
</style>`

func newCanvas(width, height float64, title string) *canvas {
	c := &canvas{width: width, height: height}
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s">`,
		width, height, width, height, escape(title))
	c.add("%s", style)
	c.text(16, 26, "title", "start", title)
	return c
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) text(x, y float64, class, anchor, text string) {
	c.add(`<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, escape(text))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

func (c *canvas) end() []byte {
	c.add("</svg>")
	return []byte(c.String())
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace

// textWidth estimates the width of a text in the style's font.
func textWidth(text string) float64 { return 7.4 * float64(len([]rune(text))) }

// scale maps values to pixels.
type scale struct {
	low, high float64
	log       bool
	from, to  float64 // pixels
	ticks     []float64
}

// newScale returns a scale that contains all values from least to most. It is linear and starts at
// 0, unless most is more than factor times least. Then it is logarithmic and starts at or below
// least.
func newScale(least, most, factor, from, to float64) scale {
	s := scale{from: from, to: to}
	if least > 0 && most/least > factor {
		s.log = true
		s.low, s.high = 1/roundUp(1/least), roundUp(most)
		for power := math.Pow(10, math.Floor(math.Log10(s.low)+1e-9)); power <= s.high; power *= 10 {
			for _, k := range []float64{1, 2, 5} {
				inside := k*power >= s.low*0.999 && k*power <= s.high*1.001
				if inside && (k == 1 || s.high/s.low < 2e4) {
					s.ticks = append(s.ticks, k*power)
				}
			}
		}
		return s
	}
	step := roundStep(most / 5)
	s.high = math.Max(step, step*math.Ceil(most/step-1e-9))
	for i := 0; float64(i)*step <= s.high*1.001; i++ {
		s.ticks = append(s.ticks, float64(i)*step)
	}
	return s
}

// roundUp returns the end of a logarithmic axis: 1, 2 or 5 times a power of ten.
func roundUp(most float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(most)+1e-9))
	for _, k := range []float64{1, 2, 5} {
		if most <= k*power*(1+1e-9) {
			return k * power
		}
	}
	return 10 * power
}

// roundStep returns the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least v.
func roundStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 2, 2.5, 5} {
		if v <= k*power*(1+1e-9) {
			return k * power
		}
	}
	return 10 * power
}

// pixel returns the position of v.
func (s scale) pixel(v float64) float64 {
	part := (v - s.low) / (s.high - s.low)
	if s.log {
		part = math.Log(math.Max(v, s.low)/s.low) / math.Log(s.high/s.low)
	}
	return s.from + part*(s.to-s.from)
}

// tickLabel formats a number on an axis.
func tickLabel(v float64) string {
	if v >= 1000 {
		return Thousands(int64(math.Round(v)))
	}
	return fmt.Sprintf("%.6g", v)
}
