// SPDX-License-Identifier: Apache-2.0
// What a reader can do with a page: pick schemes, read values, zoom, sort, copy and save.
"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const escaped = (text) => { const span = document.createElement("span"); span.textContent = text; return span.innerHTML; };

  // ---- Numbers, as penstock.units writes them

  const PREFIXES = {
    s: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]],
    "b/s": [[1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]],
    B: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  };
  const digits = (value, most = 3) => String(Number(value.toPrecision(most)));

  function prefix(value, unit) {
    return PREFIXES[unit].find(([factor]) => Math.abs(value) >= 0.9995 * factor) ?? PREFIXES[unit].at(-1);
  }

  function text(value, axis, most = 4) {
    if (value === null || value === undefined) return "–";
    if (axis.names.length) return axis.names[Math.round(value)] ?? "";
    if (axis.unit === "%") return `${digits(100 * value, most)} %`;
    if (!PREFIXES[axis.unit]) return digits(value, most + 3);
    if (value === 0) return "0";
    const [factor, name] = prefix(value, axis.unit);
    return `${digits(value / factor, most)} ${name}`;
  }

  const RADIUS = { dots: 3.5, specks: 1.3 };

  // ---- The schemes that the reader has picked; none: all are shown

  const picked = new Set();
  const isShown = (scheme) => !picked.size || scheme === "*" || picked.has(scheme);

  function pick(scheme) {
    if (scheme === undefined) picked.clear();
    else if (!picked.delete(scheme)) picked.add(scheme);
    all(".chip").forEach((chip) =>
      chip.setAttribute("aria-pressed", "all" in chip.dataset ? !picked.size : picked.has(chip.dataset.scheme)));
    all("[data-scheme]:not(.chip)").forEach((part) => part.classList.toggle("off", !isShown(part.dataset.scheme)));
    plots.forEach((plot) => plot.u.redraw(false));
  }

  // ---- Charts: uPlot has scales, axes and zoom; the marks of a series are drawn here, at its own x

  const plots = []; // {u, chart, panel, holder}

  const isNumber = (value) => value !== null && value !== undefined;

  function extent(chart, letter, panels) {
    const axis = chart[letter];
    const values = panels.flatMap((panel) =>
      panel.series.flatMap((series) => [...series[letter], ...(letter === "y" ? [...(series.low ?? []), ...(series.high ?? [])] : [])]))
      .filter((value) => isNumber(value) && (!axis.log || value > 0));
    if (axis.names.length) return [-0.5, axis.names.length - 0.5];
    if (!values.length) return [1, 10];
    let least = axis.least ?? Math.min(...values);
    let greatest = axis.greatest ?? Math.max(...values);
    if (!(least < greatest)) [least, greatest] = axis.log ? [least / 2 || 0.1, greatest * 2 || 1] : [least - (least ? Math.abs(least) / 2 : 0), greatest + (Math.abs(greatest) / 2 || 1)];
    if (letter === "y" && axis.greatest === null) greatest = axis.log ? greatest * 1.15 : greatest + 0.06 * (greatest - least);
    if (letter === "y" && axis.least === null && axis.log) least /= 1.15;
    if (letter === "y" && axis.unit === "%" && !axis.log) greatest += 0.02;
    return [least, greatest];
  }

  function draw(u, chart, panel) {
    const { ctx } = u;
    const ratio = devicePixelRatio;
    const { left, top, width, height } = u.bbox;
    const at = (value, scale) => u.valToPos(value, scale, true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top - 4 * ratio, width + 6 * ratio, height + 8 * ratio);
    ctx.clip();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    for (const [value, label] of chart.guides) {
      const y = Math.round(at(value, "y"));
      ctx.strokeStyle = ctx.fillStyle = ink("quiet");
      ctx.setLineDash([ratio, 3 * ratio]);
      ctx.lineWidth = ratio;
      ctx.beginPath(); ctx.moveTo(left, y); ctx.lineTo(left + width, y); ctx.stroke();
      const isCut = y - 12 * ratio < top - 4 * ratio;
      ctx.textBaseline = isCut ? "top" : "bottom";
      ctx.fillText(label, left + 3 * ratio, isCut ? y + 2 * ratio : y - ratio);
    }
    for (const series of panel.series) {
      if (!isShown(series.scheme)) continue;
      const colour = ink(series.ink);
      const lowest = chart.y.log ? u.scales.y.min / 10 : -Infinity; // where a logarithm has no place for 0
      const isDrawn = series.y.map((y, i) => isNumber(y) && isNumber(series.x[i]));
      const points = series.x.map((x, i) => (isDrawn[i] ? [at(x, "x") + (series.dodge ?? 0) * width, at(Math.max(series.y[i], lowest), "y")] : null));
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.lineJoin = "round";
      if (series.low) {
        const edge = (values) => values.map((y, i) => isDrawn[i] && [points[i][0], at(Math.max(y, lowest), "y")]).filter(Boolean);
        ctx.globalAlpha = 0.25;
        ctx.beginPath();
        [...edge(series.high), ...edge(series.low).reverse()].forEach(([x, y]) => ctx.lineTo(x, y));
        ctx.fill();
        ctx.globalAlpha = 1;
      }
      if (RADIUS[series.kind]) {
        points.filter(Boolean).forEach(([x, y]) => { ctx.beginPath(); ctx.arc(x, y, RADIUS[series.kind] * ratio, 0, 7); ctx.fill(); });
        continue;
      }
      const thick = (picked.size === 1 ? 2.6 : 1.9) * ratio;
      ctx.lineWidth = thick;
      ctx.setLineDash(series.dash.map((length) => length * thick));
      ctx.beginPath();
      let before = null;
      for (const point of points) {
        if (!point) { before = null; continue; }
        if (!before) ctx.moveTo(...point);
        else {
          if (series.kind === "step") ctx.lineTo(point[0], before[1]);
          ctx.lineTo(...point);
        }
        before = point;
      }
      ctx.stroke();
      ctx.setLineDash([]);
      if (series.kind === "line" && points.length <= 12)
        points.filter(Boolean).forEach(([x, y]) => { ctx.beginPath(); ctx.arc(x, y, 2.8 * ratio, 0, 7); ctx.fill(); });
      for (const [value] of chart.guides) {
        const i = series.y.findIndex((y) => (series.y[0] < series.y.at(-1) ? y >= value : y <= value));
        if (i >= 0 && points[i]) { ctx.beginPath(); ctx.arc(points[i][0], at(value, "y"), 3.2 * ratio, 0, 7); ctx.fill(); }
      }
      if (series.open && before) {
        ctx.fillStyle = ink("paper");
        ctx.lineWidth = 1.8 * ratio;
        ctx.beginPath(); ctx.arc(before[0], before[1], 4.2 * ratio, 0, 7); ctx.fill(); ctx.stroke();
      }
    }
    ctx.restore();
  }

  // Of a logarithmic axis: powers of ten, with what is between them where there is room; within a
  // fraction of a decade as on a linear one. `most`: labels that fit.
  function logTicks(least, greatest, most = Infinity) {
    const decades = Math.log10(greatest / least);
    if (decades < 0.7) {
      const rough = (greatest - least) / 4;
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
      const first = Math.ceil(least / step - 1e-9);
      return Array.from({ length: Math.floor(greatest / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
    }
    const finest = decades < 1.2 ? 0 : decades < 2.2 ? 1 : decades < 3.2 ? 2 : 3;
    const heads = [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]].slice(finest)
      .find((each) => each.length === 1 || each.length * decades <= most);
    const every = Math.ceil(decades / Math.min(7, most));
    const found = [];
    for (let power = Math.floor(Math.log10(least)); power <= Math.log10(greatest); power += 1)
      if (power % every === 0) found.push(...heads.map((head) => head * 10 ** power));
    return found.filter((value) => value >= least * 0.999 && value <= greatest * 1.001);
  }

  function axisOf(axis, side, isLast) {
    const quiet = ink("quiet");
    const fitting = (u) => (side === 3 ? u.bbox.height / 22 : u.bbox.width / 52) / devicePixelRatio;
    const form = (u, splits) => splits.map((value) => text(value, axis, 3));
    const splits = axis.ticks.length ? () => axis.ticks
      : axis.names.length ? () => axis.names.map((_, i) => i)
      : axis.log ? (u, index, least, greatest) => logTicks(least, greatest, fitting(u)) : null;
    return {
      side, stroke: quiet, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
      grid: { stroke: ink("grid"), width: 1 }, ticks: { stroke: ink("grid"), width: 1, size: 4 },
      values: form,
      ...(splits ? { splits, filter: (u, found) => found } : {}),
      ...(side === 3
        ? { size: 68, space: 26, gap: 3 }
        : { size: isLast ? 30 : 6, space: 66, gap: 3, ...(isLast ? {} : { values: () => [] }) }),
    };
  }

  // Names the lines that the picker of schemes does not.
  function legend(holder, chart) {
    const picks = new Set(all(".chip").map((chip) => chip.dataset.scheme));
    const names = new Map();
    for (const one of chart.panels.flatMap((panel) => panel.series))
      if (!picks.has(one.name) && !chart.panels.some((panel) => panel.title === one.name)) {
        const before = names.get(one.name);
        names.set(one.name, { ...one, ink: before && before.ink !== one.ink ? "quiet" : one.ink });
      }
    if (names.size < 2) return;
    const key = document.createElement("p");
    key.className = "key";
    key.innerHTML = [...names.values()].map((one) => {
      const mark = RADIUS[one.kind] ? `<circle cx="10" cy="4" r="3.5" fill="var(--${one.ink})"/>`
        : `<path d="M0 4H24" stroke="var(--${one.ink})" stroke-width="2.4" stroke-dasharray="${one.dash.map((n) => n * 2.4).join(" ")}"/>`;
      return `<span><svg width="24" height="8" aria-hidden="true">${mark}</svg>${escaped(one.name)}</span>`;
    }).join("");
    holder.append(key);
  }

  function build(holder) {
    const chart = data.charts.find((each) => each.name === holder.dataset.chart);
    if (holder.clientWidth < 40) return;
    const limits = [extent(chart, "x", chart.panels), extent(chart, "y", chart.panels)];
    const isStrip = chart.panels.length > 1 && !chart.isGrid;
    holder.replaceChildren();
    holder.classList.toggle("multiples", chart.panels.length > 1 && chart.isGrid);
    const label = document.createElement("p");
    label.className = "axis";
    label.textContent = `${chart.y.label} over ${chart.x.label}`;
    holder.append(label);
    legend(holder, chart);
    chart.panels.forEach((panel, number) => {
      const box = document.createElement("div");
      if (panel.scheme) { box.dataset.scheme = panel.scheme; box.classList.toggle("off", !isShown(panel.scheme)); }
      if (panel.title) {
        const title = document.createElement("b");
        title.textContent = panel.title;
        box.append(title);
      }
      holder.append(box);
      const isLast = !isStrip || number === chart.panels.length - 1;
      const u = new uPlot({
        width: box.clientWidth || holder.clientWidth,
        height: isStrip ? (isLast ? 104 : 80) : chart.panels.length > 1 ? 190 : Math.max(250, Math.min(330, holder.clientWidth * 0.56)),
        legend: { show: false },
        padding: [8, 22, 0, 0],
        cursor: {
          drag: { x: true, y: false, dist: 5 }, points: { show: false }, y: !isStrip,
          sync: chart.linked ? { key: chart.linked, setSeries: false, scales: ["x", null] } : undefined,
        },
        scales: {
          x: { time: false, distr: chart.x.log ? 3 : 1, range: (u, least, greatest) => [least, greatest] },
          y: { distr: chart.y.log ? 3 : 1, range: () => limits[1] },
        },
        axes: [axisOf(chart.x, 2, isLast), axisOf(chart.y, 3, true)],
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: { draw: [(u) => draw(u, chart, panel)], setScale: [(u, key) => key === "x" && zoomed(u, chart, limits[0])] },
      }, limits, box);
      plots.push({ u, chart, panel, holder });
      u.over.addEventListener("pointermove", (event) => point(event, u, chart, panel));
      u.over.addEventListener("pointerdown", (event) => point(event, u, chart, panel));
      u.over.addEventListener("pointerleave", () => { tip.hidden = true; });
    });
  }

  let isLinking = false;
  function zoomed(u, chart, [least, greatest]) {
    const { min, max } = u.scales.x;
    const isWhole = min <= least && max >= greatest;
    plots.filter((plot) => plot.chart === chart || (chart.linked && plot.chart.linked === chart.linked)).forEach((plot) => {
      const button = plot.holder.parentElement.querySelector("[data-do=reset]");
      if (button) button.hidden = isWhole;
      if (!isLinking && plot.u !== u && plot.u.scales.x.min !== undefined && (plot.u.scales.x.min !== min || plot.u.scales.x.max !== max)) {
        isLinking = true;
        plot.u.setScale("x", { min, max });
        isLinking = false;
      }
    });
  }

  function reset(chart) {
    const plot = plots.find((each) => each.chart === chart);
    const [min, max] = extent(chart, "x", chart.panels);
    plot.u.setScale("x", { min, max });
  }

  // What a series has at an x: the step that it is on, or its nearest point.
  function nearest(series, x) {
    let low = 0, high = series.x.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (series.x[middle] <= x) low = middle; else high = middle - 1;
    }
    if (series.kind !== "step" && low + 1 < series.x.length && series.x[low + 1] - x < x - series.x[low]) low += 1;
    if (!series.x.length || (series.kind === "step" && series.x[0] > x)) return null;
    return low;
  }

  function point(event, u, chart, panel) {
    const box = u.over.getBoundingClientRect();
    const x = u.posToVal(event.clientX - box.left, "x");
    const rows = panel.series.filter((series) => isShown(series.scheme)).map((series) => {
      const i = nearest(series, x);
      if (i === null || !isNumber(series.y[i])) return null;
      const ends = series.open && i >= series.x.length - 2 ? ` (${series.open})` : "";
      const band = series.low ? ` (${text(series.low[i], chart.y, 3)} to ${text(series.high[i], chart.y, 3)})` : "";
      return { series, y: series.y[i], shown: text(series.y[i], chart.y) + band + ends };
    }).filter(Boolean).sort((one, other) => other.y - one.y);
    tip.innerHTML = `<p>${escaped(chart.x.label)} <b>${escaped(text(x, chart.x))}</b></p>` + rows.map(({ series, shown }) =>
      `<p><i style="background: var(--${series.ink})"></i>${escaped(series.name)} <b>${escaped(shown)}</b></p>`).join("");
    tip.hidden = !rows.length;
    const { innerWidth, innerHeight } = window;
    const { width, height } = tip.getBoundingClientRect();
    const isRight = event.clientX + width + 24 > innerWidth;
    tip.style.left = `${Math.max(4, isRight ? event.clientX - width - 14 : event.clientX + 16)}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 8))}px`;
  }

  function rebuild() {
    plots.splice(0).forEach((plot) => plot.u.destroy());
    if (data.charts.length) all("[data-chart]").forEach(build);
  }

  // ---- Saving and copying

  function save(name, url) {
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
  }

  async function copy(content, button) {
    try {
      await navigator.clipboard.writeText(content);
    } catch {
      const area = document.createElement("textarea");
      area.value = content;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1200);
  }

  const quoted = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const csv = (rows) => rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";

  function chartCsv(chart) {
    const unit = (axis) => (axis.unit && axis.unit !== "%" ? ` (${axis.unit})` : "");
    const head = ["series", ...(chart.panels.length > 1 ? ["panel"] : []), chart.x.label + unit(chart.x), chart.y.label + unit(chart.y), "low", "high"];
    const rows = chart.panels.flatMap((panel) => panel.series.filter((series) => isShown(series.scheme)).flatMap((series) =>
      series.x.map((x, i) => [series.name, ...(chart.panels.length > 1 ? [panel.title] : []), chart.x.names[x] ?? x, series.y[i] ?? "", series.low?.[i] ?? "", series.high?.[i] ?? ""])));
    return csv([head, ...rows]);
  }

  function chartPng(chart) {
    const shown = plots.filter((plot) => plot.chart === chart && plot.u.root.offsetParent);
    const ratio = devicePixelRatio, line = 20 * ratio, gap = 8 * ratio;
    const width = Math.max(...shown.map(({ u }) => u.ctx.canvas.width));
    const names = [...new Map(shown.flatMap(({ panel }) => panel.series).filter((one) => isShown(one.scheme)).map((one) => [one.name, one])).values()];
    const isTitled = chart.panels.length > 1;
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = names.length * line + gap + shown.reduce((sum, { u }) => sum + u.ctx.canvas.height + (isTitled ? line : 0), 0) + line;
    const ctx = canvas.getContext("2d");
    ctx.fillStyle = ink("paper");
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.font = `${12 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    let y = gap;
    for (const one of names) {
      ctx.strokeStyle = ink(one.ink);
      ctx.lineWidth = 2.4 * ratio;
      ctx.setLineDash(one.dash.map((length) => length * 2.4 * ratio));
      ctx.beginPath(); ctx.moveTo(gap, y + line / 2); ctx.lineTo(gap + 30 * ratio, y + line / 2); ctx.stroke();
      ctx.fillStyle = ink("ink");
      ctx.fillText(one.name, gap + 38 * ratio, y + line / 2);
      y += line;
    }
    for (const { u, panel } of shown) {
      if (isTitled) { ctx.fillStyle = ink("ink"); ctx.fillText(panel.title, gap, y + line / 2); y += line; }
      ctx.drawImage(u.ctx.canvas, 0, y);
      y += u.ctx.canvas.height;
    }
    ctx.fillStyle = ink("quiet");
    ctx.fillText(`${chart.y.label} over ${chart.x.label}`, gap, y + line / 2);
    save(`${chart.name}.png`, canvas.toDataURL());
  }

  // ---- Tables

  const cellText = (cell) => [...cell.childNodes].filter((node) => node.nodeName !== "SVG" && node.nodeName !== "svg")
    .map((node) => (node.nodeName === "SMALL" ? ` ${node.textContent}` : node.textContent)).join("").trim();
  const rowsOf = (table) => all("tr", table).filter((row) => !row.classList.contains("off")).map((row) => all("th, td", row));

  function latex(table) {
    const escape = (value) => value.replace(/[&%$#_{}]/g, "\\$&").replaceAll("µ", "$\\mu$").replaceAll("±", "$\\pm$").replaceAll("–", "--").replaceAll("\u00a0", "\\,");
    const [head, ...rows] = rowsOf(table).map((row) => row.map((cell) => {
      const value = escape(cellText(cell));
      return cell.querySelector("b") ? `\\textbf{${value}}` : value;
    }).join(" & ") + " \\\\");
    const columns = table.querySelectorAll("thead th, thead td").length;
    return `\\begin{tabular}{l${"r".repeat(columns - 1)}}\n\\toprule\n${head}\n\\midrule\n${rows.join("\n")}\n\\bottomrule\n\\end{tabular}\n`;
  }

  function sort(button) {
    const head = button.closest("th");
    const table = head.closest("table");
    const place = [...head.parentElement.children].indexOf(head);
    const isUp = head.getAttribute("aria-sort") !== "ascending";
    all("th", table.tHead).forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
    const key = (row) => { const cell = row.children[place]; return "value" in cell.dataset ? Number(cell.dataset.value) : cellText(cell); };
    const order = (one, other) => {
      const [a, b] = [key(one), key(other)];
      if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1; // what has no number comes last
      return (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true })) * (isUp ? 1 : -1);
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
  }

  // ---- Events

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.matches(".chip")) return pick("all" in button.dataset ? undefined : button.dataset.scheme);
    if (button.closest("table.sortable thead")) return sort(button);
    const holder = button.closest("figure")?.querySelector("[data-chart]");
    const chart = holder && data.charts.find((each) => each.name === holder.dataset.chart);
    const table = button.closest(".tablebox")?.querySelector("table");
    const act = button.dataset.do;
    if (chart && act === "reset") reset(chart);
    if (chart && act === "csv") save(`${chart.name}.csv`, `data:text/csv;charset=utf-8,${encodeURIComponent(chartCsv(chart))}`);
    if (chart && act === "png") chartPng(chart);
    if (table && act === "csv") copy(csv(rowsOf(table).map((row) => row.map((cell) => cell.dataset.value ?? cellText(cell)))), button);
    if (table && act === "latex") copy(latex(table), button);
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") { tip.hidden = true; pick(); } });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild);
  let width = 0;
  new ResizeObserver(() => { if (document.body.clientWidth !== width) { width = document.body.clientWidth; rebuild(); } }).observe(document.body);
  function redraw(holders) {
    for (let i = plots.length - 1; i >= 0; i -= 1) if (holders.includes(plots[i].holder)) plots.splice(i, 1)[0].u.destroy();
    holders.forEach((holder) => all("[data-do=reset]", holder.parentElement).forEach((button) => { button.hidden = true; }));
    holders.forEach(build);
  }
  window.penstock = { plots, pick, data, ink, text, tip, isShown, redraw, logTicks }; // for tests, and for those who look into the page
})();
