package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stub stands for a program: it writes down how it was called.
const stub = `#!/bin/sh
echo "$(basename "$0") $*" >>"$CALLS"
`

// prewarm runs scripts/prewarm among stubs and returns what it called. The
// sale opens at an instant.
func prewarm(t *testing.T, opens time.Time, args ...string) (calls string, err error) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"kubectl", "faas-cli"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	status := fmt.Sprintf("#!/bin/sh\necho '{\n  \"id\": \"demo\",\n  \"opens_at\": \"%s\",\n  \"closes_at\": \"2099-01-01T00:00:00Z\"\n}'\n", opens.Format(time.RFC3339))
	if err := os.WriteFile(filepath.Join(dir, "seckillctl"), []byte(status), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(repository, "scripts/prewarm"), args...)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "CALLS="+filepath.Join(dir, "calls"), "SECKILLCTL=seckillctl")
	out, err := cmd.CombinedOutput()
	t.Logf("%v: %s", args, out)
	data, _ := os.ReadFile(filepath.Join(dir, "calls")) // no file: nothing was called
	return string(data), err
}

func TestPrewarm(t *testing.T) {
	t.Parallel()
	// An instant in a time zone, that a lead of ten minutes takes to the day before.
	opens := time.Date(2098, 11, 11, 8, 5, 0, 0, time.FixedZone("CST", 8*3600))
	for _, c := range []struct {
		name  string
		opens time.Time
		args  []string
		want  []string
	}{
		{"schedules both ways", opens, []string{"demo"}, []string{
			"kubectl apply -k k8s/prewarm/knative",
			"kubectl -n seckill set env cronjob/prewarm-up --containers seckill-http MIN=20",
			`kubectl -n seckill patch cronjob prewarm-up --type merge -p {"spec":{"suspend":false,"schedule":"55 23 10 11 *"}}`,
			`kubectl -n seckill patch cronjob prewarm-down --type merge -p {"spec":{"suspend":false,"schedule":"35 0 11 11 *"}}`,
		}},
		{"takes numbers", opens, []string{"--min", "40", "demo", "--lead", "5", "--hold", "60"}, []string{
			"MIN=40", `"schedule":"0 0 11 11 *"`, `"schedule":"5 1 11 11 *"`,
		}},
		{"comes late", time.Now().Add(time.Minute), []string{"demo"}, []string{
			"kubectl -n seckill create job --from=cronjob/prewarm-up prewarm-up-", "patch cronjob prewarm-down",
		}},
		{"now", opens, []string{"--down"}, []string{"create job --from=cronjob/prewarm-down prewarm-down-"}},
		{"older Knative", opens, []string{"--up", "--service", "--min", "7"}, []string{
			`kubectl -n seckill patch ksvc seckill-http --type merge -p {"spec":{"template":{"metadata":{"annotations":{"autoscaling.knative.dev/min-scale":"7","autoscaling.knative.dev/activation-scale":"7"}}}}}`,
		}},
		{"OpenFaaS", opens, []string{"--openfaas", "demo"}, []string{
			"kubectl apply -k k8s/prewarm/openfaas", "kubectl -n openfaas set env cronjob/prewarm-up --containers seckill-http MIN=5",
		}},
		{"OpenFaaS Standard", opens, []string{"--openfaas", "--up", "--label", "--min", "20"}, []string{
			"faas-cli deploy -f stack.yml --filter seckill-http --label com.openfaas.scale.min=20",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			calls, err := prewarm(t, c.opens, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(calls, want) {
					t.Errorf("no call %q; calls:\n%s", want, calls)
				}
			}
		})
	}
}

func TestPrewarmRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"demo", "--min", "x"}, {"demo", "--min", "1"}, {"demo", "--what"}, {"demo", "--label"}} {
		if calls, err := prewarm(t, time.Now(), args...); err == nil || calls != "" {
			t.Errorf("%v: error %v, calls %q; want an error and no call", args, err, calls)
		}
	}
}
