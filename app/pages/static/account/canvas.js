// @ts-check
// Pictures of what was drawn. Browsers that resist fingerprinting give white, noise or nothing
// instead.

import { el } from "../base/dom.js";

const SIDE = 32;
/** Of the quarters of a picture that is drawn to see what comes out. */
const COLOURS = [
  [200, 40, 40],
  [30, 130, 60],
  [40, 80, 200],
  [20, 20, 24],
];
// Compression changes colours, and so does the little noise of some browsers, which nobody sees.
const TOLERANCE = 40;

/**
 * What was drawn, as WebP where the browser can make it, and PNG elsewhere; null if it makes
 * nothing.
 * @param {HTMLCanvasElement} canvas
 * @returns {Promise<Blob | null>}
 */
export function pictureOf(canvas) {
  return new Promise((resolve) => canvas.toBlob(resolve, "image/webp", 0.92));
}

/**
 * Whether what is drawn here is what comes out: known colours are made a picture and read back.
 * @returns {Promise<boolean>}
 */
export async function givesPictures() {
  try {
    const [drawn, read] = [1, 2].map(() =>
      el("canvas", { width: SIDE, height: SIDE }).getContext("2d"),
    );
    if (!drawn || !read) return false;
    COLOURS.forEach((colour, quarter) => {
      drawn.fillStyle = `rgb(${colour.join(" ")})`;
      drawn.fillRect(...cornerOf(quarter), SIDE / 2, SIDE / 2);
    });
    const picture = await pictureOf(drawn.canvas);
    if (!picture) return false;
    read.drawImage(await createImageBitmap(picture), 0, 0);
    return COLOURS.every((colour, quarter) => {
      const [x, y] = cornerOf(quarter);
      const { data } = read.getImageData(x + SIDE / 4, y + SIDE / 4, 1, 1);
      return colour.every((part, index) => Math.abs(part - Number(data[index])) <= TOLERANCE);
    });
  } catch {
    return false;
  }
}

/**
 * @param {number} quarter
 * @returns {[number, number]}
 */
function cornerOf(quarter) {
  return [((quarter % 2) * SIDE) / 2, (Math.floor(quarter / 2) * SIDE) / 2];
}
