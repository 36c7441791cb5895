// @ts-check
// Values per day: bars, and a line with marks, so that two series differ by more than colour.

import { el, replace } from "../base/dom.js";
import { count, shortCount, shortDay } from "../base/format.js";
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 180;
const MARGIN = { top: 8, right: 4, bottom: 22 };
const LABEL_GAP = 12;
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
    if (width > 0) draw(picture, width, name(title, dates, series), dates, series, choose);
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
 * @param {HTMLElement} picture
 * @param {number} width
 * @param {string} label
 * @param {string[]} dates
 * @param {Series[]} series
 * @param {(day: number) => void} choose
 */
function draw(picture, width, label, dates, series, choose) {
  const svg = /** @type {SVGSVGElement} */ (
    node("svg", {
      width,
      height: HEIGHT,
      viewBox: `0 0 ${width} ${HEIGHT}`,
      role: "img",
      "aria-label": label,
    })
  );
  replace(picture, svg); // only what is shown can be measured
  const most = roundedUp(Math.max(1, ...series.flatMap(({ values }) => values)));
  const heights = [0, most / 2, most].filter(Number.isInteger);
  const left = widest(svg, heights.map(shortCount)) + LABEL_GAP;
  const inner = {
    width: width - left - MARGIN.right,
    height: HEIGHT - MARGIN.top - MARGIN.bottom,
  };
  const step = inner.width / dates.length;
  const x = (/** @type {number} */ day) => left + (day + 0.5) * step;
  const y = (/** @type {number} */ value) => MARGIN.top + inner.height * (1 - value / most);
  for (const value of heights) {
    svg.append(
      node("line", {
        class: "plot-grid",
        x1: left,
        x2: width - MARGIN.right,
        y1: y(value),
        y2: y(value),
      }),
    );
    svg.append(text(left - 6, y(value) + 4, shortCount(value), "end"));
  }
  const labels = dates.map(shortDay);
  const half = widest(svg, labels) / 2;
  // That of today does not fit in the middle of a narrow last column.
  const last = Math.min(x(dates.length - 1), width - half);
  const isEvery = Math.ceil((2 * half + LABEL_GAP + x(dates.length - 1) - last) / step);
  for (const [day, words] of labels.entries()) {
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
      svg.append(text(Math.max(half, Math.min(x(day), last)), HEIGHT - 6, words, "middle"));
  }
  for (const { values, shape } of series)
    svg.append(...(shape === "bars" ? bars(values, x, y, step) : line(values, x, y)));
  const followed = (/** @type {PointerEvent} */ event) =>
    choose(Math.floor((event.offsetX - left) / step));
  svg.addEventListener("pointermove", followed);
  svg.addEventListener("pointerdown", followed);
}

/**
 * The width of the widest of some labels.
 * @param {SVGSVGElement} svg
 * @param {string[]} labels
 */
function widest(svg, labels) {
  const probe = /** @type {SVGTextElement} */ (text(0, 0, "", "start"));
  svg.append(probe);
  const widths = labels.map((label) => {
    probe.textContent = label;
    return probe.getComputedTextLength();
  });
  probe.remove();
  return Math.ceil(Math.max(...widths));
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
