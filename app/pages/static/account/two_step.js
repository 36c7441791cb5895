// @ts-check
// The second factor: set up with an app, recovery codes, turned off.

import { call, callForFile } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { formDialog } from "../base/dialog.js";
import { el, replace } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { ago, day } from "../base/format.js";
import { t } from "../base/i18n.js";
import { copyButton } from "../base/problem.js";
import { orSignIn } from "../base/session.js";
import { actButton, button } from "../console/fields.js";
import { badge, facts, panel } from "../console/panel.js";
import { showOnce } from "../console/secret.js";
import { toast } from "../console/toast.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/auth/mfa">} Mfa */

const FEW_CODES = 3;
const CODE_FIELDS = {
  "auth.mfa_code_invalid": "code",
  "auth.mfa_recovery_code_used": "code",
  bad_request: "code",
};
const CODE_OWN = { bad_request: "error.auth.mfa_code_invalid" };

/**
 * @param {HTMLElement} host
 * @param {Mfa} mfa
 * @param {string} username
 */
export function showTwoStep(host, { factors, recovery_codes_remaining: left }, username) {
  const factor = factors.find((one) => one.method === "totp");
  if (!factor) {
    const begin = actButton(t("two_step.set_up"), {}, () => setUp(host, username));
    const off = badge(t("two_step.off"));
    replace(
      host,
      panel(
        "two-step",
        t("two_step.title"),
        { lead: t("two_step.lead"), actions: [begin] },
        el("p", {}, off),
      ),
    );
    return;
  }
  const renew = button(t("two_step.new_codes"), {
    click: () =>
      askForCode(
        t("two_step.new_codes"),
        t("two_step.new_codes_text"),
        t("two_step.make"),
        (code) => newCodes(host, username, code),
      ),
  });
  const remove = button(t("two_step.turn_off"), {
    class: "danger-line",
    click: () =>
      askForCode(
        t("two_step.turn_off"),
        t("two_step.turn_off_text"),
        t("two_step.turn_off"),
        (code) => turnOff(host, username, factor.id, code),
      ),
  });
  replace(
    host,
    panel(
      "two-step",
      t("two_step.title"),
      { lead: t("two_step.lead"), actions: [badge(t("two_step.on"), "good")] },
      facts([
        [t("two_step.app"), factor.name],
        [t("two_step.since"), day(factor.enabled_at)],
        [t("two_step.used"), factor.last_used_at ? ago(factor.last_used_at) : t("never")],
        [
          t("two_step.codes_left"),
          left > FEW_CODES ? String(left) : badge(t("two_step.few_codes", { count: left }), "warn"),
        ],
      ]),
      el("div", { class: "form-actions" }, renew, remove),
    ),
  );
}

/**
 * @param {HTMLElement} host
 * @param {string} username
 */
async function reload(host, username) {
  showTwoStep(host, await orSignIn(call("get", "/auth/mfa")), username);
  host.querySelector("h2")?.focus();
  host.dispatchEvent(new Event("changed"));
}

/**
 * @param {HTMLElement} host
 * @param {string} username
 */
async function setUp(host, username) {
  const flow = await asOwner(t("two_step.why"), () =>
    orSignIn(call("post", "/auth/mfa/totp/setup/start")),
  );
  if (!flow) return;
  const picture = await callForFile("post", "/docs/qr-code", {
    body: { otpauth_uri: flow.otpauth_uri },
  });
  const url = URL.createObjectURL(picture);
  const close = formDialog(
    t("two_step.title"),
    t("two_step.turn_on"),
    [
      el(
        "ol",
        { class: "set-up" },
        el("li", {}, t("two_step.install")),
        el("li", {}, t("two_step.scan")),
      ),
      el("img", { class: "qr", src: url, alt: t("two_step.qr"), width: 192, height: 192 }),
      el(
        "p",
        { class: "on-phone" },
        el("a", { class: "button secondary", href: flow.otpauth_uri }, t("two_step.open_app")),
      ),
      keyLine(flow.secret),
      codeField(t("two_step.code"), t("two_step.code_hint"), "numeric"),
    ],
    {
      closed: () => URL.revokeObjectURL(url),
      fields: CODE_FIELDS,
      own: CODE_OWN,
      async submit({ code = "" }) {
        const { recovery_codes: codes } = await orSignIn(
          call("post", "/auth/mfa/totp/setup/finish", {
            body: { flow_token: flow.flow_token, code },
          }),
        );
        close();
        await showCodes(username, codes);
        toast(t("two_step.is_on"));
        await reload(host, username);
      },
    },
  );
}

/** @param {string} secret in groups of four, which are easier to type */
function keyLine(secret) {
  const groups = secret.match(/.{1,4}/g)?.join(" ") ?? secret;
  return el(
    "div",
    { class: "key-line" },
    el("p", { class: "hint" }, t("two_step.by_hand")),
    el("code", {}, groups),
    copyButton(secret, { class: "secondary small" }),
  );
}

/**
 * @param {string} label
 * @param {string} hint
 * @param {"numeric" | "text"} mode
 */
function codeField(label, hint, mode) {
  const input = textInput("code", {
    id: "two-step-code",
    inputmode: mode,
    autocomplete: "one-time-code",
    autocapitalize: "none",
    required: true,
  });
  return field(label, input, { hint });
}

/**
 * @param {string} title
 * @param {string} text
 * @param {string} verb
 * @param {(code: string) => Promise<() => Promise<void>>} submit returns what is left to do when
 *   the dialog is closed
 */
function askForCode(title, text, verb, submit) {
  const close = formDialog(
    title,
    verb,
    [
      el("p", { class: "lead" }, text),
      codeField(t("two_step.any_code"), t("two_step.any_code_hint"), "text"),
    ],
    {
      fields: CODE_FIELDS,
      own: CODE_OWN,
      async submit({ code = "" }) {
        const goOn = await submit(code);
        close();
        await goOn();
      },
    },
  );
}

/**
 * @param {HTMLElement} host
 * @param {string} username
 * @param {string} code
 */
async function newCodes(host, username, code) {
  const codes = await orSignIn(
    call("post", "/auth/mfa/recovery-codes/regenerate", { body: { code } }),
  );
  return async () => {
    await showCodes(username, codes);
    await reload(host, username);
  };
}

/**
 * @param {HTMLElement} host
 * @param {string} username
 * @param {number} id
 * @param {string} code
 */
async function turnOff(host, username, id, code) {
  await orSignIn(
    call("delete", "/auth/mfa/factors/{factor_id}", { path: { factor_id: id }, body: { code } }),
  );
  toast(t("two_step.is_off"));
  return () => reload(host, username);
}

/**
 * @param {string} username
 * @param {string[]} lines
 */
function showCodes(username, lines) {
  return showOnce({
    title: t("two_step.codes"),
    text: t("two_step.codes_text"),
    lines,
    file: "recovery-codes.txt",
    about: [
      t("two_step.codes_of", {
        site: String(document.documentElement.dataset.site),
        name: username,
      }),
      t("two_step.codes_made", { date: day(new Date().toISOString()) }),
      t("two_step.codes_once"),
    ],
  });
}
