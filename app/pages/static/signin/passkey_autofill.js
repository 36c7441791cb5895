// @ts-check
// Passkeys among the suggestions of the name's field (conditional UI).
//
// The service's challenge ends, the browser's request does not: so it is renewed before that, and
// when a tab becomes visible in which no timer ran.

import { call } from "../base/api.js";
import { NoPasskey, offersAutofill, stop } from "../base/webauthn.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"post", "/auth/passkeys/login/start">} Started */

const FRESH_PART = 0.8;

/** Each offer ends the one before it. */
let offers = 0;

/** Ends the offer: the person does something else. */
export function stopOffering() {
  offers += 1;
  stop();
}

/**
 * @param {(started: Started, mediation: "conditional") => Promise<void>} use
 * @param {(error: unknown) => void} failed
 */
export async function offerInField(use, failed) {
  const own = ++offers;
  if (!(await offersAutofill()) || own !== offers) return;
  let started;
  try {
    started = await call("post", "/auth/passkeys/login/start", { body: { conditional: true } });
  } catch {
    return; // the button remains, and says what is wrong
  }
  if (own !== offers) return;
  const began = Date.now();
  const freshMs = started.public_key.publicKey.timeout * FRESH_PART;
  const renew = () => {
    if (document.visibilityState !== "visible" || Date.now() - began < freshMs) return;
    stop();
    offerInField(use, failed);
  };
  const timer = setTimeout(renew, freshMs);
  document.addEventListener("visibilitychange", renew);
  window.addEventListener("pagehide", stop, { once: true });
  try {
    await use(started, "conditional");
  } catch (error) {
    if (!(error instanceof NoPasskey)) failed(error);
  } finally {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", renew);
  }
}
