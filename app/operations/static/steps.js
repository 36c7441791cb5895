// A panel of steps that walks through a series of calls, one after the other.
//
// A step: { id, title, method, path, why, action, fields, explain(data, memory, request),
// extra(data, tools), isSettled(memory) }. `memory` is shared by a panel's steps. `explain` returns
// what is said, as text, or as halfway(text) when the step is not done by that. The body is what the
// fields hold unless there is a body(values). A step that is more than one call also has
// { route, perform(call, trace), stop, stopAction }: `perform` begins with `call`, sends by
// `trace.send(call, title)`, or by `trace.follow(call, signal, arrived)` what has an answer that goes
// on, tells by `trace.note(title, text)` and `trace.say(text)`, forgets both by `trace.restart()`,
// returns the last exchange, and throws an Unfinished when the service is not what ends it; `stop`
// ends it.

import { follow, prepared, send } from "./api.js";
import { csrfToken } from "./base/cookies.js";
import { el, replace } from "./base/dom.js";
import { outcome, showExchange } from "./exchange.js";
import { Stopped, Unfinished } from "./unfinished.js";

const MARKS = { done: "✓", settled: "✓", failed: "!", halfway: "…" };
const LAPSED = new Set(["auth.token_missing", "auth.token_expired"]);
const REFRESH_FIRST = "the access token has expired; “Refresh the tokens” gets a new one.";
const SIGN_IN_FIRST = "nobody is signed in.";

// What an `explain` returns when more is needed than what was answered.
export function halfway(text) {
  return { text, isHalfway: true };
}

// `notice` is an element above the steps; `isOpen` opens the first of them.
export function stepsPanel({ id, title, lead, steps, notice, isOpen }) {
  const memory = {};
  const progress = el("p", { class: "progress", role: "status" });
  const views = [];
  steps.forEach((step, index) => views.push(new StepView(step, index, memory, views, refresh)));

  function refresh() {
    views.forEach((view) => view.settle());
    const done = views.filter((view) => view.isDone).length;
    progress.textContent = `${done} of ${views.length} steps done`;
  }

  refresh();
  if (isOpen) views[0].open();
  document.addEventListener("exchange", refresh);
  return el(
    "section",
    { class: "panel", id, "aria-labelledby": `${id}-title` },
    el("header", { class: "panel-head" }, el("h2", { id: `${id}-title` }, title), el("p", {}, lead)),
    notice,
    progress,
    el("ol", { class: "steps" }, views.map((view) => view.node)),
  );
}

class StepView {
  constructor(step, index, memory, views, refresh) {
    Object.assign(this, { step, index, memory, views, refresh, isDone: false, isRunning: false, isStopped: false, carried: {} });
    this.said = el("p", { class: "said", role: "status" });
    this.extra = el("div", { class: "extra" });
    this.next = el("div", { class: "next" });
    this.exchange = el("div", { class: "exchange" });
    this.outcome = el("span", { class: "outcome" });
    this.mark = el("span", { class: "mark", "aria-hidden": "true" }, String(index + 1));
    this.state = el("span", { class: "visually-hidden" });
    this.form = this.#form();
    this.details = this.#details();
    this.node = el("li", { class: "step", id: `step-${step.id}`, "data-state": "todo" }, this.details);
  }

  // The toggle event comes later; what it fills in now keeps the page from growing under a reader.
  open() {
    this.details.open = true;
    this.#prepare();
  }

  // Opens the step as the next thing to do: with the keyboard in its first control.
  enter() {
    this.open();
    const empty = [...this.form.elements].find((control) => !control.value);
    (empty || this.form.elements[this.form.elements.length - 1]).focus({ preventScroll: true });
    this.node.scrollIntoView({ block: "start", behavior: "auto" });
  }

  // A step can be settled without having been run here: an earlier visit, or another step, did it.
  settle() {
    const { state } = this.node.dataset;
    const isSettled = Boolean(this.step.isSettled?.(this.memory));
    if (isSettled && !this.isDone) this.#become("settled", "already done");
    if (!isSettled && state === "settled") this.#become("todo", "");
  }

  #details() {
    const { step } = this;
    const summary = el(
      "summary",
      {},
      this.mark,
      el("h3", {}, step.title),
      el("code", { class: "route" }, el("b", {}, step.method), ` ${step.route || step.path}`),
      this.outcome,
      this.state,
    );
    const left = el("div", { class: "task" }, el("p", {}, step.why), this.form, this.said, this.extra, this.next);
    const details = el("details", {}, summary, el("div", { class: "body" }, left, this.exchange));
    details.addEventListener("toggle", () => details.open && this.#prepare());
    return details;
  }

  #form() {
    const fields = (this.step.fields || []).map((field) => this.#field(field));
    this.button = el("button", { class: "primary", type: "submit" }, this.step.action);
    const form = el("form", { novalidate: true, autocomplete: "on" }, fields, this.button);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!this.isRunning) this.#submit();
      else if (this.step.stop) this.#stop();
    });
    form.addEventListener("input", () => this.isRunning || this.#preview());
    return form;
  }

  #field({ name, label, hint, ...attributes }) {
    const id = `${this.step.id}-${name}`;
    const described = hint ? { "aria-describedby": `${id}-hint` } : {};
    return el(
      "div",
      { class: "field" },
      el("label", { for: id }, label),
      el("input", { id, name, type: "text", spellcheck: "false", ...described, ...attributes }),
      hint && el("p", { class: "hint", id: `${id}-hint` }, hint),
    );
  }

  // Carries over what another step has learnt since; what was typed here otherwise stays.
  #prepare() {
    for (const control of this.form.elements) {
      const known = this.memory[control.name];
      if (known && known !== this.carried[control.name]) {
        this.carried[control.name] = control.value = known;
      }
    }
    if (!this.shown) this.#preview();
  }

  #call() {
    const { method, path, fields, body } = this.step;
    const values = Object.fromEntries(new FormData(this.form));
    return { method, path: path.slice(1), body: body ? body(values) : fields && values };
  }

  #preview() {
    showExchange(this.exchange, [{ request: prepared(this.#call()), answer: null }]);
  }

  #submit() {
    const { perform, explain } = this.step;
    const call = this.#call();
    return perform ? this.#attempt((trace) => perform(call, trace), explain) : this.run(call);
  }

  // What is not begun yet cannot be ended by the step itself.
  #stop() {
    this.isStopped = true;
    this.step.stop();
  }

  // Sends a call, this step's own or one of its extra, and shows what came of it.
  run(call, explain = this.step.explain) {
    return this.#attempt((trace) => trace.send(call), explain);
  }

  async #attempt(work, explain) {
    if (this.isRunning) return null;
    this.isStopped = false;
    this.#busy(true);
    this.#say("", "");
    if (this.node.dataset.state === "failed") this.#become("todo", "");
    try {
      const { request, answer } = await work(this.#trace());
      const said = answer.ok ? explain(answer.json?.data, this.memory, request) : refused(answer);
      this.outcome.textContent = outcome(answer);
      this.#conclude(answer.ok, said);
      if (explain === this.step.explain) this.#showExtra(answer);
      return answer;
    } catch (error) {
      if (!(error instanceof Unfinished)) throw error;
      this.#giveUp(error);
      return null;
    } finally {
      this.#busy(false);
      this.refresh();
      this.#showNext();
    }
  }

  // Collects the parts of one attempt and shows them as they come.
  #trace() {
    const parts = [];
    const show = (part) => {
      parts.push(part);
      this.shown = parts;
      showExchange(this.exchange, parts);
    };
    return {
      restart: () => parts.splice(0),
      say: (text) => this.#say(text, ""),
      note: (title, note) => {
        if (this.isStopped) throw new Stopped("Stopped.");
        show({ title, note });
      },
      send: async (call, title) => {
        const exchange = await send(call);
        show({ title, ...exchange });
        return exchange;
      },
      follow: (call, signal, arrived) =>
        follow(call, signal, (exchange, text) => {
          parts.splice(0);
          show(exchange);
          if (exchange.answer.ok) arrived(text);
        }),
    };
  }

  #conclude(isGood, said) {
    if (said.isHalfway) {
      this.#say(said.text, "is-halfway");
      this.#become("halfway", "not done yet");
      return;
    }
    this.#say(said, isGood ? "is-good" : "is-bad");
    this.#become(isGood ? "done" : "failed", isGood ? "done" : "refused");
  }

  #giveUp(error) {
    this.outcome.textContent = "";
    this.#say(error.message, error instanceof Stopped ? "" : "is-bad");
    if (!(error instanceof Stopped)) this.#become("failed", "not done");
  }

  #say(text, kind) {
    this.said.className = `said ${kind}`;
    this.said.textContent = text;
  }

  #showExtra(answer) {
    const tools = { id: this.step.id, run: (call, explain) => this.run(call, explain) };
    replace(this.extra, answer.ok && this.step.extra ? this.step.extra(answer.json.data, tools) : null);
    if (this.node.dataset.state !== "halfway") return;
    // What stands above the first control belongs to it, and stays in view as far as there is room.
    this.extra.querySelector("input")?.focus({ preventScroll: true });
    this.extra.scrollIntoView({ block: "nearest", behavior: "auto" });
  }

  #showNext() {
    const next = this.views.slice(this.index + 1).find((view) => view.node.dataset.state !== "settled");
    if (!this.isDone || !next) return replace(this.next);
    const go = () => {
      this.details.open = false;
      next.enter();
    };
    const button = el("button", { type: "button", class: "secondary", click: go }, `Next: ${next.step.title}`);
    return replace(this.next, button);
  }

  #become(state, words) {
    this.isDone = state === "done" || state === "settled";
    this.node.dataset.state = state;
    this.state.textContent = words && `, ${words}`;
    this.mark.textContent = MARKS[state] || String(this.index + 1);
    if (state === "settled" || state === "todo") this.outcome.textContent = words;
  }

  #busy(isBusy) {
    this.isRunning = isBusy;
    this.form.setAttribute("aria-busy", String(isBusy));
    const { action, stop, stopAction } = this.step;
    this.button.setAttribute("aria-disabled", String(isBusy && !stop));
    this.button.textContent = isBusy && stop ? stopAction : action;
  }
}

function refused(answer) {
  if (answer.failure) return `The service did not answer: ${answer.failure}`;
  const { code, msg } = answer.json || {};
  if (LAPSED.has(code)) return `Refused with ${code}: ${csrfToken() ? REFRESH_FIRST : SIGN_IN_FIRST}`;
  return code ? `Refused with ${code}: ${msg}` : `Refused with ${answer.status}.`;
}
