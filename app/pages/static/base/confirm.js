// @ts-check
// Before something dangerous the service wants to know that it is still the owner (412).

import { call, Refusal } from "./api.js";
import { openDialog } from "./dialog.js";
import { el, replace, say } from "./dom.js";
import { explained, sentences } from "./errors.js";
import { act, field, handle, textInput } from "./form.js";
import { t } from "./i18n.js";
import { leaveFor } from "./page.js";
import { sendButton } from "./pause.js";
import { onDemand } from "./retry.js";
import { isPossible, NoPasskey, stop, usePasskey } from "./webauthn.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/auth/confirmation">} Ways */
/** @typedef {Data<"get", "/auth/external-auth/providers">[number]} Provider */
/** @typedef {(error: unknown) => void} Fail */

const OWN = { "auth.credentials_failed": "confirm.wrong" };
const OF_CODES = [
  "auth.mfa_code_invalid",
  "auth.mfa_recovery_code_used",
  "auth.mfa_email_code_required",
  "auth.mfa_email_code_expired",
];
// They say when somebody signed in there; the service refuses the others.
const DATED_KINDS = ["oidc", "microsoft"];
const FIELDS = {
  "auth.credentials_failed": "password",
  ...Object.fromEntries(OF_CODES.map((code) => [code, "code"])),
};

/**
 * Does what may need a confirmation; asks for that if it does, and then does it once more.
 * Returns null if the owner cancelled.
 * @template T
 * @param {string} why such as "To delete your account"
 * @param {() => Promise<T>} work
 * @returns {Promise<T | null>}
 * @throws {Refusal}
 */
export async function asOwner(why, work) {
  let refusal;
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "precondition_failed") throw error;
    refusal = error;
  }
  const ways = await call("get", "/auth/confirmation");
  const providers = ways.methods.includes("external") ? await linkedProviders() : [];
  const mayUse = (/** @type {string} */ method) =>
    method === "passkey" ? isPossible() : method !== "external" || providers.length > 0;
  if (!ways.methods.some(mayUse)) throw refusal; // its text says to sign in again
  const { factors } = await call("get", "/auth/mfa");
  return (await isConfirmed(why, ways, factors.length > 0, providers)) ? work() : null;
}

/**
 * @param {string} why
 * @param {Ways} ways
 * @param {boolean} hasApp whether codes come from an app, and not by mail
 * @param {Provider[]} providers that can confirm; they lead away from the page
 * @returns {Promise<boolean>}
 */
function isConfirmed(why, ways, hasApp, providers) {
  return new Promise((resolve) => {
    let isDone = false;
    const problem = el("p", { class: "field-error", role: "alert" });
    const fail = (/** @type {unknown} */ error) =>
      replace(problem, ...(error ? textOf(error) : []));
    const done = () => {
      isDone = true;
      close();
    };
    const cancel = el(
      "button",
      { type: "button", class: "secondary", click: () => close() },
      t("cancel"),
    );
    const passkey = ways.methods.includes("passkey") && isPossible() && passkeyButton(done, fail);
    const form = typedForm(ways, hasApp, cancel, done, fail);
    const elsewhere = providers.map((provider) => providerButton(provider, fail));
    const hint = elsewhere.length > 0 && el("p", { class: "hint" }, t("confirm.elsewhere_hint"));
    const content = el(
      "div",
      { class: "dialog-body" },
      el("p", { class: "lead" }, why),
      hint,
      passkey,
      ...elsewhere,
      problem,
      form ?? cancel,
    );
    const close = openDialog(t("confirm.title"), [content], {
      focus: passkey || form?.querySelector("input") || elsewhere[0] || cancel,
      closed: () => {
        stop();
        resolve(isDone);
      },
    });
  });
}

/** @param {unknown} error */
function textOf(error) {
  if (!(error instanceof NoPasskey)) return sentences(explained(error, OWN));
  return error.isSilent ? [] : [t(`passkey.${error.reason}`)];
}

/**
 * @param {() => void} done
 * @param {Fail} fail
 */
function passkeyButton(done, fail) {
  const button = el("button", { type: "button", class: "primary" }, t("confirm.passkey"));
  const confirm = async () => {
    const { flow_id, public_key } = await call("post", "/auth/confirmation/passkey/start");
    const options = public_key.publicKey;
    const credential = await usePasskey(options);
    try {
      await call("post", "/auth/confirmation/passkey/finish", { body: { flow_id, credential } });
    } catch (error) {
      const told = onDemand(() => import("./signals.js")).then(({ forgetUnknown }) =>
        forgetUnknown(error, options.rpId, credential.id),
      );
      await told.catch(() => undefined);
      throw error;
    }
    done();
  };
  button.addEventListener("click", () => act(button, t("confirm.busy"), confirm, { fail }));
  return button;
}

/** @returns {Promise<Provider[]>} those at which the account can show who it is */
async function linkedProviders() {
  const [links, providers] = await Promise.all([
    call("get", "/auth/external-auth/links"),
    call("get", "/auth/external-auth/providers"),
  ]);
  return providers.filter(
    ({ kind, key }) =>
      DATED_KINDS.includes(kind) &&
      links.some((one) => one.provider_kind === kind && one.provider_key === key),
  );
}

/**
 * Leads to a provider and back to this page, which console/open.js then tells what came of it.
 * @param {Provider} provider
 * @param {Fail} fail
 */
function providerButton({ kind, key, display_name: name }, fail) {
  const button = el(
    "button",
    { type: "button", class: "primary" },
    t("confirm.elsewhere", { name }),
  );
  const go = async () => {
    const body = {
      intent: /** @type {const} */ ("confirm"),
      return_path: window.location.pathname + window.location.search,
    };
    const { authorization_url } = await call(
      "post",
      "/auth/external-auth/{kind}/{provider}/start",
      { path: { kind, provider: key }, body },
    );
    await leaveFor(authorization_url);
  };
  button.addEventListener("click", () => act(button, t("confirm.busy"), go, { fail }));
  return button;
}

/**
 * The password, with a code if the account has a second factor, or a mailed code alone.
 * @param {Ways} ways
 * @param {boolean} hasApp
 * @param {HTMLElement} cancel
 * @param {() => void} done
 * @param {Fail} fail
 */
function typedForm({ methods, needs_code }, hasApp, cancel, done, fail) {
  const method = methods.includes("password") ? "password" : "email_code";
  if (!methods.includes(method)) return null;
  const isMailed = method === "email_code";
  const hasCode = isMailed || needs_code;
  const form = el(
    "form",
    { method: "post", novalidate: true },
    !isMailed &&
      field(
        t("confirm.password"),
        textInput("password", {
          id: "confirm-password",
          type: "password",
          autocomplete: "current-password",
          required: true,
        }),
      ),
    hasCode &&
      field(
        t("confirm.code"),
        textInput("code", {
          id: "confirm-code",
          autocomplete: "one-time-code",
          autocapitalize: "none",
          required: true,
        }),
      ),
    hasCode && !hasApp && codeButton(fail),
    el(
      "div",
      { class: "dialog-actions" },
      cancel,
      el(
        "button",
        { type: "submit", class: methods.includes("passkey") ? "secondary" : "primary" },
        t("confirm.submit"),
      ),
    ),
  );
  handle(form, {
    busy: t("confirm.busy"),
    fields: FIELDS,
    own: OWN,
    async submit({ password, code }) {
      fail(null);
      await call("post", "/auth/confirmation", {
        body: isMailed ? { method, code } : { method, password, code },
      });
      done();
    },
    taken(refusal) {
      if (refusal.code in FIELDS) return false;
      fail(refusal);
      return true;
    },
  });
  return form;
}

/** @param {Fail} fail */
function codeButton(fail) {
  return sendButton(t("confirm.send"), {
    class: "secondary small",
    busy: t("confirm.busy"),
    async send() {
      fail(null);
      const { resend_after } = await call("post", "/auth/confirmation/email-code/send");
      say(t("confirm.sent"));
      document.getElementById("confirm-code")?.focus();
      return resend_after;
    },
    taken(error) {
      fail(error);
      return true;
    },
  });
}
