// SPDX-License-Identifier: Apache-2.0
// One flow over time: chosen by name, or by a click on a curve of completion times.
"use strict";
(() => {
  const { data, plots, redraw, isShown } = window.penstock;
  const figure = document.getElementById("timeline");
  const choice = figure.querySelector("select");
  const label = figure.querySelector("output");
  const holders = [...figure.querySelectorAll("[data-chart]")];

  data.timelines.forEach((flow, i) => {
    if (!flow.isListed) return;
    const option = document.createElement("option");
    option.value = i;
    option.textContent = flow.label;
    choice.append(option);
  });

  function show(i) {
    const flow = data.timelines[i];
    for (const chart of flow.charts) data.charts[data.charts.findIndex((each) => each.name === chart.name)] = chart;
    label.textContent = flow.isListed ? "" : flow.label; // the choice shows those of the list
    choice.value = flow.isListed ? i : "";
    redraw(holders);
  }

  // The curve nearest to a click, and the recorded flow that ended nearest to the click's time.
  function clicked(event, { u, chart, panel }) {
    const box = u.over.getBoundingClientRect();
    const x = u.posToVal(event.clientX - box.left, "x"), y = event.clientY - box.top;
    const group = panel.series.length && chart.name.replace(/^fct-/, "").replace(/-tail$/, "");
    const traffic = group.split("/")[0];
    const reach = (series) => Math.min(...series.x.map((at, i) => Math.hypot(u.valToPos(at, "x") - (event.clientX - box.left), (u.valToPos(Math.max(series.y[i], u.scales.y.min), "y") - y) || 0)));
    const [near] = panel.series.filter((series) => isShown(series.scheme)).sort((one, other) => reach(one) - reach(other));
    const off = (flow) => (flow.fct === null ? 50 : Math.abs(Math.log(flow.fct / x)));
    const open = near && x >= Math.max(...near.x) * 0.97;
    const rank = (i) => { const flow = data.timelines[i]; return open && flow.fct === null ? -1 : off(flow); };
    const candidates = data.timelines.map((flow, i) => i).filter((i) => data.timelines[i].traffic === traffic && data.timelines[i].scheme === near?.name);
    if (!candidates.length) return;
    show(candidates.sort((one, other) => rank(one) - rank(other))[0]);
    figure.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth", block: "center" });
  }

  choice.addEventListener("change", () => show(Number(choice.value)));
  let down = 0;
  document.addEventListener("pointerdown", (event) => { down = event.clientX; });
  document.addEventListener("click", (event) => {
    const plot = plots.find(({ u }) => u.over.contains(event.target));
    if (plot && plot.chart.name.startsWith("fct-") && Math.abs(event.clientX - down) < 5) clicked(event, plot);
  }, true); // before uPlot, which keeps some clicks to itself
  show(0);
  window.penstock.showFlow = show;
})();
