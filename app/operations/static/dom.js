// Builds elements; text is always set as text, so nothing an answer says becomes markup.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

export function replace(host, ...children) {
  host.replaceChildren(...children.flat().filter((child) => child != null && child !== false));
}
