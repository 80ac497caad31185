package natsbridge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestPaceHalvesAndGrowsByOne(t *testing.T) {
	t.Parallel()
	p := newPace(8, 8)
	allowed := func(want int) {
		t.Helper()
		if p.allowed != want {
			t.Errorf("%d rounds are allowed, want %d", p.allowed, want)
		}
	}
	allowed(8)
	for _, want := range []int{4, 2, 1, 1} {
		p.troubled(0)
		allowed(want)
	}
	for _, want := range []int{2, 3, 4, 5, 6, 7, 8, 8} {
		p.succeeded()
		allowed(want)
	}
}

func TestPaceBoundsItsRounds(t *testing.T) {
	t.Parallel()
	p := newPace(2, 2)
	for range 2 {
		if !p.enter(t.Context()) {
			t.Fatal("a free round is refused")
		}
	}
	if wait, _ := p.tryEnter(); wait == 0 {
		t.Error("a third round may start")
	}
	entered := make(chan bool)
	go func() { entered <- p.enter(t.Context()) }()
	p.leave()
	if !<-entered {
		t.Error("the waiting round is refused")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { entered <- p.enter(ctx) }()
	cancel()
	if <-entered {
		t.Error("a round starts after the end")
	}
}

func TestPacePausesLongerWithEachFailure(t *testing.T) {
	t.Parallel()
	p := newPace(4, 4)
	pause := func() time.Duration { return time.Until(p.resumeAt) }
	p.troubled(0)
	if got := pause(); got <= 0 || got > pauseMin {
		t.Errorf("pause of %s after one failure", got)
	}
	for range 20 {
		p.troubled(0)
	}
	if got := pause(); got < pauseMax/4 || got > pauseMax {
		t.Errorf("pause of %s after many failures", got)
	}
	p.troubled(time.Hour)
	if got := pause(); got < retryAfterMax-time.Second || got > retryAfterMax {
		t.Errorf("pause of %s when an hour is asked for", got)
	}
	if wait, _ := p.tryEnter(); wait == 0 {
		t.Error("a round starts in the pause")
	}
	p.succeeded()
	if wait, _ := p.tryEnter(); wait != 0 {
		t.Error("no round starts after a success")
	}
}

func TestRetriesSpreadAndGrow(t *testing.T) {
	t.Parallel()
	for delivered, most := range map[int]time.Duration{0: retryMin, 1: retryMin, 3: 4 * retryMin, 100: retryMax} {
		var longest time.Duration
		for range 1000 {
			got := retryIn(delivered, 0)
			if got <= 0 || got > most+time.Millisecond {
				t.Fatalf("delivery %d is retried in %s, at most %s", delivered, got, most)
			}
			longest = max(longest, got)
		}
		if longest < most/2 {
			t.Errorf("delivery %d is never retried later than %s", delivered, longest)
		}
	}
}

// One round runs alone while it leaves nothing behind, and more while it does.
func TestPaceRunsWhatIsWanted(t *testing.T) {
	t.Parallel()
	p := newPace(3, 1)
	may := func(want int) {
		t.Helper()
		got := 0
		for {
			if wait, _ := p.tryEnter(); wait > 0 {
				break
			}
			got++
		}
		for range got {
			p.leave()
		}
		if got != want {
			t.Errorf("%d rounds may run, want %d", got, want)
		}
	}
	may(1)
	for _, want := range []int{2, 3, 3} {
		p.found(true)
		may(want)
	}
	p.troubled(0)
	p.resumeAt = time.Time{}
	may(1)
	p.succeeded()
	p.succeeded()
	may(3)
	p.found(false)
	may(1)
}

// A round that hangs is not waited for: it may be one replica of the target.
func TestPaceDoesNotWaitForASlowRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPace(2, 1)
		if !p.enter(t.Context()) {
			t.Fatal("a free round is refused")
		}
		began := time.Now()
		if !p.enter(t.Context()) || time.Since(began) != slowAfter {
			t.Errorf("another round starts after %s, want %s", time.Since(began), slowAfter)
		}
		if wait, _ := p.tryEnter(); wait == 0 {
			t.Error("a third round may start")
		}
	})
}
