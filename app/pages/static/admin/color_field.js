// @ts-check
// A colour: typed or picked, with what can be read on it.

import { el } from "../base/dom.js";
import { textInput } from "../base/form.js";
import { language, t } from "../base/i18n.js";

const COLOR = /^#[0-9a-f]{6}$/i;
/** What text needs (WCAG 2.2, 1.4.3). */
const READABLE = 4.5;

/**
 * @param {string} key
 * @param {string} value
 * @param {(value: string) => void} set
 */
export function colorField(key, value, set) {
  const input = textInput(key, { id: key, value, maxlength: 7, autocapitalize: "none" });
  const picker = el("input", { type: "color", class: "swatch", "aria-label": t("settings.pick") });
  const sample = el("span", { class: "sample", "aria-hidden": "true" }, "Aa");
  const words = el("span", {});
  const note = el("p", { class: "hint color-note" }, sample, words);
  const show = () => {
    const color = input.value.trim();
    note.hidden = !COLOR.test(color);
    if (note.hidden) return;
    picker.value = color.toLowerCase();
    const light = luminance(color);
    const [white, black] = [1.05 / (light + 0.05), (light + 0.05) / 0.05];
    sample.style.backgroundColor = color;
    sample.style.color = white > black ? "#ffffff" : "#000000";
    words.textContent = t("settings.contrast", {
      white: ratio(white),
      black: ratio(black),
      least: ratio(READABLE),
    });
  };
  input.addEventListener("input", () => {
    show();
    set(input.value);
  });
  picker.addEventListener("input", () => {
    input.value = picker.value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  show();
  return el("div", {}, el("div", { class: "side-by-side" }, picker, input), note);
}

/** @param {number} value */
function ratio(value) {
  // Rounded down: what is shown as enough is enough.
  const number = Math.floor(value * 10) / 10;
  return `${number.toLocaleString(language, { minimumFractionDigits: 1 })}:1`;
}

/**
 * How light a colour is, as WCAG 2.2 defines it.
 * @param {string} color
 */
function luminance(color) {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
