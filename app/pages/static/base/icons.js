// @ts-check
// Line drawings of 20 × 20, as elements, since no markup may be made of text.

const SVG = "http://www.w3.org/2000/svg";
const PATHS = {
  passkey:
    "M7.5 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6M2.5 17v-1.5a4 4 0 0 1 4-4h2q.9 0 1.7.4M15 8.5a2.5 2.5 0 0 0-1 4.8V17l1 1 1.2-1.2-.8-1 .8-1-.7-1a2.5 2.5 0 0 0-.5-5.3",
  shown:
    "M2 10s3-5.5 8-5.5 8 5.5 8 5.5-3 5.5-8 5.5S2 10 2 10m8 2.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5",
  hidden:
    "M2 10s3-5.5 8-5.5 8 5.5 8 5.5-3 5.5-8 5.5S2 10 2 10m8 2.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M3.5 3.5l13 13",
  problem: "M10 6.5v4.2m0 2.8v.1M10 18a8 8 0 1 0 0-16 8 8 0 0 0 0 16",
  done: "M6.5 10.2l2.4 2.4 4.8-5M10 18a8 8 0 1 0 0-16 8 8 0 0 0 0 16",
  mail: "M3 5h14v10.5H3zM3 5.5l7 5.5 7-5.5",
  back: "M12 4.5L6.5 10l5.5 5.5",
  next: "M8 4.5l5.5 5.5L8 15.5",
  close: "M5 5l10 10M15 5L5 15",
  list: "M3 5.5h14M3 10h14M3 14.5h14",
  leave: "M8 3.5H4v13h4M12.5 6.5L16 10l-3.5 3.5M7.5 10H16",
  person:
    "M10 9.5a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4M3.5 17c.6-3 3.2-4.6 6.5-4.6s5.9 1.6 6.5 4.6",
  people:
    "M7.5 9a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6M2 16.5c.5-2.7 2.6-4.2 5.5-4.2s5 1.5 5.5 4.2M13 3.7a2.8 2.8 0 0 1 0 5.1M15 12.6c1.7.6 2.7 1.9 3 3.9",
  team: "M10 7.5a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6M5 16.8a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6M15 16.8a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6M8.8 9.6l-2.5 2.9M11.2 9.6l2.5 2.9M7.4 14.6h5.2",
  shield: "M10 2.5l6 2.2v4.6c0 3.8-2.5 6.7-6 8.2-3.5-1.5-6-4.4-6-8.2V4.7zM7.5 10l1.9 1.9 3.3-3.6",
  devices: "M2.5 4h12v8h-12zM5 15.5h5M12.5 8h5v9h-5z",
  key: "M6.5 17a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7M9 11l7.5-7.5M12.5 7.5l2.5 2.5M15 5l2 2",
  link: "M8.5 11.5a3.2 3.2 0 0 0 4.6 0l2.6-2.6a3.2 3.2 0 0 0-4.6-4.6L10 5.4M11.5 8.5a3.2 3.2 0 0 0-4.6 0l-2.6 2.6a3.2 3.2 0 0 0 4.6 4.6L10 14.6",
  sliders:
    "M3 6h7.5M14.5 6H17M3 14h2.5M9.5 14H17M12.5 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4M7.5 16a2 2 0 1 0 0-4 2 2 0 0 0 0 4",
  clock: "M10 17.5a7.5 7.5 0 1 0 0-15 7.5 7.5 0 0 0 0 15M10 5.8V10l2.8 1.8",
  box: "M3 6.3L10 3l7 3.3v7.4L10 17l-7-3.3zM3 6.3l7 3.3 7-3.3M10 9.6V17",
  chart: "M3 3v14h14M6.5 13.5v-3M10 13.5V6.5M13.5 13.5v-5",
  outbox: "M3 11.5l2.4-7h9.2l2.4 7v4.8H3zM3 11.5h4l1 2h4l1-2h4",
  pulse: "M2.5 10.5H6L8 4.5l4 11.5 2-5.5h3.5",
  search: "M9 14.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11M13 13l4 4",
  keyboard:
    "M2.5 5h15v10h-15zM5.5 8h.1M8.5 8h.1M11.5 8h.1M14.5 8h.1M5.5 10.5h.1M8.5 10.5h.1M11.5 10.5h.1M14.5 10.5h.1M7 12.8h6",
  reload: "M16 10a6 6 0 1 1-1.8-4.3M16.2 3v3.2H13",
  up: "M5 12l5-5 5 5",
  down: "M5 8l5 5 5-5",
};

/** @typedef {keyof typeof PATHS} Icon */

/**
 * @param {Icon} name
 * @returns {SVGSVGElement}
 */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
