// @ts-check
// The fields that a kind of provider has.

import { el } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { hasText, t } from "../base/i18n.js";
import { checkbox, select } from "../console/fields.js";

/** @import { Body } from "../../types" */
/** @import { Kind, Provider } from "./provider.js" */
/** @typedef {Kind["fields"][number]} Field */
/** @typedef {Body<"patch", "/admin/external-auth/providers/{id}">} Changed */
/** @typedef {Changed & { key?: string | null }} Values */

/** @type {Record<string, string>} */
const PLACEHOLDERS = { issuer_url: "https://", icon_url: "/icons/example.svg" };
// What a test does not ask about, beside the switches.
const UNTESTED = new Set(["display_name", "key", "icon_url", "allowed_domains"]);

/**
 * The controls of a kind's fields, as the service lists them.
 * @param {Kind} kind
 * @param {Provider | null} provider
 */
export function fieldsOf(kind, provider) {
  const control = (/** @type {Field} */ one) => controlOf(one, kind, provider);
  const key = textInput("key", { autocapitalize: "none", pattern: "[a-z0-9-]*" });
  const [name, ...usual] = kind.fields.filter((one) => !one.is_advanced).map(control);
  return [
    name,
    !provider && field(t("provider.key"), key, { hint: t("provider.key_hint") }),
    ...usual,
    el(
      "details",
      { class: "more" },
      el("summary", {}, t("provider.more")),
      ...kind.fields.filter((one) => one.is_advanced).map(control),
    ),
  ];
}

/**
 * Whether a control may change without another test.
 * @param {EventTarget | null} control
 */
export function isAsTested(control) {
  return (
    control instanceof HTMLInputElement &&
    (control.type === "checkbox" || UNTESTED.has(control.name))
  );
}

/**
 * @param {Field} one
 * @param {Kind} kind
 * @param {Provider | null} provider
 */
function controlOf({ name, form, required, choices }, kind, provider) {
  /** @type {Record<string, unknown>} */
  const values = { ...kind.create_defaults, ...provider };
  const label = t(`provider.${name}`);
  const hint = hintOf(name, kind, provider);
  // Nothing is offered to people before it was tried.
  if (name === "enabled" && !provider)
    return checkbox(name, label, { disabled: true, hint: t("provider.enabled_after_test") });
  if (form === "switch") return checkbox(name, label, { checked: Boolean(values[name]), hint });
  if (form === "choice") {
    const words = choices.map(
      (one) => /** @type {[string, string]} */ ([one, t(`provider.${name}.${one}`)]),
    );
    return field(label, select(name, words, { value: String(values[name] ?? choices[0]) }), {
      hint,
    });
  }
  if (form === "secret")
    return field(label, textInput(name, { type: "password", autocomplete: "off" }), { hint });
  const value =
    name === "tenant" ? (provider?.options?.microsoft?.tenant ?? "") : (values[name] ?? "");
  const attributes = {
    value: Array.isArray(value) ? value.join(", ") : value,
    autocapitalize: "none",
    required,
    placeholder: PLACEHOLDERS[name],
    type: form === "url" ? "url" : "text",
  };
  return field(label, textInput(name, attributes), { hint });
}

/**
 * @param {string} name
 * @param {Kind} kind
 * @param {Provider | null} provider
 */
function hintOf(name, kind, provider) {
  if (name === "client_secret" && provider?.client_secret_configured)
    return t("provider.secret_kept");
  if (name === "issuer_url" && kind.protocol !== "oidc") return "";
  const key = `provider.${name}_hint`;
  return hasText(key) ? t(key) : "";
}

/**
 * What the fields say, as the service takes it. An empty secret leaves the one there is.
 * @param {HTMLFormElement} form
 * @param {Kind} kind
 * @param {Provider | null} provider
 */
export function valuesOf(form, kind, provider) {
  const given = new FormData(form);
  const forms = new Map(kind.fields.map((one) => [one.name, one.form]));
  /** @type {Record<string, unknown>} */
  const values = {};
  for (const [name, raw] of given) {
    const value = String(raw).trim();
    // A new one is not given what it would have anyway.
    if (!value && (!provider || name === "client_secret")) continue;
    if (name === "tenant") values.options = { microsoft: { tenant: value || null } };
    else if (forms.get(name) === "list") values[name] = value.split(/[\s,]+/).filter(Boolean);
    else values[name] = value || null;
  }
  for (const [name, form] of forms) if (form === "switch") values[name] = given.has(name);
  return /** @type {Values} */ (values);
}
