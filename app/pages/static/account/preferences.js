// @ts-check
// What somebody prefers; each choice is saved at once, and what is typed by a button.

import { call } from "../base/api.js";
import { remember } from "../base/kept.js";
import { useTheme } from "../base/page.js";
import { byId, el, replace } from "../base/dom.js";
import { field } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showProblem } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { checkbox, select } from "../console/fields.js";
import { open } from "../console/open.js";
import { panel } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { zoneChoice } from "./time_zone.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"patch", "/auth/preferences">} Preferences */

/** Choices for which the service has words of its own, and the first of them is the default. */
const FILES = {
  view_mode: ["list", "grid"],
  browser_open_mode: ["single_click", "double_click"],
  sort_by: ["name", "size", "created_at", "updated_at", "type"],
  sort_order: ["asc", "desc"],
};

open(async () => {
  const me = await load(() =>
    orSignIn(call("get", "/auth/me", { query: { fields: "preferences" } })),
  );
  /** @type {Partial<Preferences>} */
  const now = me.preferences ?? {};
  replace(byId("content"), lookPanel(now), filesPanel(now));
  const { isSaved, ...state } = window.history.state ?? {};
  window.history.replaceState(state, "");
  if (isSaved) toast(t("saved")); // the language, in which the page was loaded again
});

/** @param {Partial<Preferences>} now */
function lookPanel(now) {
  const names = /** @type {HTMLSelectElement | null} */ (document.getElementById("language"));
  const offered = [...(names?.options ?? [])].map(
    (one) => /** @type {[string, string]} */ ([one.value, one.text]),
  );
  const language = select("preferred_language", offered, {
    value: offered.find(([one]) => one === now.language)?.[0] ?? names?.value ?? "",
  });
  const theme = select(
    "theme_mode",
    ["system", "light", "dark"].map((one) => [one, t(`theme.${one}`)]),
    { value: now.theme_mode ?? "system" },
  );
  saveOnChange(language, "language", readIn);
  saveOnChange(theme, "theme_mode", colour);
  const hasThemes = document.getElementById("theme");
  return panel(
    "look",
    t("preferences.look"),
    {},
    el(
      "div",
      { class: "choices-column" },
      offered.length > 1 && field(t("preferences.language"), language),
      hasThemes && field(t("preferences.theme"), theme),
      ...zoneChoice(now.display_time_zone ?? "browser", (zone) =>
        save({ display_time_zone: zone }),
      ),
    ),
  );
}

/** @param {Partial<Preferences>} now */
function filesPanel(now) {
  const fields = Object.entries(FILES).map(([key, options]) => {
    const value = String(now[/** @type {"view_mode"} */ (key)] ?? options[0]);
    const choice = select(
      key,
      options.map((one) => [one, t(`preferences.${key}.${one}`)]),
      { value },
    );
    saveOnChange(choice, /** @type {"view_mode"} */ (key));
    return field(t(`preferences.${key}`), choice);
  });
  const live = checkbox("storage_event_stream_enabled", t("preferences.live"), {
    checked: now.storage_event_stream_enabled ?? true,
    isSwitch: true,
    hint: t("preferences.live_hint"),
  });
  const box = /** @type {HTMLInputElement} */ (live.querySelector("input"));
  box.addEventListener("change", async () => {
    if (!(await save({ storage_event_stream_enabled: box.checked }))) box.checked = !box.checked;
  });
  return panel(
    "files",
    t("preferences.files"),
    { lead: t("preferences.files_lead") },
    el("div", { class: "choices-column" }, ...fields, live),
  );
}

/**
 * Saves what is chosen; what the service refuses is not chosen any more.
 * @param {HTMLSelectElement} choice
 * @param {keyof Preferences} key
 * @param {(value: string) => void} [done]
 */
function saveOnChange(choice, key, done) {
  let { value: saved } = choice;
  choice.addEventListener("change", async () => {
    if (!(await save({ [key]: choice.value }))) {
      choice.value = saved;
      return;
    }
    saved = choice.value;
    done?.(saved);
  });
}

/**
 * Returns whether it is saved. Members that are not named stay as they are.
 * @param {Partial<Preferences>} change
 */
async function save(change) {
  try {
    await orSignIn(call("patch", "/auth/preferences", { body: change }));
    toast(t("saved"));
    return true;
  } catch (error) {
    showProblem(error);
    return false;
  }
}

/** @param {string} language */
function readIn(language) {
  remember("service_language", language);
  window.history.replaceState({ ...window.history.state, isSaved: true }, "");
  window.location.reload();
}

/** @param {string} theme */
function colour(theme) {
  useTheme(theme);
  /** @type {HTMLSelectElement} */ (byId("theme")).value = theme;
}
