package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"seckill/shared/testenv"
)

// browserOf starts a browser for a test; without one the test is skipped, or
// fails if CI is true.
func browserOf(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	switch {
	case path != "":
	case os.Getenv("CI") == "true":
		t.Fatal("there is no chromium")
	default:
		t.Skip("there is no chromium: this test did not run")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(2*time.Minute))
	ctx, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return ctx
}

// visitor is a person with a browser of his own: no cookie and nothing stored.
type visitor struct {
	t       *testing.T
	ctx     context.Context //nolint:containedctx // chromedp's handle of a window
	base    string
	browser context.Context      //nolint:containedctx // chromedp's handle of a browser
	person  cdp.BrowserContextID // whose cookies and storage these are

	mu     sync.Mutex
	faults []string
}

// A visit is how somebody comes.
type visit struct {
	lang          string // what his browser prefers
	width, height int64  // 0: a desktop's
}

func newVisitor(t *testing.T, browser context.Context, base string, how visit) *visitor {
	t.Helper()
	v := &visitor{t: t, base: base}
	must(t, chromedp.Run(browser, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		ctx = cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
		v.person, err = target.CreateBrowserContext().Do(ctx)
		return err
	})))
	return v.window(browser, how)
}

// window opens a window of the visitor's own browser.
func (v *visitor) window(browser context.Context, how visit) *visitor {
	v.t.Helper()
	var id target.ID
	must(v.t, chromedp.Run(browser, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		ctx = cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
		id, err = target.CreateTarget("about:blank").WithBrowserContextID(v.person).WithNewWindow(true).Do(ctx)
		return err
	})))
	ctx, stop := chromedp.NewContext(browser, chromedp.WithTargetID(id))
	v.t.Cleanup(stop)
	v.browser, v.ctx = browser, ctx
	must(v.t, chromedp.Run(ctx)) // what runs first binds the window to its context
	return v.begin(how)          //nolint:contextcheck // the window has its own
}

// tab is another window of the same person.
func (v *visitor) tab(how visit) *visitor {
	v.t.Helper()
	return (&visitor{t: v.t, base: v.base, person: v.person}).window(v.browser, how)
}

func (v *visitor) begin(how visit) *visitor {
	v.t.Helper()
	chromedp.ListenTarget(v.ctx, func(event any) {
		fault := ""
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			fault = e.ExceptionDetails.Error()
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				fault = fmt.Sprint("console: ", e.Args)
			}
		case *log.EventEntryAdded:
			// A refusal is an HTTP status, which the browser notes as well.
			if e.Entry.Level == log.LevelError && e.Entry.Source != log.SourceNetwork {
				fault = fmt.Sprint("log: ", e.Entry.Text, " ", e.Entry.URL)
			}
		}
		if fault != "" {
			v.mu.Lock()
			v.faults = append(v.faults, fault)
			v.mu.Unlock()
		}
	})
	if how.lang == "" {
		how.lang = "en"
	}
	if how.width == 0 {
		how.width, how.height = 1280, 900
	}
	v.do(network.Enable(), log.Enable(), runtime.Enable(),
		network.SetExtraHTTPHeaders(network.Headers{"Accept-Language": how.lang}),
		chromedp.EmulateViewport(how.width, how.height))
	v.t.Cleanup(func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if len(v.faults) > 0 {
			v.t.Errorf("the browser complains: %q", v.faults)
		}
	})
	return v
}

// actMax bounds one step in the browser, for a slow machine.
const actMax = time.Minute

// do runs browser actions.
func (v *visitor) do(actions ...chromedp.Action) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, actMax)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		v.t.Fatalf("in the browser: %v; it shows:\n%s", err, v.shown())
	}
}

// shown is the page's text, for failures.
func (v *visitor) shown() string {
	ctx, cancel := context.WithTimeout(v.ctx, 5*time.Second)
	defer cancel()
	text := ""
	_ = chromedp.Run(ctx, chromedp.Evaluate(`location.href + "\n" + (document.getElementById("sale")?.dataset.step) + "\n" + document.body.innerText`, &text))
	return text
}

func (v *visitor) open(path string) {
	v.t.Helper()
	v.do(chromedp.Navigate(v.base + path))
}

// signIn goes by the page's own link.
func (v *visitor) signIn(name string) {
	v.t.Helper()
	v.do(chromedp.WaitVisible("#sign-in", chromedp.ByQuery), chromedp.Click("#sign-in", chromedp.ByQuery),
		chromedp.WaitVisible("#buyer", chromedp.ByQuery), chromedp.SetValue("#buyer", name, chromedp.ByQuery),
		chromedp.Click("button", chromedp.ByQuery), chromedp.WaitVisible("#sale", chromedp.ByQuery))
}

// signedIn is signed in without a page having asked for it.
func (v *visitor) signedIn(name, path string) *visitor {
	v.t.Helper()
	v.open("/dev/sign-in?back=" + path)
	v.do(chromedp.SetValue("#buyer", name, chromedp.ByQuery), chromedp.Click("button", chromedp.ByQuery),
		chromedp.WaitVisible("#sale", chromedp.ByQuery))
	return v
}

// reaches waits until the page is at a step of the buyer's way and says this.
func (v *visitor) reaches(step, says string) {
	v.t.Helper()
	v.do(chromedp.WaitVisible(`#sale[data-step="`+step+`"]`, chromedp.ByQuery))
	deadline := time.Now().Add(30 * time.Second)
	for text := ""; !strings.Contains(text, says); {
		if time.Now().After(deadline) {
			v.t.Fatalf("at %s the page says %q, want %q", step, text, says)
		}
		v.do(chromedp.TextContent("#say", &text, chromedp.ByQuery))
	}
}

// comesBackTo waits until a page that the browser kept is at a step. The
// driver does not see such a page's elements, only what its scripts see.
func (v *visitor) comesBackTo(step string) {
	v.t.Helper()
	testenv.Eventually(v.t, actMax, func() error {
		ctx, cancel := context.WithTimeout(v.ctx, 5*time.Second)
		defer cancel()
		at := ""
		err := chromedp.Run(ctx, chromedp.Evaluate(`document.getElementById("sale")?.dataset.step ?? ""`, &at))
		if err == nil && at != step {
			err = fmt.Errorf("at %q, want %q", at, step)
		}
		return err
	})
}

func (v *visitor) click(id string) {
	v.t.Helper()
	v.do(chromedp.WaitEnabled("#"+id, chromedp.ByQuery), chromedp.Click("#"+id, chromedp.ByQuery, chromedp.NodeVisible))
}

// cancel presses the button twice, as it asks for.
func (v *visitor) cancel() {
	v.t.Helper()
	v.click("cancel")
	v.click("cancel")
}

// pays goes through the provider's page, which tells the shop in some way.
func (v *visitor) pays(as, after string) {
	v.t.Helper()
	v.click("pay")
	v.do(chromedp.WaitVisible("#as", chromedp.ByQuery), chromedp.SetValue("#as", as, chromedp.ByQuery),
		chromedp.SetValue("#after", after, chromedp.ByQuery),
		chromedp.Click(`button[value="succeeded"]`, chromedp.ByQuery), chromedp.WaitVisible("#sale", chromedp.ByQuery))
}

func (v *visitor) reload() {
	v.t.Helper()
	v.do(chromedp.Reload(), chromedp.WaitVisible("#sale", chromedp.ByQuery))
}

// text returns what an element reads.
func (v *visitor) text(selector string) (text string) {
	v.t.Helper()
	v.do(chromedp.Text(selector, &text, chromedp.ByQuery))
	return strings.TrimSpace(text)
}

// looks keeps a picture of the page in the directory that TEST_SCREENSHOTS
// names, else in the test's own, and lets axe look for barriers, if AXE_CORE
// is the path of its script.
func (v *visitor) looks(name string) {
	v.t.Helper()
	dir := os.Getenv("TEST_SCREENSHOTS")
	if dir == "" {
		dir = v.t.TempDir()
	}
	must(v.t, os.MkdirAll(dir, 0o750))
	var picture []byte
	v.do(chromedp.FullScreenshot(&picture, 100))
	must(v.t, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600))
	v.accessible(name)
}

func (v *visitor) accessible(name string) {
	v.t.Helper()
	path := os.Getenv("AXE_CORE")
	if path == "" {
		if os.Getenv("CI") == "true" {
			v.t.Fatal("AXE_CORE is not set: nobody looked for barriers")
		}
		return
	}
	script, err := os.ReadFile(path)
	must(v.t, err)
	var result json.RawMessage
	v.do(chromedp.Evaluate(string(script)+"; undefined", nil), chromedp.Evaluate(
		`axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => ({id: v.id, help: v.help, nodes: v.nodes.map(n => n.html)})))`,
		&result, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if string(result) != "[]" {
		v.t.Errorf("%s: barriers: %s", name, result)
	}
}
