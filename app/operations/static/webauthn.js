// Passkeys in the browser: the service's options go in as JSON, the credential comes out as JSON.
//
// A browser runs one such request at a time, so a new one ends the one before it; a request for
// autofill may have waited for minutes.

import { Stopped, Unfinished } from "./unfinished.js";
import { creationOptions, credentialJson, requestOptions } from "./base/webauthn_json.js";

// The service forgets a challenge after its time-out; autofill asks for a new one before that.
const FRESH_PART = 0.9;

const REASONS = {
  ConstraintError: "No authenticator here can verify who you are with a PIN, a finger or a face.",
  InvalidStateError: "This authenticator already holds a passkey of this account.",
  NotAllowedError:
    "The browser gave no passkey: you cancelled, it took too long, or no authenticator here can do it and verify who you are.",
  NotSupportedError: "This browser or authenticator cannot do what the service asks for.",
};

let current = null;

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

// Ends the request that waits, if one does.
export function stop() {
  current?.abort();
  current = null;
}

// Makes a passkey; `answer` is what register/start sent. Throws Unfinished.
export async function createPasskey({ public_key: { publicKey } }) {
  const ask = (signal) =>
    navigator.credentials.create({ publicKey: creationOptions(publicKey), signal });
  return ceremony(ask, publicKey.rp.id);
}

// Uses a passkey; `answer` is what login/start sent. Throws Unfinished.
export async function usePasskey({ public_key: { publicKey } }) {
  const ask = (signal) =>
    navigator.credentials.get({ publicKey: requestOptions(publicKey), signal });
  return ceremony(ask, publicKey.rpId);
}

// Waits until a passkey is picked among a field's suggestions; null when the challenge is about to
// become too old, since the browser itself sets no time limit here. Throws Unfinished.
export async function suggestedPasskey({ public_key: { publicKey, mediation } }) {
  let isStale = false;
  let timer;
  const ask = (signal) => {
    const own = current;
    timer = setTimeout(() => {
      isStale = true;
      own.abort();
    }, publicKey.timeout * FRESH_PART);
    return navigator.credentials.get({ publicKey: requestOptions(publicKey), mediation, signal });
  };
  try {
    return await ceremony(ask, publicKey.rpId);
  } catch (error) {
    if (isStale) return null;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function ceremony(ask, rpId) {
  stop();
  const own = (current = new AbortController());
  try {
    return credentialJson(await ask(own.signal));
  } catch (error) {
    if (own.signal.aborted) throw new Stopped("Stopped.");
    throw new Unfinished(reason(error, rpId), { cause: error });
  } finally {
    if (current === own) current = null;
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
