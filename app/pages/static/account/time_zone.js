// @ts-check
// The time zone: that of the device, or one that is found by typing a city or a difference.

import { el } from "../base/dom.js";
import { field, handle, mark, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { checkbox, submitLine, warnOfLoss } from "../console/fields.js";

const OF_DEVICE = "browser";

/**
 * @param {string} now
 * @param {(zone: string) => Promise<boolean>} save returns whether it is saved
 */
export function zoneChoice(now, save) {
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const list = el("datalist", { id: "time-zones" });
  const input = textInput("display_time_zone", { list: list.id, required: true });
  input.value = described(now === OF_DEVICE ? here : now);
  const form = el(
    "form",
    { method: "post", novalidate: true, hidden: now === OF_DEVICE },
    field(t("preferences.zone"), input, { hint: t("preferences.zone_hint") }),
    list,
    submitLine(t("save")),
  );
  const tick = checkbox("zone_of_device", t("preferences.zone_browser"), {
    checked: now === OF_DEVICE,
    isSwitch: true,
    hint: t("preferences.zone_here", { zone: described(here) }),
  });
  const box = /** @type {HTMLInputElement} */ (tick.querySelector("input"));
  // All of them take a while to describe.
  input.addEventListener("focus", () => list.childElementCount || list.append(...options()));
  input.addEventListener("focus", () => input.select());
  box.addEventListener("change", async () => {
    if (!(await save(box.checked ? OF_DEVICE : here))) {
      box.checked = !box.checked;
      return;
    }
    input.value = described(here);
    mark(input, "");
    saved();
    form.hidden = box.checked;
    if (!box.checked) input.focus();
  });
  const saved = warnOfLoss(form);
  handle(form, {
    busy: t("saving"),
    checks: {
      display_time_zone: (typed) => (zoneOf(typed) ? "" : t("preferences.zone_unknown")),
    },
    async submit({ display_time_zone: typed = "" }) {
      const zone = zoneOf(typed);
      if (!(await save(zone))) return;
      input.value = described(zone);
      saved();
    },
  });
  return [tick, form];
}

function zones() {
  return Intl.supportedValuesOf("timeZone");
}

function options() {
  return zones().map((zone) => el("option", { value: described(zone) }));
}

/**
 * Such as "Europe/Berlin (UTC+1)": browsers look in all of it for what is typed.
 * @param {string} zone
 */
function described(zone) {
  const name = zone.replaceAll("_", " ");
  try {
    const parts = new Intl.DateTimeFormat("en", {
      timeZone: zone,
      timeZoneName: "shortOffset",
    }).formatToParts();
    const offset = parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
    return `${name} (${offset.replace("GMT", "UTC")})`;
  } catch {
    return name; // the service knows it, this browser does not
  }
}

/**
 * The one zone that is meant by a text: its name, with or without the difference, or its city.
 * @param {string} typed
 * @returns {string} "" if it is none, or one of several
 */
function zoneOf(typed) {
  const name = typed.replace(/\(.*/, "").trim().replaceAll(" ", "_").toLowerCase();
  const all = zones();
  const exact = all.find((zone) => zone.toLowerCase() === name);
  if (exact || !name) return exact ?? "";
  const [found, ...others] = all.filter((zone) => zone.toLowerCase().endsWith(`/${name}`));
  return found && others.length === 0 ? found : otherName(name);
}

/**
 * Names that are not in the list, such as UTC or Asia/Kolkata.
 * @param {string} name
 */
function otherName(name) {
  try {
    if (/^[+-]/.test(name)) return ""; // a difference is no zone
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return "";
  }
}
