// @ts-check
// Passkeys in the browser: the service's options go in as JSON, the credential comes out as JSON.
//
// A browser runs one such request at a time, so a new one ends the one before it; a request for
// autofill may have waited for minutes.

import { onDemand } from "./retry.js";

/** @import { Schemas } from "../../types" */

/** Of locks: exclusive while a passkey is made, shared while the browser is told of passkeys. */
export const MAKING = "gatehouse-passkey";
/** For how long a passkey waits until what is told has arrived; older lists are told no more. */
export const FRESH_MS = 5000;

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
 * @param {Schemas["CreationOptions"]} options
 * @returns {Promise<Schemas["NewCredentialJson"]>}
 * @throws {NoPasskey}
 */
export function createPasskey(options) {
  return alone(async (signal) => {
    const publicKey =
      PublicKeyCredential.parseCreationOptionsFromJSON?.(options) ??
      (await byHand()).creationOptions(options);
    return navigator.credentials.create({ publicKey, signal });
  });
}

/**
 * Makes a passkey and has the service accept it. In no tab is the browser told meanwhile of a list
 * in which it is missing: it would remove the passkey.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function whileMaking(work) {
  let isBegun = false;
  const begin = () => {
    isBegun = true;
    return work();
  };
  try {
    const patience = { signal: AbortSignal.timeout(FRESH_MS) };
    return /** @type {T} */ (await navigator.locks.request(MAKING, patience, begin));
  } catch (error) {
    if (isBegun) throw error;
  }
  return work();
}

/**
 * Uses a passkey; `options` are `public_key.publicKey` of login/start. With the mediation
 * "conditional" it waits until one is picked among a field's suggestions.
 * @param {Schemas["RequestOptions"]} options
 * @param {CredentialMediationRequirement} [mediation]
 * @returns {Promise<Schemas["ProofJson"]>}
 * @throws {NoPasskey}
 */
export function usePasskey(options, mediation) {
  return alone(async (signal) => {
    const publicKey =
      PublicKeyCredential.parseRequestOptionsFromJSON?.(options) ??
      (await byHand()).requestOptions(options);
    return navigator.credentials.get({ publicKey, mediation, signal });
  });
}

/**
 * @param {(signal: AbortSignal) => Promise<Credential | null>} ask
 */
async function alone(ask) {
  stop();
  const own = (current = new AbortController());
  try {
    return await credentialJson(/** @type {PublicKeyCredential} */ (await ask(own.signal)));
  } catch (error) {
    throw new NoPasskey(REASONS[/** @type {Error} */ (error).name] ?? "unsupported", error);
  } finally {
    if (current === own) current = null;
  }
}

/** @param {PublicKeyCredential} credential */
async function credentialJson(credential) {
  try {
    return credential.toJSON();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return (await byHand()).credentialJson(credential);
  }
}

/** What browsers do themselves since WebAuthn Level 3. */
function byHand() {
  return onDemand(() => import("./webauthn_json.js"));
}
