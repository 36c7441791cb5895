// @ts-check
// Until when a token is valid.

import { el } from "../base/dom.js";
import { field } from "../base/form.js";
import { dateText, zoneName } from "../base/format.js";
import { t } from "../base/i18n.js";
import { select } from "../console/fields.js";

const USUAL = [30, 90, 365];
const AT_FIRST = 90;
const MOST = 3650; // so does the service
const DAY_MS = 86_400_000;

/**
 * @param {number} limit in days, 0 if it need not end
 * @returns {{ fields: HTMLElement[], days: () => number | null, check: () => string }} `days` are
 *   null for no end; `check` says what is wrong with the date
 */
export function endFields(limit) {
  const most = limit || MOST;
  const usual = USUAL.filter((days) => days <= most);
  const offered = usual.length > 0 ? usual : [most];
  const choice = select(
    "expires_in_days",
    [
      ...offered.map(
        (days) =>
          /** @type {[string, string]} */ ([String(days), t("tokens.in_days", { count: days })]),
      ),
      ["date", t("tokens.on_date")],
      ...(limit ? [] : [/** @type {[string, string]} */ (["never", t("never")])]),
    ],
    { value: String(offered.includes(AT_FIRST) ? AT_FIRST : offered.at(-1)) },
  );
  const [first, last] = [dateIn(1), dateIn(most)];
  const date = el("input", { type: "date", name: "end_date", min: first, max: last });
  const choiceField = field(t("tokens.expires"), choice, { hint: " " });
  const dateField = field(t("tokens.date"), date);
  const hint = /** @type {HTMLElement} */ (choiceField.querySelector(".hint"));
  const days = () => {
    if (choice.value === "never") return null;
    return choice.value === "date" ? daysUntil(date.value) : Number(choice.value);
  };
  const show = () => {
    dateField.hidden = choice.value !== "date";
    hint.textContent = dateField.hidden ? sentence(days()) : "";
  };
  choice.addEventListener("change", show);
  show();
  return {
    fields: [choiceField, dateField],
    days,
    check() {
      if (dateField.hidden || (date.value >= first && date.value <= last)) return "";
      return t("tokens.date_invalid", { first: dateText(first), last: dateText(last) });
    },
  };
}

/** @param {number | null} days */
function sentence(days) {
  return days === null
    ? t("tokens.no_end_hint")
    : t("tokens.ends_on", { date: dateText(dateIn(days)) });
}

/** @param {number} days from today */
function dateIn(days) {
  const today = new Date().toLocaleDateString("sv", { timeZone: zoneName() });
  return new Date(Date.parse(today) + days * DAY_MS).toISOString().slice(0, 10);
}

/** @param {string} date such as 2026-11-26 */
function daysUntil(date) {
  return Math.round((Date.parse(date) - Date.parse(dateIn(0))) / DAY_MS);
}
