// @ts-check
// Forms: checked on submit and then while typing, sent once at a time, refusals shown where they
// belong.

import { Refusal } from "./api.js";
import { el } from "./dom.js";
import { explained, sentences, spoken } from "./errors.js";
import { hasText, t } from "./i18n.js";
import { clearProblem, showProblem, showProblemIn } from "./problem.js";

/** @import { Child } from "./dom.js" */

/** The service names the member of the body that it does not take, and says why. */
const COMPLAINT = /^invalid JSON request body: (\w+): ([^;]*)/;

/**
 * @typedef {object} Handling
 * @property {(values: Record<string, string>) => Promise<void>} submit
 * @property {string} busy what the button says meanwhile
 * @property {Record<string, (value: string) => string>} [checks] by field: what is wrong with it,
 *   or ""
 * @property {Record<string, string>} [fields] by code: the field at which a refusal is shown
 * @property {Record<string, string>} [own] by code: the key of a text that fits better here
 * @property {(refusal: Refusal) => HTMLElement[]} [actions] what can be done about a refusal
 * @property {(refusal: Refusal) => boolean} [taken] whether a refusal has been dealt with
 */

/** What takes no longer is not worth a word. */
const INSTANT_MS = 150;

/** What buttons wait for. @type {Set<{ begin: () => void, end: () => void }>} */
const waits = new Set();

/**
 * A form that was sent before anything was there to send it: the texts may still be on their way.
 * @type {HTMLFormElement | null}
 */
let early = null;
document.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (event.defaultPrevented || form.method === "dialog") return;
  event.preventDefault();
  early = form;
});

/**
 * Sends a form by `submit`, which throws refusals.
 * @param {HTMLFormElement} form
 * @param {Handling} handling
 */
export function handle(form, handling) {
  let isBusy = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (isBusy) return;
    clearProblem();
    if (!isValid(form, handling)) return;
    isBusy = true;
    const finish = busy(buttonOf(form), handling.busy);
    try {
      await handling.submit(valuesOf(form));
    } catch (error) {
      finish();
      fail(form, handling, error);
    } finally {
      isBusy = false;
      finish();
    }
  });
  form.addEventListener("input", ({ target }) => {
    const field = /** @type {HTMLInputElement} */ (target);
    if (field.getAttribute("aria-invalid")) mark(field, complaint(field, handling));
  });
  if (early === form) form.requestSubmit();
}

/**
 * Makes a button say what is going on, unless that is over at once; it stays focusable. Returns
 * what undoes it.
 * @param {HTMLElement} button
 * @param {string} text
 * @returns {() => void}
 */
export function busy(button, text) {
  if (button.getAttribute("aria-disabled")) return () => undefined;
  button.setAttribute("aria-disabled", "true");
  /** @type {ChildNode[] | null} */
  let before = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const wait = {
    begin() {
      const top = [...document.querySelectorAll("dialog[open]")].at(-1);
      if (top && !top.contains(button)) return;
      timer = setTimeout(() => {
        before = [...button.childNodes];
        button.style.minWidth = `${button.offsetWidth}px`; // a shorter word moves nothing
        button.replaceChildren(el("span", { class: "spinner" }), text);
      }, INSTANT_MS);
    },
    end() {
      clearTimeout(timer);
      if (before) button.replaceChildren(...before);
      button.style.minWidth = "";
      before = null;
    },
  };
  waits.add(wait);
  wait.begin();
  return () => {
    if (!waits.delete(wait)) return;
    wait.end();
    button.removeAttribute("aria-disabled");
  };
}

/**
 * Nobody waits while a dialog asks: buttons say what they do until the returned function is called.
 */
export function interrupt() {
  const interrupted = [...waits];
  for (const wait of interrupted) wait.end();
  return () => interrupted.forEach((wait) => waits.has(wait) && wait.begin());
}

/**
 * Does the work of a button, which says meanwhile that it is being done; a refusal is shown.
 * Returns whether it was done.
 * @param {HTMLElement} button
 * @param {string} text
 * @param {() => unknown} work
 * @param {{ own?: Record<string, string>, fail?: (error: unknown) => void }} [how] `own` as in
 *   Handling
 */
export async function act(
  button,
  text,
  work,
  { own, fail = (error) => showProblem(error, { own }) } = {},
) {
  if (button.getAttribute("aria-disabled")) return false;
  clearProblem();
  const finish = busy(button, text);
  try {
    await work();
    return true;
  } catch (error) {
    fail(error);
    return false;
  } finally {
    finish();
  }
}

/**
 * Puts the cursor into the first field, unless there is something to read first, somebody is
 * somewhere already, or a keyboard would come up and cover half of the page.
 * @param {HTMLFormElement | null | undefined} form
 */
export function focusFirst(form) {
  const isToRead = document.querySelector(
    "#notes > *, #problem:not([hidden]), #unsent:target, [data-incomplete]",
  );
  const isSomewhere = document.activeElement !== document.body;
  if (isToRead || isSomewhere || window.matchMedia("(pointer: coarse)").matches) return;
  /** @type {HTMLElement | null | undefined} */ (
    form?.querySelector("input:not([hidden], [readonly])")
  )?.focus();
}

/**
 * A field with its label; `control` gets the id `name` unless it has one.
 * @param {Child} label
 * @param {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} control
 * @param {{ hint?: Child, beside?: Child, box?: string }} [more] `beside` stands to the right of
 *   the control, in a box of the class `box`
 */
export function field(label, control, { hint, beside, box: kind = "side-by-side" } = {}) {
  if (!control.id) control.id = control.name;
  const note = hint && el("p", { class: "hint", id: `${control.id}-hint` }, hint);
  if (note) control.setAttribute("aria-describedby", note.id);
  const box = beside ? el("div", { class: kind }, control, beside) : control;
  return el("div", { class: "field" }, el("label", { for: control.id }, label), box, note);
}

/**
 * @param {string} name
 * @param {Record<string, unknown>} [attributes]
 */
export function textInput(name, attributes = {}) {
  return el("input", {
    name,
    type: "text",
    autocomplete: "off",
    spellcheck: "false",
    ...attributes,
  });
}

/**
 * Marks a field as wrong, or with "" as right.
 * @param {HTMLInputElement} field
 * @param {string} text
 * @param {string} [words] the service's own, in English
 */
export function mark(field, text, words = "") {
  const id = `${field.id}-error`;
  const others = (field.getAttribute("aria-describedby") ?? "")
    .split(" ")
    .filter((one) => one && one !== id);
  document.getElementById(id)?.remove();
  if (text) {
    others.unshift(id);
    field
      .closest(".field")
      ?.append(el("p", { class: "field-error", id }, ...sentences({ text, words })));
    field.setAttribute("aria-invalid", "true");
  } else {
    field.removeAttribute("aria-invalid");
  }
  if (others.length) field.setAttribute("aria-describedby", others.join(" "));
  else field.removeAttribute("aria-describedby");
}

/**
 * @param {HTMLFormElement} form
 * @returns {Record<string, string>}
 */
export function valuesOf(form) {
  return Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));
}

/** @param {HTMLFormElement} form */
function buttonOf(form) {
  return /** @type {HTMLElement} */ (form.querySelector("[type=submit]"));
}

/** @param {HTMLFormElement} form */
function fieldsOf(form) {
  const all = [...form.elements].filter((one) =>
    one.matches("input:not([type=radio]), select, textarea"),
  );
  return /** @type {HTMLInputElement[]} */ (all);
}

/**
 * @param {HTMLFormElement} form
 * @param {Handling} handling
 */
function isValid(form, handling) {
  const wrong = fieldsOf(form).filter((field) => {
    const text = complaint(field, handling);
    mark(field, text);
    return text;
  });
  wrong[0]?.focus();
  return wrong.length === 0;
}

/**
 * @param {HTMLInputElement} field
 * @param {Handling} handling
 */
function complaint(field, { checks }) {
  if (field.required && !field.value.trim()) {
    return t(hasText(`${field.name}.missing`) ? `${field.name}.missing` : "field.missing");
  }
  return checks?.[field.name]?.(field.value) ?? "";
}

/**
 * @param {HTMLFormElement} form
 * @param {Handling} handling
 * @param {unknown} error
 */
function fail(form, { fields, own, actions, taken }, error) {
  if (error instanceof Refusal) {
    if (taken?.(error)) return;
    const [, named, complaint] = COMPLAINT.exec(error.msg) ?? [];
    const field = fieldsOf(form).find((one) => one.name === (named ?? fields?.[error.code]));
    if (field) {
      const { text, words } =
        complaint && !own?.[error.code] ? spoken(error.code, complaint) : explained(error, own);
      mark(field, text, words);
      field.focus();
      return;
    }
  }
  const dialog = form.closest("dialog");
  if (dialog?.open) showProblemIn(dialog, error, own);
  else showProblem(error, { own, actions: error instanceof Refusal ? actions?.(error) : [] });
}
