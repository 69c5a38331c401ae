// SPDX-License-Identifier: Apache-2.0
// The packets of a burst at the port of each scheme: they queue at the transmitter, leave to the right,
// and fall where they are lost.
"use strict";
(() => {
  const { data, ink, text, tip } = window.penstock;
  const { begin, span, rate, flows, schemes } = data.replay;
  const figure = document.getElementById("replay");
  const slider = figure.querySelector("input[type=range]");
  const button = figure.querySelector("[data-do=play]");
  const speed = figure.querySelector("select");
  const clock = figure.querySelector("output");
  const rows = [...figure.querySelectorAll("canvas")].map((canvas) => ({ canvas, packets: schemes[canvas.dataset.packets], note: canvas.parentElement.querySelector(".state") }));
  const BYTES = { unit: "B", names: [] }, SECONDS = { unit: "s", names: [] };
  const HEIGHT = 46, BOX = 22, TOP = 6, WIRE = 0.16, FALL = span / 25;
  const longest = Math.max(...rows.flatMap(({ packets }) => packets.queue.map((queue, i) => queue + packets.size[i])));
  let now = 0, isPlaying = false, before = 0;

  // Flows next to each other in number differ in hue and in lightness.
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  const colour = (flow) => `hsl(${(flow * 137.5) % 360} 62% ${(isDark.matches ? 58 : 46) + 9 * ((flow % 3) - 1)}%)`;

  // Where a packet's last bit is, in pixels: the transmitter is at `port`, and time moves packets by its rate.
  function place(packets, i, port, scale) {
    return port - (packets.time[i] + packets.left[i] - now) * rate * scale;
  }

  function each(row, visit) {
    const { packets, canvas } = row;
    const width = canvas.clientWidth, port = width * (1 - WIRE), scale = (port - 14) / longest;
    for (let i = 0; i < packets.time.length && packets.time[i] <= now; i += 1) {
      const size = Math.max(1.5, packets.size[i] * scale);
      if (packets.lost[i]) {
        const fallen = (now - packets.time[i]) / FALL;
        if (fallen <= 1) visit(i, Math.max(0, port - (packets.queue[i] + packets.size[i]) * scale - 5), size, fallen);
      } else if (packets.left[i] !== null) {
        const rear = place(packets, i, port, scale);
        if (rear < width) visit(i, rear, size, 0);
      }
    }
  }

  function draw() {
    const ratio = devicePixelRatio;
    for (const row of rows) {
      const { canvas, packets, note } = row;
      const width = canvas.clientWidth;
      if (!width) continue;
      if (canvas.width !== Math.round(width * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = HEIGHT * ratio; }
      const ctx = canvas.getContext("2d");
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.clearRect(0, 0, width, HEIGHT);
      const port = width * (1 - WIRE);
      ctx.fillStyle = ink("wash");
      ctx.fillRect(0, TOP, port, BOX);
      each(row, (i, x, size, fallen) => {
        ctx.globalAlpha = 1 - 0.75 * fallen;
        ctx.fillStyle = colour(packets.flow[i]);
        const y = TOP + fallen * (HEIGHT - BOX - TOP + 8);
        ctx.fillRect(x, y, Math.max(1, size - 0.6), fallen ? BOX * 0.6 : BOX);
        if (packets.lost[i]) { ctx.strokeStyle = ink("s5"); ctx.lineWidth = 1.6; ctx.strokeRect(x, y, Math.max(3, size), BOX * 0.6); }
      });
      ctx.globalAlpha = 1;
      ctx.strokeStyle = ink("ink");
      ctx.lineWidth = 2;
      ctx.beginPath(); ctx.moveTo(port, TOP - 4); ctx.lineTo(port, TOP + BOX + 4); ctx.stroke();
      let waiting = 0, sent = 0, lost = 0;
      for (let i = 0; i < packets.time.length && packets.time[i] <= now; i += 1) {
        if (packets.lost[i]) lost += 1;
        else if (packets.left[i] !== null && packets.time[i] + packets.left[i] <= now) sent += 1;
        else waiting += packets.size[i];
      }
      const isOver = packets.time.length && packets.time.at(-1) < now;
      note.textContent = `queue ${text(waiting, BYTES, 3)} · sent ${sent} · dropped ${lost}${isOver ? " · no more recorded" : ""}`;
    }
    clock.textContent = text(begin + now / 1e9, SECONDS, 7);
    slider.value = now;
  }

  function frame(stamp) {
    if (!isPlaying) return;
    if (before) now = Math.min(span, now + (stamp - before) * 1e6 / Number(speed.value));
    before = stamp;
    draw();
    if (now >= span) play(false);
    else requestAnimationFrame(frame);
  }

  function play(on) {
    isPlaying = on;
    before = 0;
    button.textContent = on ? "Pause" : "Play";
    if (!on) return;
    if (now >= span) now = 0;
    requestAnimationFrame(frame);
  }

  function show(event, row) {
    const box = row.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    let found = -1;
    each(row, (i, left, size) => { if (x >= left && x <= left + size) found = i; });
    tip.hidden = found < 0;
    if (found < 0) return;
    const { packets } = row;
    const fate = packets.lost[found] ? `dropped: ${packets.lost[found]}` : `${text(packets.left[found] / 1e9, SECONDS, 3)} at the port`;
    tip.replaceChildren(...[flows[packets.flow[found]], `sequence number ${packets.seq[found]}, ${packets.size[found]} B`, fate].map((line) => {
      const p = document.createElement("p");
      p.textContent = line;
      return p;
    }));
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${event.clientY + 16}px`;
  }

  slider.max = span;
  slider.step = span / 2000;
  // Twelve seconds for the whole, or the nearest round number of times slower.
  const wanted = 12e9 / span, power = 10 ** Math.floor(Math.log10(wanted));
  const round = power * (wanted / power >= 5 ? 5 : wanted / power >= 2 ? 2 : 1);
  for (const factor of [0.2, 0.5, 1, 2, 5].map((times) => Number((times * round).toPrecision(1)))) {
    const option = document.createElement("option");
    option.value = factor;
    option.textContent = `${factor.toLocaleString("en")} times slower`;
    option.selected = factor === round;
    speed.append(option);
  }
  button.addEventListener("click", () => play(!isPlaying));
  slider.addEventListener("input", () => { play(false); now = Number(slider.value); draw(); });
  for (const row of rows) {
    row.canvas.addEventListener("pointermove", (event) => show(event, row));
    row.canvas.addEventListener("pointerdown", (event) => show(event, row));
    row.canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  }
  isDark.addEventListener("change", draw);
  new ResizeObserver(draw).observe(figure);
  now = span * 0.5;
  draw();
  window.penstock.replay = { play, at: (share) => { play(false); now = share * span; draw(); }, isPlaying: () => isPlaying, now: () => now };
})();
