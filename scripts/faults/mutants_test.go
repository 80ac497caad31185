package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"seckill/scripts/faults/campaign"
	"seckill/scripts/faults/stage"
)

// TestMutantsAreNoticed breaks the product in a way that a bench must notice,
// and plays the course of events that shows it: as the product is it passes.
func TestMutantsAreNoticed(t *testing.T) {
	t.Parallel()
	built, err := programs()
	require(t, err)
	for _, s := range campaign.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			found, err := s.Play(t.Context(), built, "", time.Minute)
			require(t, err)
			if len(found) > 0 {
				t.Fatalf("the product as it is: %v", found)
			}
			mutated, tool := maps.Clone(built), ""
			if len(s.Functions) > 0 {
				changed, err := stage.Build(t.Context(), s.Functions, s.Mutants...)
				require(t, err)
				maps.Copy(mutated, changed)
			}
			if s.Schema {
				tool, err = stage.BuildTool(t.Context(), s.Mutants...)
				require(t, err)
			}
			found, err = s.Play(t.Context(), mutated, tool, 10*time.Second)
			require(t, err)
			if !slices.ContainsFunc(found, func(v campaign.Violation) bool { return v.Law == s.Law }) {
				t.Fatalf("the mutant does not break %q: %v", s.Law, found)
			}
			t.Logf("noticed: %v", found)
		})
	}
}

// TestAMutantThatChangesNothingIsRefused: when the text is gone, a mutant must
// be written anew.
func TestAMutantThatChangesNothingIsRefused(t *testing.T) {
	t.Parallel()
	_, err := stage.Build(t.Context(), []string{"nats-bridge"}, stage.Mutant{File: "lua/restock.lua", Old: "no such text", New: ""})
	if err == nil {
		t.Fatal("it was built")
	}
}
