// @ts-check
// An amount of storage with its unit; 0 is no limit.

import { field, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { select } from "../console/fields.js";

/** Powers of 1000, as sizes are shown. */
const UNITS = { MB: 1e6, GB: 1e9, TB: 1e12 };

/**
 * @param {number} bytes
 * @returns {{ box: HTMLElement, input: HTMLInputElement, bytes: () => number | null }} `bytes` is
 *   null for what is no amount
 */
export function quotaField(bytes) {
  const [unit, factor] = /** @type {[string, number]} */ (
    Object.entries(UNITS)
      .reverse()
      .find(([, one]) => bytes >= one) ?? ["GB", UNITS.GB]
  );
  const input = textInput("storage_quota", {
    type: "number",
    min: 0,
    step: "any",
    inputmode: "decimal",
    value: bytes / factor,
  });
  const units = select(
    "storage_unit",
    Object.keys(UNITS).map((one) => [one, one]),
    { value: unit, "aria-label": t("quota.unit") },
  );
  const read = () => {
    const amount =
      input.value === ""
        ? NaN
        : Number(input.value) * (UNITS[/** @type {keyof typeof UNITS} */ (units.value)] ?? 0);
    return amount >= 0 && Number.isFinite(amount) ? Math.round(amount) : null;
  };
  return {
    box: field(t("quota.label"), input, { hint: t("quota.hint"), beside: units }),
    input,
    bytes: read,
  };
}
