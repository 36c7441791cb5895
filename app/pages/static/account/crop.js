// @ts-check
// Chooses a square of a picture: by pointer, by keyboard, and by buttons.

import { openDialog } from "../base/dialog.js";
import { el, say } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { button } from "../console/fields.js";
import { pictureOf } from "./canvas.js";

const VIEW = 320;
/** Pixels of a side of what is sent; the service takes no more. */
export const OUTPUT = 1024;
const MAX_ZOOM = 8;
const STEP = 1;
const LARGE_STEP = 10;
const ZOOM_STEP = 1.25;

/**
 * The square that is shown, in pixels of the picture.
 * @typedef {{ x: number, y: number, zoom: number }} Place
 */

/**
 * Returns the chosen square as a picture of 1024 pixels; undefined if it was cancelled, null if the
 * browser makes no picture of it.
 * @param {ImageBitmap} picture
 * @returns {Promise<Blob | null | undefined>}
 */
export function crop(picture) {
  return new Promise((resolve) => {
    /** @type {Promise<Blob | null> | undefined} */
    let result;
    const view = el("canvas", {
      width: VIEW,
      height: VIEW,
      class: "crop-view",
      tabindex: "0",
      role: "application",
      "aria-label": t("crop.view"),
    });
    const previews = [128, 40].map((side) =>
      el("canvas", { width: side, height: side, class: "crop-preview", "aria-hidden": "true" }),
    );
    const zoom = el("input", {
      type: "range",
      id: "crop-zoom",
      min: 0,
      max: 100,
      step: 1,
      value: 0,
    });
    const place = new Cropping(picture, () => {
      for (const canvas of [view, ...previews]) place.draw(canvas);
      zoom.value = String(place.zoomPercent);
    });
    zoom.addEventListener("input", () => place.setZoom(MAX_ZOOM ** (Number(zoom.value) / 100)));
    followPointer(view, place);
    view.addEventListener("keydown", (event) => byKey(event, place));
    const use = el("button", { type: "button", class: "primary" }, t("crop.use"));
    const cancel = button(t("cancel"));
    const content = el(
      "div",
      { class: "dialog-body crop" },
      el("p", { class: "hint" }, t("crop.hint")),
      el("div", { class: "crop-stage" }, view, el("div", { class: "crop-previews" }, ...previews)),
      el(
        "div",
        { class: "crop-zoom" },
        el("label", { for: zoom.id }, t("crop.zoom")),
        button("−", { "aria-label": t("crop.smaller"), click: () => place.zoomBy(1 / ZOOM_STEP) }),
        zoom,
        button("+", { "aria-label": t("crop.larger"), click: () => place.zoomBy(ZOOM_STEP) }),
        button(t("crop.reset"), { class: "link", click: () => place.reset() }),
      ),
      el("div", { class: "dialog-actions" }, cancel, use),
    );
    const close = openDialog(t("crop.title"), [content], {
      focus: view,
      closed: () => resolve(result),
    });
    cancel.addEventListener("click", close);
    use.addEventListener("click", () => {
      result = place.output();
      close();
    });
    place.reset();
  });
}

class Cropping {
  /**
   * @param {ImageBitmap} picture
   * @param {() => void} changed
   */
  constructor(picture, changed) {
    this._picture = picture;
    this._changed = changed;
    this._whole = Math.min(picture.width, picture.height);
    /** @type {Place} */
    this._place = { x: 0, y: 0, zoom: 1 };
  }

  /** The largest square in the middle. */
  reset() {
    const { width, height } = this._picture;
    this._put({ x: (width - this._whole) / 2, y: (height - this._whole) / 2, zoom: 1 });
  }

  /** How many pixels of the picture one of the view is. */
  get scale() {
    return this._whole / this._place.zoom / VIEW;
  }

  get zoomPercent() {
    return Math.round((Math.log(this._place.zoom) / Math.log(MAX_ZOOM)) * 100);
  }

  /**
   * @param {number} dx in pixels of the view
   * @param {number} dy
   */
  move(dx, dy) {
    const { x, y, zoom } = this._place;
    this._put({ x: x + dx * this.scale, y: y + dy * this.scale, zoom });
  }

  /** @param {number} factor */
  zoomBy(factor) {
    this.setZoom(this._place.zoom * factor);
    say(t("crop.zoomed", { percent: Math.round(this._place.zoom * 100) }));
  }

  /** Zooms around the middle. @param {number} wanted */
  setZoom(wanted) {
    const zoom = Math.min(MAX_ZOOM, Math.max(1, wanted));
    const grown = (this._whole / this._place.zoom - this._whole / zoom) / 2;
    this._put({ x: this._place.x + grown, y: this._place.y + grown, zoom });
  }

  /** @param {HTMLCanvasElement} canvas */
  draw(canvas) {
    const side = this._whole / this._place.zoom;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.imageSmoothingQuality = "high";
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(
      this._picture,
      this._place.x,
      this._place.y,
      side,
      side,
      0,
      0,
      canvas.width,
      canvas.height,
    );
  }

  output() {
    const canvas = el("canvas", { width: OUTPUT, height: OUTPUT });
    this.draw(canvas);
    return pictureOf(canvas);
  }

  /** @param {Place} place */
  _put({ x, y, zoom }) {
    const side = this._whole / zoom;
    const within = (/** @type {number} */ value, /** @type {number} */ length) =>
      Math.min(Math.max(0, value), length - side);
    this._place = { x: within(x, this._picture.width), y: within(y, this._picture.height), zoom };
    this._changed();
  }
}

/**
 * @param {HTMLCanvasElement} view
 * @param {Cropping} place
 */
function followPointer(view, place) {
  view.addEventListener("pointerdown", (event) => {
    view.setPointerCapture(event.pointerId);
    event.preventDefault();
    view.focus();
  });
  view.addEventListener("pointermove", (event) => {
    if (!view.hasPointerCapture(event.pointerId)) return;
    const shown = VIEW / view.clientWidth;
    place.move(-event.movementX * shown, -event.movementY * shown);
  });
  view.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      place.setZoom(MAX_ZOOM ** ((place.zoomPercent - Math.sign(event.deltaY) * 4) / 100));
    },
    { passive: false },
  );
}

/**
 * @param {KeyboardEvent} event
 * @param {Cropping} place
 */
function byKey(event, place) {
  const step = event.shiftKey ? LARGE_STEP : STEP;
  /** @type {Record<string, () => void>} */
  const keys = {
    ArrowLeft: () => place.move(-step, 0),
    ArrowRight: () => place.move(step, 0),
    ArrowUp: () => place.move(0, -step),
    ArrowDown: () => place.move(0, step),
    "+": () => place.zoomBy(ZOOM_STEP),
    "-": () => place.zoomBy(1 / ZOOM_STEP),
  };
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}
