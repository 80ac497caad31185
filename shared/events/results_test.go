package events_test

import (
	"encoding/json"
	"slices"
	"testing"

	"seckill/shared/events"
	"seckill/shared/seckill"
)

func TestResultsComeBack(t *testing.T) {
	t.Parallel()
	all := []seckill.EventResult{
		{ID: "a", Verdict: seckill.VerdictApplied},
		{ID: `b"\` + "\n世", Verdict: seckill.VerdictPoison, Reason: "it said \"no\"\x01"},
		{Verdict: seckill.VerdictRetry, Reason: "not \xff UTF-8"},
	}
	body := events.AppendResults(nil, all)
	if !json.Valid(body) {
		t.Fatalf("not JSON: %s", body)
	}
	got, err := events.ReadResults(body, len(all))
	all[2].Reason = "not \ufffd UTF-8"
	if err != nil || !slices.Equal(got, all) {
		t.Errorf("%+v (%v)", got, err)
	}
	if _, err := events.ReadResults(body, 2); err == nil {
		t.Error("three results for two events are taken")
	}
}
