package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// process is a server beside the test binary. It can be started again after
// it ended; dir and port stay the same.
type process struct {
	path string
	args []string
	env  []string // beside the test binary's own
	dir  string   // working folder, also of its log
	// ping returns nil once the server serves.
	ping func(context.Context) error

	cmd  *exec.Cmd
	gone chan struct{} // closed when the server has ended
}

// start runs the server and waits until it serves.
func (p *process) start() error {
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", p.path, err)
	}
	defer log.Close()                       //nolint:errcheck // the server has its own copy
	p.cmd = exec.Command(p.path, p.args...) //nolint:noctx // it outlives every context; the guard ends it
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = p.dir, log, log
	p.cmd.Env = append(os.Environ(), p.env...)
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.path, err)
	}
	release, err := guard(p.cmd.Process.Pid, "")
	if err != nil {
		_ = p.cmd.Process.Kill()
		return err
	}
	cmd, gone := p.cmd, make(chan struct{})
	p.gone = gone
	go func() {
		_, _ = cmd.Process.Wait()
		release()
		close(gone)
	}()
	return p.ready()
}

func (p *process) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startMax)
	defer cancel()
	err := poll(ctx, func() error {
		select {
		case <-p.gone:
			cancel()
			return errors.New("it ended")
		default:
			return p.ping(ctx)
		}
	})
	if err != nil {
		p.kill()
		return fmt.Errorf("start %s: %w\n%s", p.path, err, p.logEnd())
	}
	return nil
}

// kill ends the server at once, as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// stop asks the server to end and waits for it.
func (p *process) stop() error {
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	return p.await()
}

func (p *process) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), startMax)
	defer cancel()
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		p.kill()
		return errors.New(p.path + " did not stop and was killed\n" + p.logEnd())
	}
}

func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

func (p *process) logPath() string { return filepath.Join(p.dir, "log.txt") }

// logEnd returns the last lines that the server said.
func (p *process) logEnd() string {
	const keep = 2000
	log, err := os.ReadFile(p.logPath())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-keep):])
}

// server is what the own servers of a test have in common.
type server struct {
	t       testing.TB
	process process
}

// Start brings a stopped or killed server back on its old port with what it
// had stored, and returns when it serves.
func (s *server) Start() {
	s.t.Helper()
	require(s.t, s.process.start())
}

// Stop ends the server in good order and returns when it is gone.
func (s *server) Stop() {
	s.t.Helper()
	require(s.t, s.process.stop())
}

// Kill ends the server at once (SIGKILL) and returns when it is gone.
func (s *server) Kill() { s.process.kill() }

// Pause freezes the server (SIGSTOP): connections stay open, nothing answers.
func (s *server) Pause() { s.process.signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *server) Resume() { s.process.signal(syscall.SIGCONT) }

// begin starts the server for its test and removes it after.
func (s *server) begin() {
	s.t.Helper()
	require(s.t, s.process.start())
	s.t.Cleanup(func() {
		s.process.kill()
		_ = os.RemoveAll(s.process.dir)
	})
}

// guardScript waits until the test binary is gone, in whatever way, which
// closes its end of the pipe; then it ends the server or removes the folder.
// The folder may still be written by servers whose guards come a moment later.
const guardScript = `cat >/dev/null
[ "$1" = 0 ] || kill -9 "$1" 2>/dev/null
[ -z "$2" ] || for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$2" 2>/dev/null && exit; sleep 0.2; done`

// guard starts a small process that outlives the test binary just long enough
// to clean up after it, since a killed binary can't. The pid may be 0 and the
// folder empty. release ends the guard without its doing anything.
func guard(pid int, dir string) (release func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("set up a guard: %w", err)
	}
	defer r.Close()                                                               //nolint:errcheck // the guard has its own copy
	cmd := exec.Command("sh", "-c", guardScript, "guard", strconv.Itoa(pid), dir) //nolint:noctx // outlives us
	cmd.Stdin = r
	// A Ctrl-C at the terminal ends the test binary, not its guard.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("start a guard: %w", err)
	}
	keepOpen.Store(w, struct{}{})
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		keepOpen.Delete(w)
		_ = w.Close()
	}, nil
}
