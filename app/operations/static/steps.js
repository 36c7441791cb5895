// A panel of steps that walks through a series of calls, one after the other.
//
// A step: { id, title, method, path, why, action, fields(memory), call(values), explain(exchange,
// memory), extra(exchange, tools), isSettled(memory) }. `memory` is shared by a panel's steps.

import { prepared, send } from "./api.js";
import { el, replace } from "./dom.js";
import { outcome, showExchange } from "./exchange.js";

export function stepsPanel({ id, title, lead, steps }) {
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
  views[0].open();
  return el(
    "section",
    { class: "panel", id, "aria-labelledby": `${id}-title` },
    el("header", { class: "panel-head" }, el("h2", { id: `${id}-title` }, title), el("p", {}, lead)),
    progress,
    el("ol", { class: "steps" }, views.map((view) => view.node)),
  );
}

class StepView {
  constructor(step, index, memory, views, refresh) {
    Object.assign(this, { step, index, memory, views, refresh, isDone: false, isRunning: false, carried: {} });
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

  open() {
    this.details.open = true;
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
    const isSettled = !this.isDone && this.step.isSettled?.(this.memory);
    if (isSettled) this.#become("settled", "already done");
  }

  #details() {
    const { step } = this;
    const summary = el(
      "summary",
      {},
      this.mark,
      el("h3", {}, step.title),
      el("code", { class: "route" }, el("b", {}, step.method), ` ${step.path}`),
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
      this.run(this.#call());
    });
    form.addEventListener("input", () => this.#preview());
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
    const values = Object.fromEntries(new FormData(this.form));
    const { method, path } = this.step;
    return { method, path: path.slice(1), body: this.step.fields ? values : undefined };
  }

  #preview() {
    showExchange(this.exchange, { request: prepared(this.#call()), answer: null });
  }

  // Sends a call, this step's own or one of its extra, and shows what came of it.
  async run(call, explain = this.step.explain) {
    if (this.isRunning) return null;
    this.#busy(true);
    const shown = await send(call);
    this.#busy(false);
    this.shown = shown;
    showExchange(this.exchange, shown);
    this.outcome.textContent = outcome(shown.answer);
    const { answer } = shown;
    this.said.className = `said ${answer.ok ? "is-good" : "is-bad"}`;
    this.said.textContent = answer.ok ? explain(answer.json.data, this.memory, call) : refused(answer);
    this.#become(answer.ok ? "done" : "failed", answer.ok ? "done" : "refused");
    if (explain === this.step.explain) this.#showExtra(answer);
    this.refresh();
    this.#showNext();
    return answer;
  }

  #showExtra(answer) {
    const tools = { run: (call, explain) => this.run(call, explain) };
    replace(this.extra, answer.ok && this.step.extra ? this.step.extra(answer.json.data, tools) : null);
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
    this.isDone = state !== "failed";
    this.node.dataset.state = state;
    this.state.textContent = `, ${words}`;
    this.mark.textContent = this.isDone ? "✓" : "!";
    if (state === "settled") this.outcome.textContent = words;
  }

  #busy(isBusy) {
    this.isRunning = isBusy;
    this.form.setAttribute("aria-busy", String(isBusy));
    this.button.setAttribute("aria-disabled", String(isBusy));
  }
}

function refused(answer) {
  if (answer.failure) return `The service did not answer: ${answer.failure}`;
  const { code, msg } = answer.json || {};
  return code ? `Refused with ${code}: ${msg}` : `Refused with ${answer.status}.`;
}
