// What a machine can check of WCAG 2.2 and ARIA on a page: a list of faults, which should be empty.
() => {
  const faults = [];
  const tell = (what, element) => faults.push(`${what}: ${element.outerHTML.slice(0, 120)}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const named = (element) =>
    (element.getAttribute("aria-label") || "").trim() ||
    (element.getAttribute("aria-labelledby") || "").split(/\s+/).some((id) => id && document.getElementById(id)) ||
    element.textContent.trim();

  if (!document.documentElement.lang) faults.push("the page names no lang");
  if (!document.title.trim()) faults.push("the page has no title");
  for (const [landmark, count] of [["main", 1], ["nav", 1], ["body > header", 1], ["h1", 1]]) {
    if (all(landmark).length !== count) faults.push(`${all(landmark).length} × ${landmark}`);
  }
  all("nav, [role=region]").forEach((one) => named(one) || tell("a landmark without a name", one));

  let level = 0;
  for (const heading of all("h1, h2, h3, h4, h5, h6")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) tell(`a level is skipped before heading h${own}`, heading);
    level = own;
  }

  const ids = new Set();
  for (const one of all("[id]")) {
    if (ids.has(one.id)) tell(`the id ${one.id} is there twice`, one);
    ids.add(one.id);
  }
  for (const one of all("[aria-labelledby], label[for]")) {
    for (const id of (one.getAttribute("aria-labelledby") || one.htmlFor).split(/\s+/)) {
      if (!ids.has(id)) tell(`it refers to ${id}, which is not there`, one);
    }
  }
  for (const link of all("a[href^='#']")) {
    if (!ids.has(link.hash.slice(1))) tell("a link to what is not there", link);
  }

  all("a, button, summary").forEach((one) => named(one) || tell("a link or button without a name", one));
  all("input").forEach((one) => (one.labels.length && one.labels[0].textContent.trim()) || tell("an input without a label", one));
  for (const picture of all("svg")) {
    const hidden = picture.getAttribute("aria-hidden") === "true";
    if (!hidden && !(picture.getAttribute("role") === "img" && picture.querySelector("title")?.textContent.trim())) {
      tell("an image without a name", picture);
    }
  }
  for (const table of all("table")) {
    if (!table.caption?.textContent.trim()) tell("a table without a caption", table);
    const heads = [...table.querySelectorAll("th")];
    if (!heads.length || heads.some((head) => !head.scope)) tell("a table whose headings have no scope", table);
  }
  for (const region of all("*")) {
    const scrolls = region.scrollWidth > region.clientWidth + 1 && getComputedStyle(region).overflowX === "auto";
    if (scrolls && region.tabIndex < 0) tell("a region that scrolls and cannot be reached with the keyboard", region);
  }

  // contrast: 4.5 to 1 for text, 3 to 1 for large text
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colour = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = colour(getComputedStyle(one).backgroundColor);
      if (found[3] === 255) return found;
    }
    return [255, 255, 255, 255];
  };
  const known = new Map();
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const element = words.currentNode.parentElement;
    if (!words.currentNode.data.trim() || element.closest("script, style, title, desc, .out-of-sight, [hidden]")) continue;
    if (!element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const ink = element instanceof SVGElement ? style.fill : style.color;
    const paper = ground(element);
    const key = `${ink} ${paper}`;
    if (!known.has(key)) {
      const [light, dark] = [luminance(colour(ink)), luminance(paper)].sort((a, b) => b - a);
      known.set(key, (light + 0.05) / (dark + 0.05));
    }
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (known.get(key) < (large ? 3 : 4.5)) tell(`contrast ${known.get(key).toFixed(2)}`, element);
  }
  return faults;
}
