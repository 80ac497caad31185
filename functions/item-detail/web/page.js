"use strict";
// The buyer's side of a sale. What is true is known by the server alone: this
// asks, shows the answer, and remembers only what it asked, so that a reload,
// a second tab or a lost answer goes on where the buyer was.
(() => {
  const $ = (id) => document.getElementById(id);
  const section = $("sale"), of = section.dataset, sale = of.sale;
  const words = {};
  for (const p of $("texts").children) words[p.dataset.say] = p.textContent;

  // --- what is remembered ---------------------------------------------------

  const place = "seckill:" + sale;
  let fallback = null; // where a browser keeps nothing for us
  const recall = () => {
    try { return JSON.parse(localStorage.getItem(place)) || {}; } catch { return fallback || {}; }
  };
  const remember = (attempt) => {
    fallback = attempt;
    try { localStorage.setItem(place, JSON.stringify(attempt)); } catch { /* for this page only, then */ }
  };
  const forget = () => remember({});

  // --- time -----------------------------------------------------------------

  // The server's clock is the one that counts: its offset is taken from the
  // quickest of some answers, and again now and then.
  let offset = 0, quickest = Infinity;
  const now = () => Date.now() + offset;
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
  const setClock = async () => {
    quickest *= 2; // an old measurement is worth less
    for (let i = 0; i < 3; i++) {
      const sent = performance.now();
      try {
        const { now_ms } = await (await fetch(of.clock, { cache: "no-store" })).json();
        const took = performance.now() - sent;
        if (took < quickest) {
          quickest = took;
          offset = now_ms + took / 2 - Date.now();
        }
      } catch { /* the next answer will do */ }
      await sleep(100);
    }
  };
  const span = (ms) => {
    const s = Math.max(0, Math.ceil(ms / 1000)), two = (n) => String(n).padStart(2, "0");
    const days = Math.floor(s / 86400), rest = `${two(Math.floor(s / 3600) % 24)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
    return days ? `${days} × 24:00:00 + ${rest}` : rest;
  };
  const money = (minor, currency) => {
    const digits = new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits;
    return `${(minor / 10 ** digits).toFixed(digits)} ${currency}`;
  };

  // --- what is shown --------------------------------------------------------

  let step = "", order = null, sure = false;
  const say = (name, values = {}) => {
    const text = (words[name] || words.unavailable).replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
    if ($("say").textContent !== text) $("say").textContent = text;
  };
  const busy = ["preparing", "claiming", "held", "paying", "cancelling"];
  const again = ["cancelled", "expired", "refunded", "rejected", "released"];
  const state = () => {
    if (now() >= of.closes) return "closed";
    if (now() < of.opens) return "scheduled";
    return of.state === "paused" ? "paused" : "open";
  };
  // show goes to a step of the buyer's way and says what it means.
  const show = (next, name = next, values = {}) => {
    if (step !== next) sure = false;
    step = next;
    section.dataset.step = next;
    say(name, values);
    draw();
  };
  const draw = () => {
    const open = state() === "open", mine = ["unpaid", "paid", "paying", "cancelling"].includes(step);
    const buy = $("buy"), cancel = $("cancel"), choose = $("choose");
    buy.hidden = mine || ["held", "refunding", "sign-in"].includes(step);
    buy.disabled = busy.includes(step) || !open;
    buy.textContent = words[again.includes(step) ? "buy_again" : step === "unavailable" ? "try_again" : "buy"];
    $("pay").hidden = step !== "unpaid";
    cancel.hidden = step !== "unpaid" && step !== "paid";
    cancel.textContent = words[sure ? "sure" : step === "paid" ? "refund" : "cancel"];
    if (choose) choose.hidden = buy.hidden;
    if ($("sign-in")) $("sign-in").hidden = step !== "sign-in";
    $("order").hidden = !order;
    for (const id of ["time-left-line", "time-left-name"]) $(id).hidden = step !== "unpaid";
  };
  const stock = (text) => {
    of.stock = text;
    $("stock").textContent = text === "" ? words.unknown : text;
    $("left").value = Number(text);
  };

  // Every half second: countdowns, and what changes by the clock alone.
  let idleState = "";
  const tick = () => {
    const is = state();
    $("countdown").textContent = is === "scheduled" ? words.opens_in.replace("{time}", span(of.opens - now()))
      : is === "closed" ? "" : words.closes_in.replace("{time}", span(of.closes - now()));
    if (order?.status === "unpaid") $("time-left").textContent = span(Date.parse(order.pay_by) - now());
    if (is !== idleState) {
      idleState = is;
      if (step === "" || step === "ready") idle();
      draw();
    }
  };
  const idle = () => {
    order = null;
    show("ready", { scheduled: "wait", paused: "paused", closed: "closed" }[state()]
      || (of.stock === "0" ? "sold_out" : "ready"));
  };

  // --- asking ---------------------------------------------------------------

  const pause = (tries, retryAfter) => {
    const wait = Math.min(250 * 2 ** tries, 8000);
    const asked = Number(retryAfter) * 1000 || 0; // seconds; a date is not sent here
    return sleep(asked + wait * (0.5 + Math.random() / 2));
  };
  // ask sends a request until it is answered: 429, 503 and no answer mean that
  // nobody knows yet, so the same request is sent again. It gives up after
  // patience; null says that the outcome is unknown.
  const patience = 90000;
  const ask = async (path, options = {}, retrying = () => {}) => {
    const began = performance.now();
    for (let tries = 0; performance.now() - began < patience; tries++) {
      let answer = null, body = {};
      try {
        const end = new AbortController(), timer = setTimeout(() => end.abort(), 40000);
        try {
          answer = await fetch(path, {
            credentials: "same-origin", cache: "no-store", ...options, signal: end.signal,
            headers: { Accept: "application/json", ...options.headers },
          });
          body = await answer.json();
        } finally { clearTimeout(timer); }
      } catch { /* cut off, or not JSON: somebody in between spoke */ }
      const status = answer?.status ?? 0;
      if (status >= 200 && status < 500 && status !== 429 && status !== 408 && (body.code || answer.ok && Object.keys(body).length)) {
        return { status, body, answer };
      }
      if (body.code === "paused") return { status, body, answer };
      retrying();
      await pause(Math.min(tries, 6), answer?.headers.get("Retry-After"));
    }
    return null;
  };
  const unticketed = (code) => /^(ticket|work)_/.test(code ?? "");
  const refused = (told) => {
    if (!told) return show("unavailable");
    const code = told.body.code;
    if (code === "unauthenticated") return show("sign-in", "unauthenticated");
    if (unticketed(code)) return show("refused", "entry");
    show("refused", words[code] ? code : "unavailable");
  };

  // --- the way --------------------------------------------------------------

  const claims = `/sales/${sale}/claims`;
  const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");

  // The entry ticket of this buyer, which the open sale gives to who asks, or
  // to who solves its puzzle.
  let ticket = "";
  const json = { "Content-Type": "application/json" };
  const enter = async () => {
    const door = `/sales/${sale}/ticket`, retrying = () => say("retrying");
    show("preparing");
    const told = await ask(door, { method: "POST" }, retrying);
    if (!told?.body.challenge) return told;
    // A page that came over plain http from elsewhere may not compute hashes.
    if (!crypto.subtle) return { body: { code: "insecure" } };
    const altcha = await solve(told.body);
    return ask(door, { method: "POST", headers: json, body: JSON.stringify({ altcha }) }, retrying);
  };
  // solve finds the number whose hash after the salt is the challenge; "" if
  // there is none.
  const solve = async ({ algorithm, challenge, salt, signature, maxnumber }) => {
    const wanted = challenge.match(/../g).map((hex) => parseInt(hex, 16)), text = new TextEncoder();
    const fits = (sum) => wanted.every((byte, i) => byte === sum[i]);
    for (let from = 0; from <= maxnumber; from += 256) {
      const sums = await Promise.all(Array.from({ length: 256 }, (_, i) => crypto.subtle.digest("SHA-256", text.encode(salt + (from + i)))));
      const found = sums.findIndex((sum) => fits(new Uint8Array(sum)));
      if (found >= 0) return btoa(JSON.stringify({ algorithm, challenge, number: from + found, salt, signature }));
    }
    return "";
  };

  // claim makes the attempt that is remembered, with its one key, until there
  // is an answer. A new attempt is known to need a ticket; one that went before
  // may have been accepted, which is told without one.
  const claim = async (entering = false) => {
    const attempt = recall();
    show("claiming");
    for (let tries = 0; ; tries++) {
      const told = entering && !ticket ? await enter() : await ask(claims, {
        method: "POST", body: JSON.stringify({ quantity: attempt.quantity }),
        headers: { ...json, "Idempotency-Key": attempt.key, ...ticket && { "Entry-Ticket": ticket } },
      }, () => say("retrying"));
      if (told?.body.ticket) {
        ticket = told.body.ticket;
        show("claiming");
        continue;
      }
      if (unticketed(told?.body.code) && tries < 5) {
        ticket = "";
        entering = true;
        continue;
      }
      // An order whose time ran out is held until the next sweep takes it.
      if (told?.status === 200 && told.body.claim === attempt.old && tries < 15) {
        say("retrying");
        attempt.key = newKey();
        remember(attempt);
        await pause(3);
        continue;
      }
      if (told && told.status < 300 && told.body.claim) {
        remember({ key: attempt.key, quantity: attempt.quantity, claim: told.body.claim });
        return settle(told.body);
      }
      // Our clocks differ by a little: who pressed in time is asked for again.
      const early = told?.body.code === "not_open" ? Date.parse(told.body.opens_at) - now() : Infinity;
      if (early > 3000) {
        if (told && told.body.code !== "unauthenticated") forget();
        return refused(told);
      }
      await sleep(Math.max(early, 100));
    }
  };

  // settle shows what became of a claim, and waits for it if nobody knows yet.
  const settle = (c) => {
    if (c.status === "reserved") {
      show("held");
      return awaitResult(c.claim);
    }
    if (c.status === "rejected") {
      forget();
      return show("rejected", words["rejected_" + c.reason] ? "rejected_" + c.reason : "rejected");
    }
    return load(c.claim);
  };
  const awaitResult = (id) => listen(`${claims}/${id}`, "claim",
    (c) => c.status === "reserved" ? false : (settle(c), true),
    async () => {
      const told = await ask(`${claims}/${id}`, { headers: { Prefer: "wait=20" } });
      if (told?.status === 404) forget();
      if (!told || told.status >= 300) return refused(told);
      settle(told.body);
    });

  // listen takes a stream's documents until one of them is the last. If the
  // stream cannot be had, it goes on without.
  let stream = null;
  const listen = (path, name, take, without) => {
    stream?.close();
    const source = stream = new EventSource(path);
    let failures = 0;
    const end = (next) => { source.close(); if (stream === source) { stream = null; next?.(); } };
    source.addEventListener(name, (event) => {
      failures = 0;
      if (stream === source && take(JSON.parse(event.data))) source.close();
    });
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED || ++failures > 3) end(without);
    };
  };

  // load shows the order as it is and follows it.
  const load = async (id) => {
    let told = null;
    for (let tries = 0; tries < 20; tries++) {
      told = await ask(`/orders/${id}`);
      if (told?.body.code !== "order_pending") break;
      show("held");
      await pause(2);
    }
    if (told?.status === 404) forget();
    if (!told || told.status >= 300) return told?.status === 404 ? idle() : refused(told);
    if (!showOrder(told.body)) follow(id);
  };
  const follow = (id) => listen(`/orders/${id}`, "order", showOrder, async () => {
    await sleep(3000);
    load(id);
  });
  // showOrder tells what the order is; true if that is its end.
  const showOrder = (o) => {
    order = o;
    $("order-id").textContent = o.id;
    $("order-quantity").textContent = o.quantity;
    $("order-amount").textContent = money(o.amount_minor, o.currency);
    const back = o.refund && { amount: money(o.refund.amount_minor, o.currency) };
    const due = o.refund?.status === "due";
    if (o.status === "rejected") settle({ status: "rejected", reason: o.reason });
    else if (o.status === "paid" && back) show("paid", due ? "twice_due" : "twice_done", back);
    else if (back && !["refunding", "refunded"].includes(o.status)) show(o.status, due ? "late_due" : "late_done", back);
    else if (!["paying", "cancelling"].includes(step) || o.status !== "unpaid") show(o.status, o.status, back || {});
    tick();
    // Money may yet come from who went to pay.
    return o.status === "refunded" || again.includes(o.status) && !due && (back || !recall().paying);
  };

  const pay = async () => {
    show("paying");
    const told = await ask(`/orders/${order.id}/payment`, { method: "POST" }, () => say("retrying"));
    if (told?.status === 200 && told.body.pay_url) {
      remember({ ...recall(), paying: true });
      return location.assign(told.body.pay_url);
    }
    step = "";
    load(order.id);
  };
  const cancel = async () => {
    if (!sure) { // one slip of a thumb should not give a unit away
      sure = true;
      return draw();
    }
    stream?.close();
    show("cancelling");
    // Who leaves the page meanwhile has cancelled all the same.
    await ask(`/orders/${order.id}/cancel`, { method: "POST", keepalive: true }, () => say("retrying"));
    step = "";
    load(order.id);
  };
  const buy = () => {
    const attempt = recall();
    const quantity = Number($("quantity")?.value || 1);
    const old = order?.status === "expired" ? order.id : undefined;
    stream?.close();
    order = null;
    // An attempt whose outcome is unknown goes on with its key.
    const fresh = !attempt.key || attempt.claim;
    if (fresh) remember({ key: newKey(), quantity, old });
    claim(fresh && of.ticket !== "");
  };
  // resume goes on where the buyer was.
  const resume = async () => {
    const attempt = recall();
    if (!attempt.key) return idle();
    if (!attempt.claim) return claim();
    const told = await ask(`${claims}/${attempt.claim}`);
    if (told?.status === 200) return settle(told.body);
    if (told?.status === 404) return load(attempt.claim); // the sale may be long over
    refused(told);
  };

  // --- the sale's own news --------------------------------------------------

  const refresh = async () => {
    if (document.hidden || state() === "closed") return;
    try {
      const answer = await fetch(of.item, { headers: { Accept: "application/json" } });
      const found = (await answer.json()).sales.find((s) => s.id === sale);
      if (!found) return;
      of.state = found.state;
      of.ticket = found.ticket ?? "";
      of.opens = Date.parse(found.opens_at);
      of.closes = Date.parse(found.closes_at);
      const was = of.stock;
      stock(found.stock === null ? "" : String(found.stock));
      if (["ready", "refused"].includes(step) && (was === "0") !== (of.stock === "0")) idle();
      tick();
    } catch { /* the numbers that stand are a little older, then */ }
  };
  const every = async (ms, work) => {
    for (;;) {
      await sleep(ms * (0.75 + Math.random() / 2));
      await work();
    }
  };

  for (const time of document.querySelectorAll("time")) {
    time.textContent = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "medium" })
      .format(new Date(time.dateTime));
  }
  $("buy").addEventListener("click", buy);
  $("pay").addEventListener("click", pay);
  $("cancel").addEventListener("click", cancel);
  addEventListener("storage", (event) => { // another tab of this buyer went on
    if (event.key === place && !busy.includes(step)) {
      stream?.close();
      resume();
    }
  });
  addEventListener("pageshow", (event) => { // back from the provider
    if (!event.persisted) return;
    step = "";
    resume();
  });
  setClock();
  tick();
  setInterval(tick, 500);
  every(60000, setClock);
  every(2000, refresh);
  resume();
})();
