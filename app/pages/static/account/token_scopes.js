// @ts-check
// What a token may do: for each area nothing, reading, or writing, which includes reading.

import { el, replace } from "../base/dom.js";
import { t } from "../base/i18n.js";

/** The scopes of each area, the larger last. */
const AREAS = {
  profile: ["profile:read", "profile"],
  files: ["files:read", "files"],
  events: ["events"],
  admin: ["admin:read", "admin"],
};

/**
 * @param {boolean} isAdmin whether those of the administration are offered
 * @returns {{ box: HTMLElement, chosen: () => string[], complain: () => void }} `complain` says
 *   that nothing is chosen
 */
export function scopeFields(isAdmin) {
  const areas = Object.entries(AREAS).filter(([area]) => isAdmin || area !== "admin");
  const problem = el("p", { class: "field-error", role: "alert" });
  const box = el(
    "fieldset",
    { class: "scopes", change: () => replace(problem) },
    el("legend", {}, t("tokens.scopes")),
    el("p", { class: "hint" }, t("tokens.scopes_hint")),
    problem,
    ...areas.map(([area, scopes]) => areaRow(area, scopes)),
  );
  const ticked = () =>
    /** @type {HTMLInputElement[]} */ ([...box.querySelectorAll("input:checked")]);
  return {
    box,
    chosen: () => ticked().flatMap(({ value }) => value || []),
    complain() {
      replace(problem, t("tokens.scopes_missing"));
      ticked()[0]?.focus();
    },
  };
}

/**
 * @param {string} area
 * @param {string[]} scopes
 */
function areaRow(area, scopes) {
  const id = `scope-${area}`;
  const levels = ["none", "read", "write"].slice(0, scopes.length + 1);
  return el(
    "div",
    { class: "scope", role: "radiogroup", "aria-labelledby": id, "aria-describedby": `${id}-hint` },
    el(
      "div",
      {},
      el("span", { id, class: "scope-name" }, t(`scope_area.${area}`)),
      el("p", { class: "hint", id: `${id}-hint` }, t(`scope_area.${area}.hint`)),
    ),
    el(
      "div",
      { class: "levels segments" },
      ...levels.map((level, index) => {
        const value = scopes[index - 1] ?? "";
        const radio = el("input", { type: "radio", name: id, value, checked: index === 0 });
        return el("label", {}, radio, el("span", {}, t(`tokens.level.${level}`)));
      }),
    ),
  );
}
