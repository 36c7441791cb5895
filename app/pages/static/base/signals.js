// @ts-check
// What browsers and password managers are told of passkeys (WebAuthn Level 3, section 5.1.10).

import { call, Refusal } from "./api.js";
import { FRESH_MS, isPossible, MAKING } from "./webauthn.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/auth/passkeys/signal">} Told */
/** @typedef {(options: object) => Promise<void>} Signal */

/** Nobody waits for longer: a password manager may stand between. */
const MAX_MS = 1000;

/**
 * Has the browser hide a passkey that nobody has here. Only the service knows that: one that was
 * refused for any other reason may work again.
 * @param {unknown} error what came of using it
 * @param {string} rpId
 * @param {string} credentialId
 */
export async function forgetUnknown(error, rpId, credentialId) {
  const isUnknown = error instanceof Refusal && error.data?.credential_unknown === true;
  if (isUnknown) await signal("signalUnknownCredential", { rpId, credentialId });
}

/**
 * Whose passkeys they are, as browsers know them; null if nobody can say.
 * @returns {Promise<Told | null>}
 */
export async function readPasskeys() {
  // They belong to no address, or not to this one.
  if (!document.documentElement.dataset.origin || !isPossible()) return null;
  return call("get", "/auth/passkeys/signal").catch(() => null);
}

/**
 * Tells which passkeys the account has, and how it is called: after a sign-in, and when either has
 * changed. Without an answer of the service nothing is told, nor while a passkey is made, which is
 * told of afterwards.
 * @param {Told | null} [before] what was read before the last one was deleted
 */
export async function tellOfPasskeys(before = null) {
  if (
    !("PublicKeyCredential" in window) ||
    !("signalAllAcceptedCredentials" in PublicKeyCredential)
  )
    return;
  await navigator.locks
    .request(MAKING, { mode: "shared", ifAvailable: true }, (lock) => lock && readAndTell(before))
    .catch(() => undefined);
}

/** @param {Told | null} before */
async function readAndTell(before) {
  const asked = Date.now();
  const told = await readPasskeys();
  const userId = told?.user_id ?? before?.user_id;
  // A passkey may have been made since.
  const isOld = Date.now() - asked >= FRESH_MS;
  if (!told || !userId || isOld) return;
  const { rp_id: rpId, name, display_name: displayName, accepted } = told;
  await signal("signalAllAcceptedCredentials", {
    rpId,
    userId,
    allAcceptedCredentialIds: accepted,
  });
  await signal("signalCurrentUserDetails", { rpId, userId, name, displayName });
}

/**
 * Nothing happens where the browser lacks it, or at an address to which the passkeys do not belong.
 * @param {string} method
 * @param {Record<string, unknown>} options
 */
async function signal(method, options) {
  const api = /** @type {Partial<Record<string, Signal>>} */ (
    /** @type {unknown} */ (window.PublicKeyCredential)
  );
  const done = Promise.resolve(api[method]?.(options)).catch(() => undefined);
  await Promise.race([done, new Promise((late) => setTimeout(late, MAX_MS))]);
}
