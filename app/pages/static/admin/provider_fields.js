// @ts-check
// The fields that a kind of provider has.

import { el } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { checkbox, field, select, textInput } from "../console/fields.js";

/** @typedef {import("./provider.js").Kind} Kind */
/** @typedef {import("./provider.js").Provider} Provider */

const ENDPOINTS = /** @type {const} */ (["authorization_url", "token_url", "userinfo_url"]);
const SWITCHES = /** @type {const} */ ([
  "enabled",
  "auto_provision_enabled",
  "auto_link_verified_email_enabled",
  "require_email_verified",
]);
const CLAIMS = /** @type {const} */ ([
  "subject_claim",
  "username_claim",
  "display_name_claim",
  "email_claim",
  "email_verified_claim",
  "groups_claim",
  "avatar_url_claim",
]);
const TOKEN_AUTHS = /** @type {const} */ (["auto", "basic", "post"]);

/**
 * @param {Kind} kind
 * @param {Provider | null} provider
 */
export function fieldsOf(kind, provider) {
  const isOidc = kind.protocol === "oidc";
  const hasEndpoints = kind.manual_endpoint_configuration_supported;
  // The way of the secret is known of a service whose address is.
  const hasTokenAuth = kind.issuer_url_supported;
  const text = (
    /** @type {string} */ name,
    /** @type {Record<string, unknown>} */ attributes = {},
    hint = "",
  ) =>
    field(
      t(`provider.${name}`),
      textInput(name, {
        value: /** @type {Record<string, unknown> | null} */ (provider)?.[name] ?? "",
        autocapitalize: "none",
        ...attributes,
      }),
      { hint },
    );
  return [
    text(
      "display_name",
      { required: true, value: provider?.display_name ?? kind.create_defaults.display_name },
      t("provider.display_name_hint"),
    ),
    !provider && text("key", { pattern: "[a-z0-9-]*" }, t("provider.key_hint")),
    kind.issuer_url_supported &&
      text(
        "issuer_url",
        { type: "url", required: kind.issuer_url_required, placeholder: "https://" },
        isOidc ? t("provider.issuer_hint") : "",
      ),
    kind.kind === "microsoft" &&
      field(
        t("provider.tenant"),
        textInput("tenant", { value: provider?.options?.microsoft?.tenant ?? "" }),
        { hint: t("provider.tenant_hint") },
      ),
    ...(hasEndpoints
      ? ENDPOINTS.map((name) => text(name, { type: "url", required: kind[`${name}_required`] }))
      : []),
    text("client_id", { required: true }),
    field(
      t("provider.client_secret"),
      textInput("client_secret", { type: "password", autocomplete: "off" }),
      {
        hint: t(
          provider?.client_secret_configured ? "provider.secret_kept" : "provider.secret_hint",
        ),
      },
    ),
    text("scopes", { value: provider?.scopes ?? kind.default_scopes }),
    ...SWITCHES.map((name) =>
      checkbox(name, t(`provider.${name}`), {
        checked: provider?.[name] ?? kind.create_defaults[name],
        hint: t(`provider.${name}_hint`),
      }),
    ),
    field(
      t("provider.allowed_domains"),
      textInput("allowed_domains", { value: (provider?.allowed_domains ?? []).join(", ") }),
      { hint: t("provider.domains_hint") },
    ),
    el(
      "details",
      { class: "more" },
      el("summary", {}, t("provider.more")),
      text("icon_url", { placeholder: "/icons/example.svg" }),
      hasTokenAuth &&
        field(
          t("provider.token_auth"),
          select(
            "token_auth",
            TOKEN_AUTHS.map((one) => [one, t(`provider.token_auth.${one}`)]),
            { value: provider?.token_auth ?? "auto" },
          ),
        ),
      ...(isOidc || kind.kind === "generic_oauth2" ? CLAIMS.map((name) => text(name)) : []),
    ),
  ];
}

/**
 * What the fields say, as the service takes it. An empty secret leaves the one there is.
 * @param {HTMLFormElement} form
 * @param {Kind} kind
 * @param {Provider | null} provider
 */
export function valuesOf(form, kind, provider) {
  const given = new FormData(form);
  /** @type {Record<string, unknown>} */
  const values = {};
  for (const [name, raw] of given) {
    const value = String(raw).trim();
    if (name === "tenant") values.options = { microsoft: { tenant: value || null } };
    else if (name === "allowed_domains") values[name] = value.split(/[\s,]+/).filter(Boolean);
    else if (!SWITCHES.includes(/** @type {any} */ (name))) values[name] = value || null;
  }
  for (const name of SWITCHES) values[name] = given.has(name);
  if (!values.client_secret) delete values.client_secret;
  if (!provider && !values.key) delete values.key;
  // A new one is not given what it would have anyway.
  if (!provider)
    for (const [name, value] of Object.entries(values)) if (value === null) delete values[name];
  return values;
}
