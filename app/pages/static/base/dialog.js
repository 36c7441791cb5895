// @ts-check
// Dialogs: the browser keeps the focus inside and returns it; Escape closes them.

import { el } from "./dom.js";
import { field, handle, interrupt, mark, textInput } from "./form.js";
import { t } from "./i18n.js";

let number = 0;

/**
 * Opens a dialog with a heading; returns what closes it. `closed` is called however it ends.
 * @param {string} title
 * @param {(Node | string)[]} content
 * @param {{ focus?: HTMLElement, closed?: () => void, isKept?: boolean }} [how] a dialog that is
 *   kept does not close on Escape, nor by what browsers have for that beside the page, since what
 *   it shows is not shown again
 * @returns {() => void}
 */
export function openDialog(title, content, { focus, closed, isKept } = {}) {
  const id = `dialog-${++number}`;
  const dialog = el(
    "dialog",
    { "aria-labelledby": id },
    el("h2", { id }, title),
    ...content,
    el("p", { class: "said visually-hidden", "aria-live": "polite" }),
  );
  const goOn = interrupt();
  const warn = (/** @type {BeforeUnloadEvent} */ event) => event.preventDefault();
  let isOver = !isKept;
  dialog.addEventListener("close", () => {
    if (!isOver) return dialog.showModal();
    dialog.remove();
    window.removeEventListener("beforeunload", warn);
    goOn();
    return closed?.();
  });
  if (isKept) {
    window.addEventListener("beforeunload", warn);
    dialog.addEventListener("keydown", (event) => event.key === "Escape" && event.preventDefault());
    dialog.addEventListener("cancel", (event) => event.preventDefault());
  }
  document.body.append(dialog);
  dialog.showModal();
  focus?.focus();
  return () => {
    isOver = true;
    dialog.close();
  };
}

/**
 * Opens a dialog with a form in it, the focus in its first field; returns what closes it.
 * @param {string} title
 * @param {string} verb what the button says that sends it
 * @param {import("./dom.js").Child[]} content
 * @param {Omit<import("./form.js").Handling, "busy"> & { busy?: string, closed?: () => void }} how
 */
export function formDialog(title, verb, content, { busy = t("one_moment"), closed, ...handling }) {
  const cancel = el("button", { type: "button", class: "secondary" }, t("cancel"));
  const actions = el(
    "div",
    { class: "dialog-actions" },
    cancel,
    el("button", { type: "submit", class: "primary" }, verb),
  );
  const form = el("form", { method: "post", novalidate: true }, ...content, actions);
  const first = /** @type {HTMLElement | null} */ (form.querySelector("input, select"));
  const close = openDialog(title, [form], { focus: first ?? cancel, closed });
  cancel.addEventListener("click", close);
  handle(form, { busy, ...handling });
  return close;
}

/**
 * Asks before something that cannot be taken back, with the focus on *Cancel*.
 * @param {{ title: string, text: string | Node, verb: string, typed?: string }} about `verb` is
 *   said by the button; `typed` is a name that has to be typed first
 * @returns {Promise<boolean>}
 */
export function confirmed({ title, text, verb, typed = "" }) {
  return new Promise((resolve) => {
    let isYes = false;
    const yes = el("button", { type: "submit", class: "danger" }, verb);
    const no = el("button", { type: "button", class: "secondary" }, t("cancel"));
    const name = textInput("dialog-name", { autocapitalize: "none" });
    const form = el(
      "form",
      { method: "dialog" },
      el("div", { class: "lead" }, text),
      typed && field(t("dialog.type_name", { name: typed }), name),
      el("div", { class: "dialog-actions" }, no, yes),
    );
    const close = openDialog(title, [form], { focus: no, closed: () => resolve(isYes) });
    no.addEventListener("click", close);
    name.addEventListener("input", () => mark(name, ""));
    form.addEventListener("submit", (event) => {
      isYes = !typed || name.value.trim() === typed;
      if (isYes) return;
      event.preventDefault();
      mark(name, t("dialog.name_differs"));
      name.focus();
    });
  });
}
