package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flowctl/store"
)

// TestMain turns the test binary into a second process when a test starts it as one.
func TestMain(m *testing.M) {
	if role := os.Getenv("FLOWCTL_STORE_ROLE"); role != "" {
		if err := secondProcess(role, os.Getenv("FLOWCTL_STORE_PATH")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// start runs this test binary as another process. It ends with the test.
func start(t *testing.T, role, path string) (cmd *exec.Cmd, output *bufio.Reader) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "FLOWCTL_STORE_ROLE="+role, "FLOWCTL_STORE_PATH="+path)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(pipe)
}

func secondProcess(role, path string) error {
	ctx := context.Background()
	switch role {
	case "share": // the same work as the first process
		db, err := Open(ctx, path, Options{})
		if err != nil {
			return err
		}
		won, err := share(ctx, db, "second")
		fmt.Println(won)
		return errors.Join(err, db.Close())
	case "write": // commits, telling each acknowledged seq, until it is killed
		db, err := Open(ctx, path, Options{})
		if err != nil {
			return err
		}
		for seq := int64(1); ; seq++ {
			if err := db.Commit(ctx, oneEvent("r", seq, "x")); err != nil {
				return err
			}
			fmt.Println(seq)
		}
	case "open": // opens and closes, at the same time as others do
		db, err := Open(ctx, path, Options{})
		if err != nil {
			return err
		}
		return db.Close()
	case "lock": // holds the write lock until its input ends
		c, err := connect(ctx, dsn(path, Full, making))
		if err != nil {
			return err
		}
		if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
			return err
		}
		fmt.Println("locked")
		_, err = io.Copy(io.Discard, os.Stdin)
		return errors.Join(err, c.close())
	}
	return fmt.Errorf("no role %q", role)
}

// oneEvent is the commit of event seq on a run of epoch 1; seq 1 creates the run.
func oneEvent(run string, seq int64, state string) store.Commit {
	return store.Commit{
		Run:       store.Run{ID: run, Flow: "f", Status: store.Running, State: state, Created: time.UnixMilli(1)},
		ExpectSeq: seq - 1, Epoch: 1,
		Events: []store.Event{{Seq: seq, At: time.UnixMilli(seq), Type: "said", State: state, Visit: 1, Step: 1,
			Data: []byte(`{"text":"hello"}`)}},
	}
}

const (
	sharedRuns    = 50
	sharedCommits = 40 // of each process on each run, won or lost
)

// share works on all the runs at the same time, beside another process that does the same: it reads where a run stands,
// commits the next event, claims and beats. It gives the number of commits that it won.
func share(ctx context.Context, db *DB, name string) (won int64, err error) {
	var all sync.WaitGroup
	var wins atomic.Int64
	failures := make(chan error, sharedRuns)
	for i := range sharedRuns {
		all.Go(func() {
			if err := shareOne(ctx, db, fmt.Sprintf("r%02d", i), name, &wins); err != nil {
				failures <- fmt.Errorf("run %d of the %s process: %w", i, name, err)
			}
		})
	}
	all.Wait()
	close(failures)
	for e := range failures {
		err = errors.Join(err, e)
	}
	return wins.Load(), err
}

func shareOne(ctx context.Context, db *DB, run, name string, wins *atomic.Int64) error {
	w := store.Worker{ID: name + run, Beat: time.UnixMilli(1)}
	for range sharedCommits {
		rows, err := db.Runs(ctx, store.Filter{ID: run})
		if err != nil {
			return err
		}
		c := oneEvent(run, 1, name)
		if len(rows) == 1 {
			c = oneEvent(run, rows[0].Seq+1, name)
			c.Epoch = rows[0].Epoch
		}
		switch err := db.Commit(ctx, c); {
		case err == nil:
			wins.Add(1)
		case !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrExists):
			return err
		}
		if _, err := db.Beat(ctx, w); err != nil {
			return err
		}
		claim := store.Claim{Run: run, Worker: w, Now: time.UnixMilli(1), Gone: func(store.Worker) bool { return true }}
		if _, err := db.Claim(ctx, claim); err != nil && !errors.Is(err, store.ErrBusy) {
			return err
		}
		if _, err := db.Events(ctx, run, 0, 5); err != nil {
			return err
		}
	}
	return nil
}

func TestTwoProcessesShareAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flowctl.db")
	cmd, output := start(t, "share", path)
	db := open(t, path, Options{}) // both make the file, if they come to it at the same time
	mine, err := share(t.Context(), db, "first")
	if err != nil {
		t.Error(err)
	}
	line, err := output.ReadString('\n')
	if err != nil {
		t.Fatalf("the second process: %v", errors.Join(err, cmd.Wait()))
	}
	theirs, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err = errors.Join(err, cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for i := range sharedRuns {
		events, err := db.Events(t.Context(), fmt.Sprintf("r%02d", i), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for j, e := range events {
			if e.Seq != int64(j)+1 {
				t.Fatalf("run %d: event %d has seq %d", i, j, e.Seq)
			}
		}
		total += int64(len(events))
	}
	if total != mine+theirs || mine == 0 || theirs == 0 {
		t.Errorf("%d events are stored; the processes won %d and %d commits", total, mine, theirs)
	}
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flowctl.db")
	cmd, output := start(t, "write", path)
	last := int64(0)
	for last < 200 {
		line, err := output.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if last, err = strconv.ParseInt(strings.TrimSpace(line), 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(output)
	if err != nil {
		t.Fatal(err)
	}
	last += int64(strings.Count(string(rest), "\n"))
	_ = cmd.Wait() // it says that it was killed
	events, err := open(t, path, Options{}).Events(t.Context(), "r", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The commit under way when it was killed may have happened.
	if n := int64(len(events)); n < last || n > last+1 {
		t.Errorf("%d commits were acknowledged, %d are stored", last, n)
	}
	for i, e := range events {
		if e.Seq != int64(i)+1 {
			t.Fatalf("event %d has seq %d", i, e.Seq)
		}
	}
}

func TestManyProcessesMakeTheFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flowctl.db")
	var processes []*exec.Cmd
	for range 6 {
		cmd, _ := start(t, "open", path)
		processes = append(processes, cmd)
	}
	for _, cmd := range processes {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if err := open(t, path, Options{}).Commit(t.Context(), oneEvent("r", 1, "x")); err != nil {
		t.Error(err)
	}
}

func TestCommitWaitsForAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flowctl.db")
	db := open(t, path, Options{})
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "FLOWCTL_STORE_ROLE=lock", "FLOWCTL_STORE_PATH="+path)
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatal(line, err)
	}
	done := make(chan error, 1)
	go func() { done <- db.Commit(context.Background(), oneEvent("r", 1, "x")) }()
	if _, err := db.Runs(t.Context(), store.Filter{}); err != nil { // reading does not wait
		t.Error(err)
	}
	select {
	case err := <-done:
		t.Errorf("the commit did not wait: %v", err)
	default:
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-done, cmd.Wait()); err != nil {
		t.Error(err)
	}
}
