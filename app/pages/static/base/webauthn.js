// @ts-check
// Passkeys in the browser: the service's options go in as JSON, the credential comes out as JSON.
//
// A browser runs one such request at a time, so a new one ends the one before it; a request for
// autofill may have waited for minutes.

import { creationOptions, credentialJson, requestOptions } from "./webauthn_json.js";

/** @type {AbortController | null} */
let current = null;

/** The browser gave no passkey; `reason` says why, as part of the key of a text. */
export class NoPasskey extends Error {
  /**
   * @param {"cancelled" | "exists" | "unsupported" | "address" | "unverified"} reason
   * @param {unknown} cause
   */
  constructor(reason, cause) {
    super(reason, { cause });
    this.reason = reason;
  }

  /** Whether the person ended it, or began something else. */
  get isSilent() {
    return this.reason === "cancelled";
  }
}

/** @type {Record<string, NoPasskey["reason"]>} */
const REASONS = {
  AbortError: "cancelled",
  NotAllowedError: "cancelled",
  InvalidStateError: "exists",
  SecurityError: "address",
  ConstraintError: "unverified",
};

/** Whether passkeys can work on this page at all. */
export function isPossible() {
  const isAddress = /^\d+(\.\d+){3}$|^\[/.test(window.location.hostname);
  return window.isSecureContext && "PublicKeyCredential" in window && !isAddress;
}

export async function offersAutofill() {
  return isPossible() && (await PublicKeyCredential.isConditionalMediationAvailable?.()) === true;
}

/** Ends the request that waits, if one does. */
export function stop() {
  current?.abort();
  current = null;
}

/**
 * Makes a passkey; `options` are `public_key.publicKey` of register/start.
 * @param {any} options
 * @returns {Promise<any>}
 * @throws {NoPasskey}
 */
export function createPasskey(options) {
  return alone((signal) => navigator.credentials.create({ publicKey: creationOptions(options), signal }));
}

/**
 * Uses a passkey; `options` are `public_key.publicKey` of login/start. With the mediation
 * "conditional" it waits until one is picked among a field's suggestions.
 * @param {any} options
 * @param {CredentialMediationRequirement} [mediation]
 * @returns {Promise<any>}
 * @throws {NoPasskey}
 */
export function usePasskey(options, mediation) {
  return alone((signal) => navigator.credentials.get({ publicKey: requestOptions(options), mediation, signal }));
}

/**
 * Tells the browser that the service does not know a passkey, so that it is not offered again.
 * @param {string} rpId
 * @param {string} credentialId
 */
export function forget(rpId, credentialId) {
  const api = /** @type {any} */ (window.PublicKeyCredential);
  return api.signalUnknownCredential?.({ rpId, credentialId })?.catch(() => undefined);
}

/**
 * @param {(signal: AbortSignal) => Promise<Credential | null>} ask
 */
async function alone(ask) {
  stop();
  const own = (current = new AbortController());
  try {
    return credentialJson(await ask(own.signal));
  } catch (error) {
    throw new NoPasskey(REASONS[/** @type {Error} */ (error).name] ?? "unsupported", error);
  } finally {
    if (current === own) current = null;
  }
}
