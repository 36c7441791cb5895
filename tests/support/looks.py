"""What a designer would send back at a glance, as rules: run on a page as it stands."""

from playwright.sync_api import Page

# Words that stand on two lines without a hyphen or a place to break; longer ones may.
LONGEST_WORD = 24
BROKEN = r"""(longest) => {
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    const { parentElement: parent } = node;
    if (!parent.checkVisibility({ visibilityProperty: true })) continue;
    if (parent.closest(".visually-hidden, .skip-link, option, textarea, svg, noscript")) continue;
    for (const { 0: word, index } of node.data.matchAll(/[\p{L}\p{N}]{2,}/gu)) {
      if (word.length > longest || /\p{Script=Han}/u.test(word)) continue;
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const lines = new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom)));
      if (lines.size > 1) found.push(`broken: ${word} in ${node.data.trim().slice(0, 80)}`);
    }
  }
  return found;
}"""
# Texts and controls that lie on each other. What stays in place while a page is scrolled may,
# and what is there for screen readers alone.
OVERLAPPING = """() => {
  const stays = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const { position, clipPath } = getComputedStyle(one);
      if (["fixed", "sticky"].includes(position) || clipPath !== "none") return true;
    }
    return false;
  };
  const boxes = [];
  for (const node of document.querySelectorAll("body *")) {
    const hasText = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    if (!hasText && !node.matches("input, select, textarea, img, svg text")) continue;
    if (!node.checkVisibility({ visibilityProperty: true })) continue;
    if (node.closest(".visually-hidden, .skip-link, option, noscript, .segments input")) continue;
    if (stays(node)) continue;
    const range = document.createRange();
    for (const one of hasText ? node.childNodes : [node]) {
      if (hasText && !(one.nodeType === 3 && one.data.trim())) continue;
      if (hasText) range.selectNodeContents(one);
      const rects = hasText ? [...range.getClientRects()] : [node.getBoundingClientRect()];
      for (const rect of rects) if (rect.width > 1) boxes.push({ node, rect });
    }
  }
  const found = new Set();
  for (const [index, one] of boxes.entries())
    for (const other of boxes.slice(index + 1)) {
      if (one.node.contains(other.node) || other.node.contains(one.node)) continue;
      const wide = Math.min(one.rect.right, other.rect.right) -
        Math.max(one.rect.left, other.rect.left);
      const high = Math.min(one.rect.bottom, other.rect.bottom) -
        Math.max(one.rect.top, other.rect.top);
      const words = ({ node }) => (node.textContent.trim() || node.outerHTML).slice(0, 60);
      if (wide > 2 && high > 4) found.add(`overlap: ${words(one)} / ${words(other)}`);
    }
  return [...found];
}"""


def flaws(page: Page) -> list[str]:
    """Return the words that are broken inside, and what lies on something else."""
    found: list[str] = page.evaluate(BROKEN, LONGEST_WORD)
    found += page.evaluate(OVERLAPPING)
    return found
