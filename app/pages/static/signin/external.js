// @ts-check
// Sign-in by other services: their buttons, and what is asked when an identity is new here.

import { call } from "../base/api.js";
import { brandMark } from "../base/brands.js";
import { el } from "../base/dom.js";
import { act, field, handle, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { keep, staysSignedIn } from "../base/kept.js";
import { leaveFor } from "../base/page.js";
import { clearProblem } from "../base/problem.js";
import { afterSignIn } from "../base/return_path.js";
import { stop } from "../base/webauthn.js";
import { showMailbox } from "./mailbox.js";
import { show, tabs } from "./stage.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/auth/external-auth/providers">[number]} Provider */

/** @param {Provider[]} providers */
export function providerButtons(providers) {
  return providers.map((provider) => {
    const button = el(
      "button",
      { type: "button", class: "secondary with-icon" },
      mark(provider),
      t("login.with", { name: provider.display_name }),
    );
    button.addEventListener("click", () => begin(button, provider));
    return button;
  });
}

/**
 * A drawing from this site, the mark of the kind, or a letter: no picture is loaded from elsewhere.
 * @param {Provider} provider
 */
function mark({ icon_url, kind, display_name }) {
  if (icon_url && /^\/(?![/\\])/.test(icon_url))
    return el("img", { src: icon_url, alt: "", width: 20, height: 20 });
  const own = brandMark(kind);
  if (own) return own;
  return el(
    "span",
    { class: "letter", "aria-hidden": "true" },
    [...display_name][0]?.toUpperCase() ?? "",
  );
}

/**
 * @param {HTMLElement} button
 * @param {Provider} provider
 */
function begin(button, { kind, key }) {
  stop();
  return act(button, t("login.leaving"), async () => {
    const body = { return_path: afterSignIn(), remember: staysSignedIn() };
    const options = { path: { kind, provider: key }, body };
    const { authorization_url } = await call(
      "post",
      "/auth/external-auth/{kind}/{provider}/start",
      options,
    );
    keep("sessionStorage", "arriving", "1"); // whoever comes back signed in skips the sign-in page
    await leaveFor(authorization_url);
  });
}

/**
 * @param {string} flow_token
 * @param {(step: Data<"post", "/auth/external-auth/password-link">) => Promise<unknown>} goOn
 */
export function unknownIdentity(flow_token, goOn) {
  const ways = { known: linkForm(flow_token, goOn), other: mailForm(flow_token) };
  const choose = (/** @type {keyof typeof ways} */ chosen) => {
    clearProblem();
    ways.known.hidden = chosen !== "known";
    ways.other.hidden = chosen !== "other";
  };
  choose("known");
  const choice = tabs(
    t("unknown.choice"),
    [
      ["known", t("unknown.have_account")],
      ["other", t("unknown.new_account")],
    ],
    choose,
  );
  show(t("unknown.title"), [
    el("p", { class: "lead" }, t("unknown.lead")),
    choice,
    ways.known,
    ways.other,
  ]);
}

/**
 * @param {string} flow_token
 * @param {(step: Data<"post", "/auth/external-auth/password-link">) => Promise<unknown>} goOn
 */
function linkForm(flow_token, goOn) {
  const form = el(
    "form",
    { method: "post", novalidate: true },
    field(t("login.identifier"), required("identifier", "text", "username")),
    field(t("login.password"), required("password", "password", "current-password")),
    el("a", { href: "/reset-password" }, t("login.forgot")),
    el("button", { type: "submit", class: "primary" }, t("unknown.link")),
  );
  handle(form, {
    busy: t("login.busy"),
    own: { "auth.credentials_failed": "login.wrong" },
    async submit({ identifier = "", password = "" }) {
      const body = { flow_token, identifier, password };
      await goOn(await call("post", "/auth/external-auth/password-link", { body }));
    },
  });
  return form;
}

/** @param {string} flow_token */
function mailForm(flow_token) {
  const address = required("email", "email", "email");
  const form = el(
    "form",
    { method: "post", novalidate: true },
    field(t("field.email"), address),
    el("p", { class: "hint" }, t("unknown.mail_hint")),
    el("button", { type: "submit", class: "primary" }, t("unknown.mail")),
  );
  handle(form, {
    busy: t("pending.sending"),
    fields: { "auth.email_blocked": "email", "auth.email_not_allowlisted": "email" },
    own: { "auth.pending_activation": "unknown.unproven" },
    actions: ({ code }) =>
      code === "auth.pending_activation"
        ? [el("a", { href: "/reset-password" }, t("unknown.reset"))]
        : [],
    async submit({ email = "" }) {
      await call("post", "/auth/external-auth/email-verification/start", {
        body: { flow_token, email },
      });
      // One mail for each arrival from a provider: whoever mistyped begins anew there.
      const anew = el("a", { href: "/login" }, t("mfa.start_over"));
      showMailbox(t("unknown.sent"), email, null, anew);
    },
  });
  return form;
}

/**
 * @param {string} name
 * @param {string} type
 * @param {string} autocomplete
 */
function required(name, type, autocomplete) {
  return textInput(name, { type, autocomplete, required: true, autocapitalize: "none" });
}
