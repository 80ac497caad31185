package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Process is a server beside this process. It can be started again after it
// ended; its folder and port stay the same. One goroutine at a time may use it.
type Process struct {
	// Path and Args are the program and its arguments, Env is added to this
	// process's own environment.
	Path string
	Args []string
	Env  []string
	// Dir is its working folder, also of its log.
	Dir string
	// Ping returns nil once the server serves.
	Ping func(context.Context) error

	cmd  *exec.Cmd
	gone chan struct{} // closed when the server has ended
}

// Start runs the server and waits until it serves.
func (p *Process) Start() error {
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", p.Path, err)
	}
	defer log.Close()                       //nolint:errcheck // the server has its own copy
	p.cmd = exec.Command(p.Path, p.Args...) //nolint:noctx // it outlives every context; the guard ends it
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = p.Dir, log, log
	p.cmd.Env = append(os.Environ(), p.Env...)
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Path, err)
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

func (p *Process) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), StartMax)
	defer cancel()
	err := Poll(ctx, func() error {
		select {
		case <-p.gone:
			cancel()
			return errors.New("it ended")
		default:
			return p.Ping(ctx)
		}
	})
	if err != nil {
		p.Kill()
		return fmt.Errorf("start %s: %w\n%s", p.Path, err, p.LogEnd())
	}
	return nil
}

// PID is the process id of a started server.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill ends the server at once (SIGKILL) and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// Stop ends the server in good order (SIGTERM) and returns when it is gone.
func (p *Process) Stop() error {
	p.Resume()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.await()
}

// await waits for a server that was told to end.
func (p *Process) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), StartMax)
	defer cancel()
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		p.Kill()
		return errors.New(p.Path + " did not stop and was killed\n" + p.LogEnd())
	}
}

// Pause freezes the server (SIGSTOP): connections stay open, nothing answers.
func (p *Process) Pause() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (p *Process) Resume() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// Remove kills the server and removes its folder.
func (p *Process) Remove() {
	p.Kill()
	_ = os.RemoveAll(p.Dir)
}

func (p *Process) logPath() string { return filepath.Join(p.Dir, "log.txt") }

// LogEnd returns the last lines that the server said.
func (p *Process) LogEnd() string {
	const keep = 2000
	log, err := os.ReadFile(p.logPath())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-keep):])
}

// guardScript waits until this process is gone, in whatever way, which closes
// its end of the pipe; then it ends the server or removes the folder. The
// folder may still be written by servers whose guards come a moment later.
const guardScript = `cat >/dev/null
[ "$1" = 0 ] || kill -9 "$1" 2>/dev/null
[ -z "$2" ] || for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$2" 2>/dev/null && exit; sleep 0.2; done`

// guard starts a small process that outlives this one just long enough to
// clean up after it, since a killed process can't. The pid may be 0 and the
// folder empty. release ends the guard without its doing anything.
func guard(pid int, dir string) (release func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("set up a guard: %w", err)
	}
	defer r.Close()                                                               //nolint:errcheck // the guard has its own copy
	cmd := exec.Command("sh", "-c", guardScript, "guard", strconv.Itoa(pid), dir) //nolint:noctx // outlives us
	cmd.Stdin = r
	// A Ctrl-C at the terminal ends this process, not its guard.
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
