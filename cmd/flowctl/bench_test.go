package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// BenchmarkColdStart runs a flow of five states in a process of its own, on a database that is not there yet. The
// yardstick is the same binary that only prints its version.
func BenchmarkColdStart(b *testing.B) {
	dir := b.TempDir()
	binary := filepath.Join(dir, "flowctl")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	const flow = `
version: 1
name: five
start: a
states:
  a: {handler: route, transitions: {next: b}}
  b: {handler: route, transitions: {next: c}}
  c: {handler: route, transitions: {next: d}}
  d: {handler: route, transitions: {next: e}}
  e: {handler: end}
`
	if err := os.WriteFile(filepath.Join(dir, "five.yaml"), []byte(flow), 0o600); err != nil {
		b.Fatal(err)
	}
	var run, version time.Duration
	var memory int64
	for b.Loop() {
		v, _ := timed(b, dir, binary, "version")
		r, rss := timed(b, dir, binary, "run", "five.yaml")
		version += v
		run += r
		memory = max(memory, rss)
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(filepath.Join(dir, "flowctl.db"+suffix)); err != nil && !os.IsNotExist(err) {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(run.Milliseconds())/float64(b.N), "ms/run")
	b.ReportMetric(float64(run)/float64(version), "of-version")
	b.ReportMetric(float64(memory)/1024, "MiB")
	b.ReportMetric(0, "ns/op")
}

// timed runs a process and gives its time and its largest memory in KiB.
func timed(b *testing.B, dir string, name string, args ...string) (time.Duration, int64) {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	took := time.Since(start)
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return took, 0
	}
	return took, usage.Maxrss
}
