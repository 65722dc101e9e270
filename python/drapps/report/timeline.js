/* timeline.js: the panels of a run under one range of time; pointer, keys and the filters of the table.
 * It is one script with plots.js. */

const LEAST_RANGE = 0.05; // seconds

const KEYS = {
  "+": (timeline) => timeline.zoom(0.5),
  "=": (timeline) => timeline.zoom(0.5),
  "-": (timeline) => timeline.zoom(2),
  0: (timeline) => timeline.reset(),
  Escape: (timeline) => timeline.reset(),
  ArrowLeft: (timeline) => timeline.move(-0.2),
  ArrowRight: (timeline) => timeline.move(0.2),
};

class Timeline {
  constructor(run) {
    this.run = run;
    this.section = run.querySelector(".timeline");
    this.panels = this.section.querySelector(".panels");
    this.tip = this.section.querySelector(".tip");
    this.data = JSON.parse(this.section.querySelector(".data").textContent);
    this.whole = [0, Math.max(this.data.seconds, LEAST_RANGE)];
    this.view = this.whole;
    this.clocks = {};
    for (const name in this.data.clocks) {
      let sum = 0;
      this.clocks[name] = this.data.clocks[name].map((step) => (sum += step) / 1000);
    }
    this.rows = Array.from(run.querySelectorAll(".decisions tbody tr"));
    this.make_plots();
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(this.panels);
  }

  make_plots() {
    const { data } = this;
    this.plots = [new Axis(this, "axis", "", "", HEIGHTS.axis)];
    if (data.bounds.length || data.events.length) this.plots.push((this.lane = new Lane(this)));
    for (const spec of data.panels) {
      this.plots.push(new Lines(this, spec));
      if (spec.name === "cpu" && data.cpus.length) this.plots.push(new Heat(this));
    }
    for (const name in data.knobs) this.plots.push(new Knob(this, name, data.knobs[name]));
    this.panels.append(...this.plots.map((plot) => plot.node));
    this.brush = this.panels.appendChild(html("div", "brush"));
    this.brush.hidden = true;
  }

  gap_between(a, b) {
    return this.data.gaps.some(([from, to]) => a <= from + 0.002 && b >= to - 0.002);
  }

  decision_text(i) {
    const cells = this.rows[i] ? Array.from(this.rows[i].cells, (cell) => cell.textContent) : [];
    return cells.length ? `${cells[0]}  ${cells[1]}${cells[2] ? `: ${cells[2]}` : ""}\n${cells[3]}` : "";
  }

  redraw() {
    if (this.waiting || !this.panels.clientWidth) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    if (!this.panels.clientWidth) return;
    for (const plot of this.plots) plot.draw();
    this.point_at(this.cursor === undefined ? null : this.cursor);
    const [a, b] = this.view, step = (b - a) / 100;
    this.section.querySelector(".range").value = `${clock(a, step)} – ${clock(b, step)}`;
  }

  set_view(a, b) {
    const least = Math.min(LEAST_RANGE, this.whole[1]), length = Math.min(Math.max(b - a, least), this.whole[1]);
    const from = Math.min(Math.max(0, (a + b - length) / 2), this.whole[1] - length);
    this.view = [from, from + length];
    this.redraw();
  }

  zoom(factor, at) {
    const [a, b] = this.view, middle = at === undefined ? (a + b) / 2 : at;
    this.set_view(middle - (middle - a) * factor, middle + (b - middle) * factor);
  }

  move(part) {
    const [a, b] = this.view;
    this.set_view(a + (b - a) * part, b + (b - a) * part);
  }

  reset() {
    this.set_view(...this.whole);
  }

  point_at(t) {
    this.cursor = t;
    for (const plot of this.plots) plot.point_at(t);
  }

  show_at(t) {
    const half = Math.min(5, this.whole[1] / 2);
    this.set_view(t - half, t + half);
    this.point_at(t);
    this.section.scrollIntoView({ block: "start" });
  }

  /* --- pointer and keys --- */

  time_of(event) {
    const box = this.plots[0].box.getBoundingClientRect(), [a, b] = this.view;
    const part = (event.clientX - box.left - GUTTER) / (box.width - GUTTER - MARGIN);
    return a + Math.min(1, Math.max(0, part)) * (b - a);
  }

  listen() {
    const { panels } = this;
    panels.addEventListener("pointerdown", (event) => this.press(event));
    panels.addEventListener("pointermove", (event) => this.hover(event));
    panels.addEventListener("pointerup", (event) => this.release(event));
    panels.addEventListener("pointercancel", () => this.let_go());
    panels.addEventListener("pointerleave", () => this.leave());
    panels.addEventListener("dblclick", () => this.reset());
    panels.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    panels.addEventListener("keydown", (event) => this.key(event));
    for (const button of this.section.querySelectorAll("[data-do]"))
      button.addEventListener("click", () => this.act(button.dataset.do));
    if (this.run.tagName === "DETAILS") this.run.addEventListener("toggle", () => this.redraw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  act(name) {
    if (name === "in") this.zoom(0.5);
    else if (name === "out") this.zoom(2);
    else this.reset();
  }

  press(event) {
    if (event.button !== 0 || !event.target.closest(".plot")) return;
    this.pressed = this.time_of(event);
    this.panels.setPointerCapture(event.pointerId);
  }

  hover(event) {
    const t = this.time_of(event);
    this.point_at(t);
    if (this.pressed !== undefined) this.show_brush(this.pressed, t);
    this.show_tip(this.lane && this.lane.box.contains(event.target) ? this.lane.texts_at(t) : [], event);
  }

  release(event) {
    if (this.pressed === undefined) return;
    const [a, b] = [this.pressed, this.time_of(event)].sort((x, y) => x - y);
    this.let_go();
    if (this.plots[0].x(b) - this.plots[0].x(a) > 5) this.set_view(a, b);
  }

  let_go() {
    this.pressed = undefined;
    this.brush.hidden = true;
  }

  leave() {
    if (this.pressed !== undefined) return;
    this.point_at(null);
    this.tip.hidden = true;
  }

  show_brush(a, b) {
    const { box } = this.plots[0], left = box.offsetLeft;
    const [from, to] = [this.plots[0].x(a), this.plots[0].x(b)].sort((x, y) => x - y);
    this.brush.hidden = false;
    this.brush.style.left = `${left + from}px`;
    this.brush.style.width = `${to - from}px`;
  }

  show_tip(texts, event) {
    this.tip.hidden = !texts.length;
    if (!texts.length) return;
    this.tip.textContent = texts.join("\n");
    const box = this.section.getBoundingClientRect(), width = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(event.clientX - box.left + 14, box.width - width))}px`;
    this.tip.style.top = `${event.clientY - box.top + 18}px`;
  }

  /* A plain wheel scrolls the page, as everywhere. */
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    if (event.shiftKey) this.move(Math.sign(event.deltaY || event.deltaX) * 0.1);
    else this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.time_of(event));
  }

  key(event) {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(this);
  }
}

/* --- the table of decisions --- */

function filter_rows(form, rows) {
  const bound = form.bound.value, changes = form.changes.checked, text = form.text.value.toLowerCase();
  let n = 0;
  for (const row of rows) {
    const fits = (!bound || row.dataset.bound === bound) && (!changes || "changed" in row.dataset)
      && (!text || row.textContent.toLowerCase().includes(text));
    row.hidden = !fits;
    n += fits;
  }
  form.querySelector("output").value = `${n} of ${rows.length}`;
}

function connect_table(run, timeline) {
  const form = run.querySelector(".filter");
  if (!form) return;
  const rows = Array.from(run.querySelectorAll(".decisions tbody tr"));
  form.addEventListener("input", () => filter_rows(form, rows));
  form.addEventListener("submit", (event) => event.preventDefault());
  filter_rows(form, rows);
  rows.forEach((row, i) => row.querySelector("button").addEventListener("click", () => {
    if (timeline) timeline.show_at(timeline.data.decisions[i][0]);
  }));
}

window.drappsTimelines = Array.from(document.querySelectorAll(".run"), (run) => {
  const timeline = run.querySelector(".timeline .data") ? new Timeline(run) : null;
  connect_table(run, timeline);
  return timeline;
});
