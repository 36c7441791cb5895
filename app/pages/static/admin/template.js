// @ts-check
// The words of one kind of mail, beside what they look like.

import { call, Refusal } from "../base/api.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { act, field, handle, textInput } from "../base/form.js";
import { english, t } from "../base/i18n.js";
import { entitle } from "../base/page.js";
import { showProblem } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { button, submitLine, warnOfLoss } from "../console/fields.js";
import { open } from "../console/open.js";
import { empty, panel } from "../console/panel.js";
import { toast } from "../console/toast.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/mail/templates">[number]} Template */

const TYPING_MS = 500;
const name = String(window.location.pathname.split("/").at(-1));

open(async () => {
  const templates = await load(() => orSignIn(call("get", "/admin/mail/templates")));
  const template = templates.find((one) => one.template === name);
  if (!template)
    return replace(
      byId("content"),
      empty(t("template.none"), null, el("a", { href: "/admin/mail" }, t("mail.title"))),
    );
  entitle(t(`mail_template.${name}`));
  return showStored(template);
});

/** @param {Template} template */
async function showStored(template) {
  const keys = [template.subject_key, template.html_key];
  const [subject, html] = await load(() =>
    orSignIn(Promise.all(keys.map((key) => call("get", "/admin/config/{key}", { path: { key } })))),
  );
  show(
    { ...template, is_overridden: [subject, html].some((one) => one?.is_set) },
    String(subject?.is_set ? subject.value : ""),
    String(html?.is_set ? html.value : ""),
  );
}

/**
 * @param {Template} template
 * @param {string} storedSubject empty while it is the built-in one
 * @param {string} storedHtml
 */
function show(template, storedSubject, storedHtml) {
  const { subject_key: subjectKey, html_key: htmlKey, variables } = template;
  const subject = textInput("subject", {
    value: storedSubject,
    maxlength: 255,
    placeholder: t("template.built_in"),
  });
  const html = el("textarea", {
    id: "html",
    name: "html",
    rows: 18,
    spellcheck: "false",
    class: "mono",
    placeholder: t("template.built_in"),
  });
  html.value = storedHtml;
  /** @type {Record<string, string>} */
  const drawn = { [subjectKey]: subject.value, [htmlKey]: html.value };
  const back = button(t("settings.back"), { class: "danger-line" });
  const form = el(
    "form",
    { method: "post", novalidate: true },
    field(t("template.subject"), subject, { hint: t("template.empty_hint") }),
    field(t("template.html"), html),
    el(
      "p",
      { class: "hint" },
      t("template.placeholders"),
      " ",
      ...variables.flatMap((one) => [el("code", {}, `{{${one}}}`), " "]),
    ),
    submitLine(t("save"), template.is_overridden && back),
  );
  warnOfLoss(form);
  const preview = previewOf(() => ({ subject: subject.value, html: html.value }));
  for (const control of [subject, html]) control.addEventListener("input", preview.later);
  handle(form, {
    busy: t("saving"),
    fields: { bad_request: "html" },
    async submit() {
      // What is as it was drawn is left to who may have changed it meanwhile.
      const given = Object.entries({ [subjectKey]: subject.value, [htmlKey]: html.value }).filter(
        ([key, value]) => value !== drawn[key],
      );
      const set = Object.fromEntries(given.filter(([, value]) => value.trim()));
      await save(
        set,
        given.map(([key]) => key).filter((key) => !(key in set)),
      );
      await showStored(template);
    },
  });
  back.addEventListener("click", () =>
    act(back, t("one_moment"), async () => {
      if (
        !(await confirmed({
          title: t("settings.back"),
          text: t("template.back_text"),
          verb: t("settings.back"),
        }))
      )
        return;
      await save({}, [subjectKey, htmlKey]);
      show({ ...template, is_overridden: false }, "", "");
    }),
  );
  replace(
    byId("content"),
    el(
      "div",
      { class: "two wide" },
      panel("text", t("mail.text"), {}, form),
      panel("preview", t("template.preview"), { lead: t("template.preview_lead") }, preview.node),
    ),
  );
  preview.now();
}

/**
 * @param {Record<string, string>} values
 * @param {string[]} unset
 */
async function save(values, unset) {
  await orSignIn(call("patch", "/admin/config", { body: { values, unset } }));
  toast(t("saved"));
}

/** @param {() => { subject: string, html: string }} draft */
function previewOf(draft) {
  const subject = el("p", { class: "preview-subject" });
  const unknown = el("div", { "aria-live": "polite" });
  const frame = el("iframe", { title: t("template.preview"), sandbox: "", class: "preview-frame" });
  let timer = 0;
  let number = 0;
  const now = async () => {
    const own = ++number;
    const { subject: title, html } = draft();
    const body = {
      language: document.documentElement.lang,
      ...(title.trim() ? { subject: title } : {}),
      ...(html.trim() ? { html } : {}),
    };
    try {
      const made = await orSignIn(
        call("post", "/admin/mail/templates/{template}/preview", {
          path: { template: name },
          body,
        }),
      );
      if (own !== number) return;
      subject.textContent = made.subject;
      // Not `src`: the back button would lead to the drafts before.
      frame.contentWindow?.location.replace(new URL(made.preview_url, window.location.href).href);
      const names = made.unknown_placeholders.join(", ");
      const missing = made.missing_placeholders.join(", ");
      replace(
        unknown,
        missing && el("p", { class: "note bad" }, t("template.missing", { names: missing })),
        names && el("p", { class: "note warn" }, t("template.unknown", { names })),
      );
    } catch (error) {
      if (own !== number) return;
      if (error instanceof Refusal && error.code === "bad_request")
        replace(unknown, el("p", { class: "note bad" }, english(error.msg)));
      else showProblem(error, { isQuiet: true });
    }
  };
  const later = () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(now, TYPING_MS);
  };
  return { node: el("div", { class: "preview" }, subject, unknown, frame), now, later };
}
