// SPDX-License-Identifier: Apache-2.0
// What is wrong with a page as this browser shows it: a list of sentences. Run by test_browser.py.
const problems = [];
const SMALLEST = 12; // CSS pixels
const CONTRAST = 4.5; // WCAG 2.2, 1.4.3
const viewport = document.documentElement.clientWidth;
const shown = (text) => JSON.stringify(text.trim().slice(0, 40));

function checkPage(width) {
  if (!document.documentElement.lang) problems.push("lang: not set");
  if (!document.title.trim()) problems.push("title: empty");
  if (viewport !== width) problems.push(`viewport: ${viewport} pixels wide, not ${width}`);
  const { scrollWidth, clientWidth } = document.scrollingElement;
  if (scrollWidth > clientWidth) problems.push(`overflow: ${scrollWidth} pixels in ${clientWidth}`);
  const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((h) => +h.tagName[1]);
  if (levels[0] !== 1 || levels.filter((level) => level === 1).length !== 1)
    problems.push(`headings: one h1 must come first, not ${levels}`);
  if (levels.some((level, i) => i && level > levels[i - 1] + 1)) problems.push(`headings: ${levels} leave one out`);
}

function checkFigure(figure, number) {
  const report = (what) => problems.push(`figure ${number + 1}: ${what}`);
  const picture = figure.querySelector(".plot, .bars, .heats, .strips, svg, img");
  if (!picture) return report("no picture");
  const box = picture.getBoundingClientRect();
  if (box.width < 150 || box.height < 40) report(`not drawn: ${box.width} x ${box.height} pixels`);
  const holder = figure.querySelector(".scroll")?.getBoundingClientRect() ?? box;
  if (holder.left < 0 || holder.right > viewport + 0.5) report(`not within the viewport: ${holder.left} to ${holder.right}`);
  const name = picture.getAttribute("aria-label") ?? picture.getAttribute("alt") ?? "";
  if (!name.trim() || (picture.tagName !== "IMG" && !/^(img|group)$/.test(picture.getAttribute("role")))) report("no accessible name");
  if (!isDrawn(picture)) report("empty");
  const sentence = figure.querySelector("figcaption p")?.textContent.trim() ?? "";
  if (!/^.+[.!?]$/s.test(sentence) || /[.!?]["”)]?\s+["“(]?\p{Lu}/u.test(sentence))
    report(`not explained in one sentence: ${shown(sentence)}`);
}

// Matplotlib clips to the axes what stands for data, and the grid. A canvas of the script has grey axes, and coloured or thick marks.
function isDrawn(picture) {
  if (picture.tagName === "IMG") return picture.naturalWidth > 0;
  if (picture.classList.contains("plot")) return [...picture.querySelectorAll("canvas")].every(hasMarks) && picture.querySelector("canvas");
  if (picture.classList.contains("fabric")) return picture.querySelectorAll("rect").length > 1 && picture.querySelector("path");
  if (picture.tagName !== "svg") return picture.textContent.trim().length > 0;
  return isDrawing(picture);
}

function hasMarks(canvas) {
  const { width, height } = canvas;
  const copy = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const pixels = copy.getImageData(0, 0, width, height).data;
  const inner = canvas.parentElement.querySelector(".u-over");
  const left = Math.round((inner.offsetLeft * width) / canvas.offsetWidth);
  let strong = 0;
  for (let y = 4; y < height - 40; y++)
    for (let x = left; x < width - 8; x++) {
      const i = 4 * (y * width + x);
      const colour = pixels.slice(i, i + 3);
      const isColoured = Math.max(...colour) - Math.min(...colour) > 40;
      if (pixels[i + 3] > 200 && (isColoured || (x >= 0.25 * width && Math.abs(colour[0] - 128) < 60)) && (strong += 1) > 40) return true;
    }
  return false;
}

function isDrawing(svg) {
  return [...svg.querySelectorAll("[clip-path]:not([style*='--grid'])")].some((mark) => {
    const { width, height } = mark.getBoundingClientRect();
    return width + height > 4 && getComputedStyle(mark).visibility === "visible";
  });
}

// Names and numbers of a figure must not run into each other, nor out of it.
function checkLabels(svg, number) {
  const frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
  boxes.forEach(([text, box], i) => {
    if (box.left < frame.left - 2 || box.right > frame.right + 2 || box.top < frame.top - 2 || box.bottom > frame.bottom + 2)
      problems.push(`figure ${number + 1}: ${shown(text)} is cut off`);
    for (const [other, its] of boxes.slice(i + 1)) {
      const across = Math.min(box.right, its.right) - Math.max(box.left, its.left);
      const down = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
      // A box is as high as the tallest letter of its font, so stacked lines may share some of it.
      if (across > 1 && down > 0.3 * Math.min(box.height, its.height))
        problems.push(`figure ${number + 1}: ${shown(text)} and ${shown(other)} overlap`);
    }
  });
}

function checkCell(cell) {
  if (cell.scrollWidth > cell.clientWidth + 1) problems.push(`table: ${shown(cell.textContent)} is wider than its cell`);
}

function channels(colour) {
  const numbers = colour.replace("srgb", "").match(/[\d.]+/g).map(Number);
  return colour.startsWith("color(") ? numbers.map((n, i) => (i < 3 ? 255 * n : n)) : numbers;
}
const over = ([r, g, b, alpha = 1], ground) => [r, g, b].map((c, i) => c * alpha + ground[i] * (1 - alpha));

function luminance(colour) {
  const [r, g, b] = colour.map((c) => (c / 255 <= 0.04045 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function ground(element) {
  const behind = element.parentElement ? ground(element.parentElement) : [255, 255, 255];
  return over(channels(getComputedStyle(element).backgroundColor), behind);
}

// What of a figure lies under one of its labels: bars, bands, cells.
function underLabel(text) {
  const svg = text.closest("svg");
  const box = text.getBoundingClientRect();
  const centre = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
  let colour = ground(svg);
  for (const shape of svg.querySelectorAll("path")) {
    if (shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_PRECEDING) break;
    const { fill, fillOpacity, opacity } = getComputedStyle(shape);
    if (fill === "none" || !shape.isPointInFill(centre.matrixTransform(shape.getScreenCTM().inverse()))) continue;
    const [r, g, b, alpha = 1] = channels(fill);
    colour = over([r, g, b, alpha * fillOpacity * opacity], colour);
  }
  return colour;
}

function checkText(element) {
  const style = getComputedStyle(element);
  const inside = element instanceof SVGElement;
  const matrix = inside ? element.getScreenCTM() : null;
  const size = parseFloat(style.fontSize) * (matrix ? Math.hypot(matrix.a, matrix.b) : 1);
  if (size < SMALLEST - 0.05) problems.push(`text: ${size.toFixed(1)} pixels: ${shown(element.textContent)}`);
  const below = inside ? underLabel(element) : ground(element);
  let [r, g, b, alpha = 1] = channels(inside ? style.fill : style.color);
  for (let one = element; one; one = one.parentElement) alpha *= getComputedStyle(one).opacity;
  const [dark, light] = [over([r, g, b, alpha], below), below].map(luminance).sort((x, y) => x - y);
  const contrast = (light + 0.05) / (dark + 0.05);
  if (contrast < CONTRAST) problems.push(`contrast: ${contrast.toFixed(1)}: ${shown(element.textContent)}`);
}

checkPage(arguments[0]);
const figures = [...document.querySelectorAll("figure")];
if (!figures.length) problems.push("figures: none");
figures.forEach(checkFigure);
figures.forEach((figure, i) => figure.querySelectorAll("svg").forEach((svg) => checkLabels(svg, i)));
document.querySelectorAll("th, td").forEach(checkCell);
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const seen = new Set();
while (texts.nextNode()) {
  const element = texts.currentNode.parentElement;
  if (texts.currentNode.data.trim() && element.getClientRects().length) seen.add(element);
}
seen.forEach(checkText);
return problems;
