// @ts-check
// Between the JSON of the service and the objects of navigator.credentials.
//
// Browsers do this themselves (WebAuthn Level 3, sections 5.1.8 to 5.1.10). This is for older ones,
// and for credentials that a password manager's extension hands out.

/** @import { Schemas } from "../../types" */

/**
 * @param {Schemas["CreationOptions"]} json
 * @returns {PublicKeyCredentialCreationOptions}
 */
export function creationOptions(json) {
  return {
    ...json,
    challenge: bytes(json.challenge),
    user: { ...json.user, id: bytes(json.user.id) },
    excludeCredentials: (json.excludeCredentials || []).map(descriptor),
  };
}

/**
 * @param {Schemas["RequestOptions"]} json
 * @returns {PublicKeyCredentialRequestOptions}
 */
export function requestOptions(json) {
  return {
    ...json,
    challenge: bytes(json.challenge),
    allowCredentials: (json.allowCredentials || []).map(descriptor),
  };
}

/** @param {PublicKeyCredential} credential */
export function credentialJson(credential) {
  const { id, rawId, type, authenticatorAttachment, response } = credential;
  const made = /** @type {AuthenticatorAttestationResponse} */ (response);
  return {
    id,
    rawId: text(rawId),
    type,
    authenticatorAttachment: authenticatorAttachment ?? undefined,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: made.attestationObject
      ? attestation(made)
      : assertion(/** @type {AuthenticatorAssertionResponse} */ (response)),
  };
}

/** @param {AuthenticatorAttestationResponse} response */
function attestation(response) {
  return {
    clientDataJSON: text(response.clientDataJSON),
    attestationObject: text(response.attestationObject),
    transports: response.getTransports?.() ?? [],
  };
}

/** @param {AuthenticatorAssertionResponse} response */
function assertion(response) {
  return {
    clientDataJSON: text(response.clientDataJSON),
    authenticatorData: text(response.authenticatorData),
    signature: text(response.signature),
    userHandle: response.userHandle ? text(response.userHandle) : undefined,
  };
}

/** @param {Schemas["CredentialDescriptor"]} credential */
function descriptor({ id, ...rest }) {
  return { ...rest, id: bytes(id) };
}

/** @param {string} encoded base64url without padding */
function bytes(encoded) {
  const plain = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

/** @param {ArrayBuffer} buffer */
function text(buffer) {
  const plain = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join("");
  return btoa(plain).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
