// @ts-check
// Signing in: by password, passkey or provider, and whatever comes in between.

import { call, Refusal } from "../base/api.js";
import { chooseToStay, csrfToken, keep, staysSignedIn } from "../base/kept.js";
import { el, input, replace } from "../base/dom.js";
import { act, focusFirst, handle } from "../base/form.js";
import { t } from "../base/i18n.js";
import { leaveFor, note, start } from "../base/page.js";
import { clearProblem, showNotice, showProblem } from "../base/problem.js";
import { afterSignIn, withReturnPath } from "../base/return_path.js";
import { onDemand, untilAnswered } from "../base/retry.js";
import { whoIsSignedIn } from "../base/session.js";
import * as webauthn from "../base/webauthn.js";
import { offerInField, stopOffering } from "./passkey_autofill.js";

/** @import { Data, Schemas } from "../../types" */
/** @typedef {Schemas["MfaRequiredData"]} MfaRequired */
/** @typedef {Data<"post", "/auth/login"> | Data<"post", "/auth/passkeys/login/finish">} Step */

const SWITCHED_OFF = /_login_disabled$/;
const OF_PASSKEYS = {
  "auth.credentials_failed": "passkey.refused",
  "auth.token_invalid": "passkey.too_late",
};

const address = new URLSearchParams(window.location.search);

/**
 * Takes a flow out of the address before anything else is loaded; this entry of the tab's history
 * keeps it, in case the page is loaded again.
 */
function takeFlow() {
  const url = new URL(window.location.href);
  const { state } = window.history;
  const taken = (/** @type {string} */ name) => String(address.get(name) ?? state?.[name] ?? "");
  const given = {
    flow: taken("flow"),
    expires_in: taken("expires_in"),
    methods: taken("methods"),
    remember_device_secs: taken("remember_device_secs"),
  };
  for (const name of Object.keys(given)) url.searchParams.delete(name);
  if (given.flow) window.history.replaceState({ ...state, ...given }, "", url);
  return given;
}

const { flow, expires_in, methods, remember_device_secs } = takeFlow();

/**
 * Goes on after any sign-in.
 * @param {Step} step
 */
async function goOn(step) {
  if (step.status === "mfa_required") return showSecondFactor(/** @type {MfaRequired} */ (step));
  if (!csrfToken()) return showNotice(t("error.no_cookies"));
  if (step.status === "password_change_required")
    return leaveFor(withReturnPath("/force-password-change"));
  const adopted = onDemand(() => import("../base/preferences.js")).then(({ adoptPreferences }) =>
    adoptPreferences(),
  );
  const told = onDemand(() => import("../base/signals.js")).then(({ tellOfPasskeys }) =>
    tellOfPasskeys(),
  );
  await Promise.allSettled([adopted, told]); // whoever is signed in goes on all the same
  return leaveFor(afterSignIn());
}

/** @param {Omit<MfaRequired, "status">} challenge */
async function showSecondFactor(challenge) {
  stopOffering();
  clearProblem();
  const { secondFactor } = await onDemand(() => import("./second_factor.js"));
  secondFactor(challenge, goOn);
}

function stayBox() {
  const box = input("stay");
  box.checked = staysSignedIn();
  box.addEventListener("change", () => chooseToStay(box.checked));
}

function passwordForm() {
  const form = /** @type {HTMLFormElement | null} */ (document.getElementById("password-form"));
  if (!form) return;
  handle(form, {
    busy: t("login.busy"),
    own: { "auth.credentials_failed": "login.wrong" },
    async submit({ identifier = "", password = "" }) {
      stopOffering();
      const body = { identifier, password, remember: staysSignedIn() };
      await goOn(await call("post", "/auth/login", { body }));
    },
    actions: ({ code }) => (SWITCHED_OFF.test(code) ? [loadAgain()] : []),
    taken(refusal) {
      offerAutofill();
      if (refusal.code !== "auth.pending_activation") return false;
      showPending(/** @type {HTMLInputElement} */ (form.elements.namedItem("identifier")));
      return true;
    },
  });
  carryAddress(form);
}

/** The document shows ways that are not there any more. */
function loadAgain() {
  return el(
    "button",
    { type: "button", class: "link", click: () => window.location.reload() },
    t("login.reload"),
  );
}

/** What was typed here is not to be typed again where the links lead. */
function carryAddress(/** @type {HTMLFormElement} */ form) {
  const field = /** @type {HTMLInputElement} */ (form.elements.namedItem("identifier"));
  for (const link of document.querySelectorAll("[data-carries]")) {
    link.addEventListener("click", () => keep("sessionStorage", "identifier", field.value.trim()));
  }
}

async function showPending(/** @type {HTMLInputElement} */ field) {
  stopOffering();
  const [{ pendingActivation }, { wayBack }] = await onDemand(() =>
    Promise.all([import("./pending.js"), import("./stage.js")]),
  );
  const typed = field.value.trim();
  input("password").value = ""; // whoever looks into the mailbox leaves the page behind
  const show = wayBack(field);
  const back = () => {
    show();
    offerAutofill();
  };
  pendingActivation(typed, { email: typed.includes("@") ? typed : "", back });
}

function passkeyButton() {
  const button = document.getElementById("passkey");
  if (!button) return;
  if (!webauthn.isPossible()) {
    button.hidden = true;
    showOr(document.getElementById("email-code") !== null);
    return;
  }
  const signIn = async () => {
    stopOffering();
    await signInByPasskey(await call("post", "/auth/passkeys/login/start", { body: {} }));
  };
  const fail = (/** @type {unknown} */ error) => {
    showPasskeyProblem(error);
    offerAutofill();
  };
  button.addEventListener("click", () => act(button, t("login.passkey_busy"), signIn, { fail }));
}

/**
 * @param {Data<"post", "/auth/passkeys/login/start">} started
 * @param {CredentialMediationRequirement} [mediation]
 */
async function signInByPasskey({ flow_id, public_key }, mediation) {
  const options = public_key.publicKey;
  const credential = await webauthn.usePasskey(options, mediation);
  try {
    const body = { flow_id, credential, remember: staysSignedIn() };
    await goOn(await call("post", "/auth/passkeys/login/finish", { body }));
  } catch (error) {
    const told = onDemand(() => import("../base/signals.js")).then(({ forgetUnknown }) =>
      forgetUnknown(error, options.rpId, credential.id),
    );
    await told.catch(() => undefined);
    throw error;
  }
}

/** @param {unknown} error */
function showPasskeyProblem(error) {
  if (error instanceof webauthn.NoPasskey) {
    if (!error.isSilent) showNotice(t(`passkey.${error.reason}`));
    return;
  }
  const actions = error instanceof Refusal && SWITCHED_OFF.test(error.code) ? [loadAgain()] : [];
  showProblem(error, { own: OF_PASSKEYS, actions });
}

function emailCodeButton() {
  const button = document.getElementById("email-code");
  button?.addEventListener("click", () =>
    act(button, t("login.leaving"), async () => {
      stopOffering();
      const [{ askForCode }, { wayBack }] = await onDemand(() =>
        Promise.all([import("./email_code.js"), import("./stage.js")]),
      );
      const typed = /** @type {HTMLInputElement | null} */ (document.getElementById("identifier"));
      const show = wayBack(button);
      const back = () => {
        show();
        offerAutofill();
      };
      askForCode(typed?.value.includes("@") ? typed.value.trim() : "", { goOn, back });
    }),
  );
}

/** What stands between the password and the other ways. */
function showOr(/** @type {boolean} */ isShown) {
  const or = document.getElementById("or");
  if (or) or.hidden = !isShown;
}

function offerAutofill() {
  const field = document.getElementById("identifier");
  const hasSite = Boolean(document.documentElement.dataset.origin); // to which passkeys belong
  if (field && hasSite && document.getElementById("passkey"))
    offerInField(signInByPasskey, showPasskeyProblem);
}

async function offerProviders() {
  const providers = await call("get", "/auth/external-auth/providers");
  const host = document.getElementById("providers"); // not there any more in the next step
  if (!host || !providers.length) return providers.length;
  showOr(true);
  const { providerButtons } = await onDemand(() => import("./external.js"));
  replace(host, providerButtons(providers));
  return providers.length;
}

/** Asks what the document cannot know: how far the set-up is, and who the providers are. */
async function completeForm() {
  const [state, providerCount] = await Promise.all([
    untilAnswered(() => call("post", "/auth/check")),
    untilAnswered(offerProviders),
  ]);
  if (state.setup_state === "needs_admin") return leaveFor("/setup");
  if (state.setup_state === "needs_storage") note("warn", t("login.needs_storage"));
  const hasPasskeys = state.passkey_login_enabled && webauthn.isPossible();
  const hasOthers = providerCount || state.email_code_sign_in_enabled;
  if (!state.password_login_enabled && !hasPasskeys && !hasOthers)
    showNotice(t("login.nothing_offered"), { kind: "warn" });
  return undefined;
}

start(async () => {
  const isSecondStep = address.get("mfa") === "required" && flow;
  if (isSecondStep) {
    const offered = (methods || "totp,recovery_code").split(",");
    return showSecondFactor({
      flow_token: flow,
      expires_in: Number(expires_in) || 300,
      methods: /** @type {MfaRequired["methods"]} */ (offered),
      remember_device_secs: Number(remember_device_secs) || 0,
    });
  }
  const waiting = window.history.state?.emailCode;
  if (waiting?.endsAt > Date.now()) {
    const { enterCode } = await onDemand(() => import("./email_code.js"));
    return enterCode(waiting, { goOn, back: () => window.location.reload() });
  }
  const isUnknown = address.get("external_auth") === "email_required" && flow;
  if (!isUnknown) {
    stayBox();
    passwordForm(); // first of all: it can be seen, and sent
    passkeyButton();
    emailCodeButton();
  }
  if (window.location.search) (await onDemand(() => import("./outcomes.js"))).showOutcome(address);
  if (isUnknown) {
    const { unknownIdentity } = await onDemand(() => import("./external.js"));
    return unknownIdentity(flow, goOn);
  }
  focusFirst(/** @type {HTMLFormElement | null} */ (document.getElementById("password-form")));
  const me = await untilAnswered(whoIsSignedIn);
  if (me) return (await onDemand(() => import("./signed_in.js"))).showSignedIn(me);
  offerAutofill();
  return completeForm();
});
