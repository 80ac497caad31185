package campaign

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"seckill/scripts/faults/proxy"
	"seckill/scripts/faults/stage"
)

// faultKind is one way in which the world goes wrong, for a while.
type faultKind struct {
	// losing: a store loses data, so the other ones must have it by then.
	losing bool
	// kills: a process is killed, so healing may take longer.
	kills bool
	// run begins the fault, waits and ends it; what says where it struck.
	run func(ctx context.Context, f *fault) (what string, err error)
}

// fault is one that is being injected.
type fault struct {
	*campaign

	argument string
}

// crashPoint is the fault that kills a function at a point of its flow.
const crashPoint = "crash"

// replyLost begins the names of faults that need a point for themselves.
const replyLost = "reply lost"

// kinds are all faults by name.
var kinds = map[string]faultKind{
	crashPoint:       {kills: true, run: crash},
	"kill function":  {kills: true, run: killFunction},
	"pause function": {run: pauseFunction},
	"sweeps at once": {run: sweepsAtOnce},

	"redis paused":            {run: redisPaused},
	"redis killed":            {kills: true, losing: true, run: redisKilled},
	"redis empty":             {kills: true, losing: true, run: redisEmpty},
	"redis older":             {kills: true, losing: true, run: redisOlder},
	"redis key deleted":       {losing: true, run: redisKeyDeleted},
	"redis flushed":           {losing: true, run: redisFlushed},
	"redis out of memory":     {run: redisOutOfMemory},
	"redis takes no writes":   {run: redisTakesNoWrites},
	"redis busy":              {run: redisBusy},
	"redis forgets scripts":   {run: redisForgetsScripts},
	"nats paused":             {run: natsPaused},
	"nats killed":             {kills: true, losing: true, run: natsKilled},
	"nats store deleted":      {kills: true, losing: true, run: natsStoreDeleted},
	"stream deleted":          {losing: true, run: streamDeleted},
	"consumer deleted":        {run: consumerDeleted},
	"stream full":             {run: streamFull},
	"mysql paused":            {run: mysqlPaused},
	"mysql killed":            {kills: true, run: mysqlKilled},
	"mysql away":              {run: mysqlAway},
	"mysql read-only":         {run: mysqlReadOnly},
	"mysql few connections":   {run: mysqlFewConnections},
	"mysql other time zone":   {run: mysqlOtherTimeZone},
	"mysql short wait":        {run: mysqlShortWait},
	"reply lost: COMMIT":      {run: commitReplyLost},
	"reply lost: claim":       {run: claimReplyLost},
	"reply lost: PubAck":      {run: pubAckLost},
	"reply lost: settle":      {run: settleReplyLost},
	"reply lost: restock":     {run: restockReplyLost},
	"events again":            {run: eventsAgain},
	"way slow":                {run: waySlow},
	"way cut":                 {run: wayCut},
	"way mute":                {run: wayMute},
	"way stalls requests":     {run: wayStallsRequests},
	"way stalls replies":      {run: wayStallsReplies},
	"way refuses":             {run: wayRefuses},
	"way reset":               {run: wayReset},
	"gateway loses answers":   {run: gatewayLosesAnswers},
	"gateway cuts answers":    {run: gatewayCutsAnswers},
	"gateway refuses":         {run: gatewayRefuses},
	"gateway slow":            {run: gatewaySlow},
	"functions all at once":   {kills: true, run: functionsAllAtOnce},
	"mysql and consumer gone": {kills: true, run: mysqlAndConsumerGone},
}

// lasts waits a random time around a span.
func (f *fault) lasts(ctx context.Context, about time.Duration) {
	pause(ctx, about/2+time.Duration(f.rng.Int64N(int64(about))))
}

// function is the one that the argument names, else any of them.
func (f *fault) function() *stage.Function {
	if fn := f.stage.Functions[f.argument]; fn != nil {
		return fn
	}
	names := stage.Names()
	return f.stage.Functions[names[f.rng.IntN(len(names))]]
}

var errNotReached = errors.New("nobody came there")

// How long a point is waited for: one that was named must come, one that was
// chosen may be rare.
const (
	pointMax  = 15 * time.Second
	chosenMax = 4 * time.Second
)

// crash kills a function at the point that the argument names, else at the one
// that was struck least so far.
func crash(ctx context.Context, f *fault) (string, error) {
	at, err := f.point()
	if err != nil {
		return f.argument, err
	}
	within := chosenMax
	if f.argument != "" {
		within = pointMax
	}
	if !f.points.kill(ctx, at, within) {
		return at.String(), errNotReached
	}
	f.stage.Functions[at.Function].Back()
	return at.String(), ctx.Err()
}

// point reads "FUNCTION before STEP", "FUNCTION after STEP", or chooses.
func (f *fault) point() (Point, error) {
	if f.argument == "" {
		if list := f.points.list(f.rng); len(list) > 0 {
			return list[0], nil
		}
		return Point{}, errNotReached
	}
	for _, when := range []proxy.When{proxy.Before, proxy.After} {
		if function, step, ok := strings.Cut(f.argument, " "+string(when)+" "); ok {
			return Point{Function: function, Step: step, When: when}, nil
		}
	}
	return Point{}, fmt.Errorf("%q is no point", f.argument)
}

// lose cuts connections at a point so many times, and kills nobody.
func (f *fault) lose(ctx context.Context, at Point, times int) (string, error) {
	n := f.points.sever(ctx, at, times, pointMax)
	if n == 0 {
		return at.String(), errNotReached
	}
	return fmt.Sprintf("%s, %d times", at, n), nil
}

func commitReplyLost(ctx context.Context, f *fault) (string, error) {
	functions := []string{"order-consumer", "order-http", "expiry-cron"}
	return f.lose(ctx, Point{functions[f.rng.IntN(len(functions))], "COMMIT *", proxy.After}, 2)
}

func claimReplyLost(ctx context.Context, f *fault) (string, error) {
	return f.lose(ctx, Point{"seckill-http", "claim", proxy.After}, 4) // go-redis asks twice
}

func pubAckLost(ctx context.Context, f *fault) (string, error) {
	return f.lose(ctx, Point{"seckill-http", "publish CLAIMS", proxy.After}, 2)
}

func settleReplyLost(ctx context.Context, f *fault) (string, error) {
	return f.lose(ctx, Point{"order-consumer", "settle", proxy.After}, 3)
}

func restockReplyLost(ctx context.Context, f *fault) (string, error) {
	return f.lose(ctx, Point{"order-http", "restock", proxy.After}, 3)
}
