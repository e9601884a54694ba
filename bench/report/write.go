package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Write writes REPORT.md, report.json and plots/*.svg into dir. Plots of an earlier run are
// removed.
func Write(dir string, r Run) error {
	if err := write(dir, r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func write(dir string, r Run) error {
	folder := filepath.Join(dir, "plots")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	plots := map[string][]plot{}
	for _, s := range r.scenarios() {
		plots[s.id] = r.plots(s)
		for _, p := range plots[s.id] {
			if err := os.WriteFile(filepath.Join(dir, p.file), p.svg, 0o644); err != nil {
				return err
			}
		}
	}
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), append(raw, '\n'), 0o644); err != nil {
		return err
	}
	var text bytes.Buffer
	writeMarkdown(&text, r, plots, millionSummary(dir), methodPath(dir))
	return os.WriteFile(filepath.Join(dir, "REPORT.md"), text.Bytes(), 0o644)
}

// methodFile describes the measurements, relative to the folder bench.
const methodFile = "suite/doc.go"

// methodPath returns the path from dir to methodFile, or "" if neither dir nor a folder above it
// has the file.
func methodPath(dir string) string {
	folder, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for up := ""; ; up += "../" {
		if _, err := os.Stat(filepath.Join(folder, methodFile)); err == nil {
			return up + methodFile
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return ""
		}
		folder = parent
	}
}

// millionSummary returns the summary line of MILLION.md, "" if there is none.
func millionSummary(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "MILLION.md"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if found, ok := strings.CutPrefix(line, "In short: "); ok {
			return strings.TrimSpace(found)
		}
	}
	return ""
}
