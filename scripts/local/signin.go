package main

import (
	"fmt"
	"html"
	"net/http"
	"strings"

	"seckill/shared/identity"
	"seckill/shared/seckill"
)

// tokenCookie holds a buyer's token. Scripts cannot read it and other sites
// cannot make a browser send it, so the page needs to know nothing of tokens.
const tokenCookie = "seckill_token"

// signInPath is where the page sends a buyer who has no token.
const signInPath = "/dev/sign-in"

// withToken turns the cookie into the header that functions read, as a shop's
// own gateway does in front of them.
func withToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cookie, err := r.Cookie(tokenCookie); err == nil && r.Header["Authorization"] == nil {
			r.Header.Set("Authorization", "Bearer "+cookie.Value)
		}
		next.ServeHTTP(w, r)
	})
}

const signInPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sign in</title>
<main>
<h1>Sign in · 登录</h1>
<p>For trying out: whoever asks is believed.</p>
<form method="post" action="%s">
<input type="hidden" name="back" value="%s">
<p><label for="buyer">Name · 名字</label> <input id="buyer" name="buyer" value="u1" required pattern="[A-Za-z0-9._@:\-]{1,64}" autocomplete="username"></p>
<p><button>Sign in · 登录</button></p>
</form>
</main>
</html>
`

// signIn answers GET with a form, and POST by believing it. Only local has it.
func signIn(secret string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		back := r.FormValue("back")
		if !strings.HasPrefix(back, "/items") {
			back = "/items/" + demo
		}
		w.Header().Set("Cache-Control", "no-store")
		if r.Method != http.MethodPost {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprintf(w, signInPage, signInPath, html.EscapeString(back))
			return
		}
		buyer := r.FormValue("buyer")
		if !seckill.ValidBuyer(buyer) {
			http.Error(w, "buyer: must be 1 to 64 of A-Z, a-z, 0-9 and . _ @ : -", http.StatusBadRequest)
			return
		}
		signed, err := identity.Sign(secret, buyer, demoLength)
		if err != nil {
			http.Error(w, "sign a token: "+err.Error(), http.StatusInternalServerError)
			return
		}
		http.SetCookie(w, &http.Cookie{
			Name: tokenCookie, Value: signed, Path: "/", MaxAge: int(demoLength.Seconds()),
			HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
		})
		http.Redirect(w, r, back, http.StatusSeeOther)
	}
}
