// Passkeys as the built-in pages make and use them; of a failure, this page tells all that is known.

import * as browser from "./base/webauthn.js";
import { Stopped, Unfinished } from "./unfinished.js";

export { stop } from "./base/webauthn.js";

// The service forgets a challenge after its time-out; autofill asks for a new one before that.
const FRESH_PART = 0.9;

const REASONS = {
  ConstraintError: "No authenticator here can verify who you are with a PIN, a finger or a face.",
  InvalidStateError: "This authenticator already holds a passkey of this account.",
  NotAllowedError:
    "The browser gave no passkey: you cancelled, it took too long, or no authenticator here can do it and verify who you are.",
  NotSupportedError: "This browser or authenticator cannot do what the service asks for.",
};

// What keeps passkeys from working on this page at all, or "".
export function obstacle() {
  if (!window.isSecureContext) return "Passkeys need https, or http://localhost.";
  if (!window.PublicKeyCredential) return "This browser does not support passkeys.";
  if (isAddress(window.location.hostname)) return "Passkeys belong to a host name, not to an address.";
  return "";
}

// Where this machine itself has a name that passkeys can belong to, or "".
export function namedOrigin() {
  const url = new URL(window.location.origin);
  if (!/^127\.|^\[::1\]$/.test(url.hostname)) return "";
  url.hostname = "localhost";
  return url.origin;
}

// Whether `origins`, the site's addresses, have this page among them; without any they come from the
// set-up.
export function isOneOf(origins) {
  return !origins.length || origins.some((origin) => new URL(origin).origin === window.location.origin);
}

export async function offersAutofill() {
  return (await window.PublicKeyCredential?.isConditionalMediationAvailable?.()) === true;
}

// Makes a passkey; `answer` is what register/start sent. Throws Unfinished.
export function createPasskey({ public_key: { publicKey } }) {
  return explained(browser.createPasskey(publicKey), publicKey.rp.id);
}

// Uses a passkey; `answer` is what login/start sent. Throws Unfinished.
export function usePasskey({ public_key: { publicKey } }) {
  return explained(browser.usePasskey(publicKey), publicKey.rpId);
}

// Waits until a passkey is picked among a field's suggestions; null when the challenge is about to
// become too old, since the browser itself sets no time limit here. Throws Unfinished.
export async function suggestedPasskey({ public_key: { publicKey, mediation } }) {
  let isStale = false;
  const timer = setTimeout(() => {
    isStale = true;
    browser.stop();
  }, publicKey.timeout * FRESH_PART);
  try {
    return await explained(browser.usePasskey(publicKey, mediation), publicKey.rpId);
  } catch (error) {
    if (isStale) return null;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function explained(ceremony, rpId) {
  try {
    return await ceremony;
  } catch ({ cause }) {
    if (cause.name === "AbortError") throw new Stopped("Stopped.");
    throw new Unfinished(reason(cause, rpId), { cause });
  }
}

function reason({ name, message }, rpId) {
  if (name === "SecurityError") {
    return `Passkeys here belong to ${rpId}, and this page is at ${window.location.host}: see public_site_url.`;
  }
  return REASONS[name] || `${name}: ${message}`;
}

function isAddress(hostname) {
  return /^\d+(\.\d+){3}$/.test(hostname) || hostname.startsWith("[");
}
