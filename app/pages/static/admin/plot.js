// @ts-check
// Values per day: bars, and a line with marks, so that two series differ by more than colour.

import { el, replace } from "../base/dom.js";
import { count, shortDay } from "../base/format.js";
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 180;
const MARGIN = { top: 8, right: 4, bottom: 22, left: 36 };
const LABEL_WIDTH = 64;
const MAX_BAR_WIDTH = 28;

/** @typedef {{ name: string, values: number[], shape: "bars" | "line" }} Series */

/**
 * A picture with a sentence as its name, the values of one day below it, and all of them as a
 * table.
 * @param {string} title
 * @param {string[]} dates the oldest first; the last is today
 * @param {Series[]} series at most one of each shape
 */
export function plot(title, dates, series) {
  const picture = el("div", { class: "plot-picture" });
  const readout = el("p", { class: "plot-day", "aria-live": "polite" });
  let chosen = dates.length - 1;
  const choose = (/** @type {number} */ day) => {
    chosen = Math.max(0, Math.min(day, dates.length - 1));
    const said = series.map(({ name, values }) =>
      t("plot.value", { name, value: count(values[chosen] ?? 0) }),
    );
    readout.textContent = `${dayName(dates, chosen)}: ${said.join(", ")}`;
    for (const [day, column] of [...picture.querySelectorAll(".plot-column")].entries())
      column.classList.toggle("chosen", day === chosen);
  };
  const redraw = () => {
    const width = picture.clientWidth;
    if (width > 0)
      replace(picture, drawn(width, name(title, dates, series), dates, series, choose));
    choose(chosen);
  };
  new ResizeObserver(redraw).observe(picture);
  const step = (
    /** @type {"back" | "next"} */ mark,
    /** @type {string} */ label,
    /** @type {number} */ by,
  ) =>
    el(
      "button",
      { type: "button", class: "quiet", "aria-label": label, click: () => choose(chosen + by) },
      icon(mark),
    );
  return el(
    "figure",
    { class: "plot" },
    series.length > 1 &&
      el(
        "ul",
        { class: "plot-legend" },
        ...series.map(({ name, shape }) => el("li", { class: shape }, name)),
      ),
    picture,
    el(
      "div",
      { class: "plot-steps" },
      step("back", t("plot.day_before"), -1),
      readout,
      step("next", t("plot.day_after"), 1),
    ),
    el("details", {}, el("summary", {}, t("plot.table")), tableOf(title, dates, series)),
  );
}

/**
 * @param {string} title
 * @param {string[]} dates
 * @param {Series[]} series
 */
function name(title, dates, series) {
  const parts = series.map(({ name, values }) =>
    t("plot.range", {
      name,
      least: count(Math.min(...values)),
      most: count(Math.max(...values)),
      today: count(values.at(-1) ?? 0),
    }),
  );
  return `${title}, ${t("plot.days", { count: dates.length })}. ${parts.join(" ")}`;
}

/**
 * @param {string[]} dates
 * @param {number} day
 */
function dayName(dates, day) {
  return day === dates.length - 1 ? t("plot.today") : shortDay(String(dates[day]));
}

/**
 * @param {number} width
 * @param {string} label
 * @param {string[]} dates
 * @param {Series[]} series
 * @param {(day: number) => void} choose
 */
function drawn(width, label, dates, series, choose) {
  const most = roundedUp(Math.max(1, ...series.flatMap(({ values }) => values)));
  const inner = {
    width: width - MARGIN.left - MARGIN.right,
    height: HEIGHT - MARGIN.top - MARGIN.bottom,
  };
  const step = inner.width / dates.length;
  const x = (/** @type {number} */ day) => MARGIN.left + (day + 0.5) * step;
  const y = (/** @type {number} */ value) => MARGIN.top + inner.height * (1 - value / most);
  const svg = node("svg", {
    width,
    height: HEIGHT,
    viewBox: `0 0 ${width} ${HEIGHT}`,
    role: "img",
    "aria-label": label,
  });
  for (const value of [0, most / 2, most]) {
    if (!Number.isInteger(value)) continue;
    svg.append(
      node("line", {
        class: "plot-grid",
        x1: MARGIN.left,
        x2: width - MARGIN.right,
        y1: y(value),
        y2: y(value),
      }),
    );
    svg.append(text(MARGIN.left - 6, y(value) + 4, count(value), "end"));
  }
  const isEvery = Math.ceil(LABEL_WIDTH / step);
  for (const [day, date] of dates.entries()) {
    svg.append(
      node("rect", {
        class: "plot-column",
        x: x(day) - step / 2,
        y: MARGIN.top,
        width: step,
        height: inner.height,
      }),
    );
    if ((dates.length - 1 - day) % isEvery === 0)
      svg.append(text(x(day), HEIGHT - 6, shortDay(date), labelAnchor(day, dates.length)));
  }
  for (const { values, shape } of series)
    svg.append(...(shape === "bars" ? bars(values, x, y, step) : line(values, x, y)));
  const followed = (/** @type {PointerEvent} */ event) =>
    choose(Math.floor((event.offsetX - MARGIN.left) / step));
  svg.addEventListener("pointermove", followed);
  svg.addEventListener("pointerdown", followed);
  return svg;
}

/**
 * Today's label would not fit in the middle of a narrow last column.
 * @param {number} day
 * @param {number} days
 */
function labelAnchor(day, days) {
  return days > 8 && day === days - 1 ? "end" : "middle";
}

/**
 * @param {number[]} values
 * @param {(day: number) => number} x
 * @param {(value: number) => number} y
 * @param {number} step
 */
function bars(values, x, y, step) {
  const width = Math.min(MAX_BAR_WIDTH, Math.max(1, step * 0.62));
  return values.map((value, day) => {
    const kind = day === values.length - 1 ? "plot-bar today" : "plot-bar";
    return node("rect", {
      class: kind,
      x: x(day) - width / 2,
      y: y(value),
      width,
      height: y(0) - y(value),
      rx: Math.min(3, width / 3),
    });
  });
}

/**
 * @param {number[]} values
 * @param {(day: number) => number} x
 * @param {(value: number) => number} y
 */
function line(values, x, y) {
  const points = values.map((value, day) => `${x(day)},${y(value)}`).join(" ");
  const marks = values.flatMap((value, day) =>
    value > 0 ? [node("circle", { class: "plot-mark", cx: x(day), cy: y(value), r: 3 })] : [],
  );
  return [node("polyline", { class: "plot-line", points }), ...marks];
}

/**
 * The next of 2, 4, 10, 20, 40, 100 …, of which the half is a whole number, too.
 * @param {number} value
 */
function roundedUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 10].map((one) => one * power).find((one) => one >= value && one % 2 === 0) ?? 2;
}

/**
 * @param {string} title
 * @param {string[]} dates
 * @param {Series[]} series
 */
function tableOf(title, dates, series) {
  const rows = dates.map((_, day) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, dayName(dates, day)),
      ...series.map(({ values }) => el("td", { class: "number" }, count(values[day] ?? 0))),
    ),
  );
  const head = series.map(({ name }) => el("th", { scope: "col", class: "number" }, name));
  return el(
    "table",
    { class: "plain" },
    el("caption", { class: "visually-hidden" }, title),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, t("plot.day")), ...head)),
    el("tbody", {}, ...rows.reverse()),
  );
}

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 */
function node(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string} content
 * @param {string} anchor
 */
function text(x, y, content, anchor) {
  const made = node("text", { class: "plot-text", x, y, "text-anchor": anchor });
  made.textContent = content;
  return made;
}
