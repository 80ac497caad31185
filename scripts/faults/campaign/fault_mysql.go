package campaign

import (
	"context"
	"time"

	"seckill/scripts/faults/proxy"
)

func mysqlPaused(ctx context.Context, f *fault) (string, error) {
	f.stage.MySQL.Pause()
	defer f.stage.MySQL.Resume()
	f.lasts(ctx, 1500*time.Millisecond)
	return "", nil
}

func mysqlKilled(ctx context.Context, f *fault) (string, error) {
	f.stage.MySQL.Kill()
	f.lasts(ctx, 500*time.Millisecond)
	return "", f.stage.MySQL.Start()
}

func mysqlAway(ctx context.Context, f *fault) (string, error) {
	for _, fn := range f.stage.Functions {
		fn.MySQL.Set(proxy.Trouble{Refuse: true})
		fn.MySQL.Reset()
		defer fn.MySQL.Heal()
	}
	f.lasts(ctx, 2*time.Second)
	return "", nil
}

// server has a setting of MySQL changed for a while; with fresh, for all
// connections, because they are opened anew.
func (f *fault) server(ctx context.Context, setting, back string, fresh bool) error {
	reopen := func() {
		for _, fn := range f.stage.Functions {
			if fresh {
				fn.MySQL.Reset()
			}
		}
	}
	if _, err := f.stage.DB.ExecContext(ctx, "SET GLOBAL "+setting); err != nil {
		return err
	}
	reopen()
	f.lasts(ctx, 2*time.Second)
	_, err := f.stage.DB.ExecContext(ctx, "SET GLOBAL "+back)
	reopen()
	return err
}

func mysqlReadOnly(ctx context.Context, f *fault) (string, error) {
	return "", f.server(ctx, "read_only = 1", "read_only = 0", false)
}

func mysqlFewConnections(ctx context.Context, f *fault) (string, error) {
	return "", f.server(ctx, "max_connections = 10", "max_connections = 500", true)
}

func mysqlOtherTimeZone(ctx context.Context, f *fault) (string, error) {
	return "", f.server(ctx, "time_zone = '-11:00'", "time_zone = '+08:00'", true)
}

func mysqlShortWait(ctx context.Context, f *fault) (string, error) {
	return "", f.server(ctx, "wait_timeout = 1", "wait_timeout = 28800", true)
}
