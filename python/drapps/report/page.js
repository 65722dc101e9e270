/* page.js: draws the timelines of a report and filters its tables.  All panels of a run share one range of time. */
"use strict";
(() => {
  const GUTTER = 46, MARGIN = 8; // left of a plot, for the numbers of its axis; right of it
  const HEIGHTS = { lane: 44, heat: 40, knob: 36, axis: 24, panel: 92 };
  const LEAST_RANGE = 0.05; // seconds
  const NEAR = 7; // pixels within which the pointer means a mark

  /* --- small things --- */

  function html(tag, css, text) {
    const node = document.createElement(tag);
    if (css) node.className = css;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function svg(tag, attributes, parent, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) node.setAttribute(name, attributes[name]);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  function three(value) {
    const size = Math.abs(value);
    return size >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
  }

  function scaled(value, unit) {
    const steps = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
    const step = steps.find(([size]) => Math.abs(value) >= size) || [1, ""];
    return `${three(value / step[0])} ${step[1]}${unit}`;
  }

  function show(value, unit) {
    if (value === null || value === undefined) return "–";
    if (unit === "share") return `${three(100 * value)} %`;
    if (unit === "B" || unit === "B/s") return scaled(value, unit);
    if (unit === "s") return value === 0 ? "0" : value < 1e-3 ? `${three(value * 1e6)} µs` : value < 1 ? `${three(value * 1e3)} ms` : `${three(value)} s`;
    return Math.abs(value) >= 1e4 ? scaled(value, "").trim() : three(value);
  }

  function clock(seconds, step) {
    const digits = step >= 1 ? 0 : step >= 0.1 ? 1 : step >= 0.01 ? 2 : 3;
    const whole = Number(seconds.toFixed(digits)), minutes = Math.floor(whole / 60), hours = Math.floor(minutes / 60);
    const rest = (whole - 60 * minutes).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
    return hours ? `${hours}:${String(minutes % 60).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
  }

  /* A round number at or above value: 1, 2 or 5 times a power of ten. */
  function round_up(value) {
    if (!(value > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= value * 0.9999);
  }

  /* The first place in a sorted array whose value is not below x. */
  function place(array, x) {
    let low = 0, high = array.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (array[middle] < x) low = middle + 1; else high = middle;
    }
    return low;
  }

  function nearest(array, x) {
    const i = place(array, x);
    return i > 0 && (i === array.length || x - array[i - 1] < array[i] - x) ? i - 1 : i;
  }

  function css_of(bound) {
    return /^[a-z]+$/.test(bound) ? `b-${bound}` : "b-unknown";
  }

  /* --- a plot: an SVG that is drawn anew for each range of time --- */

  class Plot {
    constructor(timeline, name, title, unit, height) {
      this.timeline = timeline;
      this.height = height;
      this.node = html("div", `panel p-${name.replace(/[^a-z_]/g, "")}`);
      this.label = this.node.appendChild(html("div", "label"));
      const head = this.label.appendChild(html("p"));
      head.append(html("b", "", title), " ", html("small", "", unit === "B" || unit === "s" ? "" : unit));
      this.keys = this.label.appendChild(html("ul"));
      this.box = this.node.appendChild(html("div", "plot"));
    }

    add_key(css, label) {
      const item = this.keys.appendChild(html("li"));
      item.append(html("i", `dot ${css}`), html("span", "", label));
      return item.appendChild(html("output"));
    }

    x(t) {
      const [a, b] = this.timeline.view;
      return GUTTER + ((t - a) / (b - a)) * (this.width - GUTTER - MARGIN);
    }

    /* Begins a drawing; what is drawn into the result is cut at the borders of the plot. */
    begin() {
      this.width = this.box.clientWidth;
      this.root = svg("svg", { viewBox: `0 0 ${this.width} ${this.height}`, "aria-hidden": "true" });
      this.inner = svg("svg", { x: GUTTER, y: 0, width: Math.max(1, this.width - GUTTER - MARGIN), height: this.height }, this.root);
      this.area = svg("g", { transform: `translate(${-GUTTER} 0)` }, this.inner);
      for (const [a, b] of this.timeline.data.gaps)
        svg("rect", { class: "gap", x: this.x(a), y: 0, width: this.x(b) - this.x(a), height: this.height }, this.area);
    }

    end() {
      this.cursor = svg("line", { class: "cursor", y1: 0, y2: this.height, x1: -9, x2: -9 }, this.area);
      this.box.replaceChildren(this.root);
    }

    draw() {
      this.begin();
      this.paint();
      this.end();
    }

    point_at(t) {
      if (this.cursor) for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, t === null ? -9 : this.x(t));
      this.say(t);
    }

    say() {}
  }

  /* Numbers of the time axis. */
  class Axis extends Plot {
    paint() {
      const [a, b] = this.timeline.view;
      const most = Math.max(2, Math.floor((this.width - GUTTER) / 90));
      const steps = [1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
      const step = steps.find((s) => (b - a) / s <= most) || round_up((b - a) / most);
      for (let t = Math.ceil(a / step) * step; t <= b; t += step) {
        svg("line", { class: "grid", x1: this.x(t), x2: this.x(t), y1: 18, y2: 24 }, this.area);
        const at = this.x(t), anchor = at > this.width - MARGIN - 20 ? "end" : at < GUTTER + 20 ? "start" : "middle";
        svg("text", { x: at, y: 13, "text-anchor": anchor }, this.area, clock(t, step));
      }
    }
  }

  /* Lines, or areas on top of each other. */
  class Lines extends Plot {
    constructor(timeline, spec) {
      super(timeline, spec.name, spec.title, spec.unit, HEIGHTS.panel);
      this.spec = spec;
      this.clock = timeline.clocks[spec.clock];
      this.outputs = spec.lines.map((line, i) => this.add_key(`s${i}`, line.label));
      this.tops = spec.kind === "stack" ? this.stack() : spec.lines.map((line) => line.v);
    }

    stack() {
      let below = this.clock.map(() => 0);
      return this.spec.lines.map((line) => (below = below.map((sum, i) => sum + (line.v[i] || 0))));
    }

    visible() {
      const [a, b] = this.timeline.view;
      return [Math.max(0, place(this.clock, a) - 1), Math.min(this.clock.length, place(this.clock, b) + 1)];
    }

    /* Sets what the bottom and the top of the plot are; only rewards go below 0. */
    scale() {
      const [from, to] = this.visible();
      let least = 0, most = 0;
      for (const values of this.tops) for (let i = from; i < to; i++) {
        most = Math.max(most, values[i]);
        least = Math.min(least, values[i]);
      }
      this.least = least < 0 ? -round_up(-least) : 0;
      this.most = this.top(most);
    }

    top(most) {
      if (this.spec.name === "cpu" && this.timeline.data.n_cpus) return this.timeline.data.n_cpus; // the sensors' clocks differ: a sum may be above
      return this.spec.unit === "share" && most > 0.5 ? Math.max(1, most) : round_up(most);
    }

    paint() {
      this.scale();
      for (const value of this.least < 0 ? [this.least, this.most] : [this.most / 2, this.most]) {
        svg("line", { class: "grid", x1: GUTTER, x2: this.width, y1: this.y(value), y2: this.y(value) }, this.area);
        const text = show(value, this.spec.unit === "B/s" ? "B" : this.spec.unit).replace(" ", "\u202f");
        svg("text", { x: GUTTER - 5, y: this.y(value) + 4, "text-anchor": "end" }, this.root, text);
      }
      svg("line", { class: "axis", x1: GUTTER, x2: this.width, y1: this.y(0), y2: this.y(0) }, this.area);
      for (let i = this.tops.length - 1; i >= 0; i--)
        if (this.spec.kind === "stack") svg("path", { class: `fill s${i}`, d: this.band(i) }, this.area);
        else svg("path", { class: `line s${i}`, d: this.path(this.tops[i]) }, this.area);
    }

    y(value) {
      return this.height - 4 - ((value - this.least) / (this.most - this.least)) * (this.height - 12);
    }

    path(values) {
      const [from, to] = this.visible(), parts = [];
      let pen = false;
      for (let i = from; i < to; i++) {
        if (values[i] === null || (i > from && this.timeline.gap_between(this.clock[i - 1], this.clock[i]))) pen = false;
        if (values[i] === null) continue;
        const dot = !pen && (i + 1 >= to || values[i + 1] === null) ? "h.1" : "";
        parts.push(`${pen ? "L" : "M"}${this.x(this.clock[i]).toFixed(1)} ${this.y(values[i]).toFixed(1)}${dot}`);
        pen = true;
      }
      return parts.join("");
    }

    band(i) {
      const [from, to] = this.visible(), up = [], down = [];
      for (let k = from; k < to; k++) {
        const x = this.x(this.clock[k]).toFixed(1);
        up.push(`${x} ${this.y(this.tops[i][k]).toFixed(1)}`);
        down.push(`${x} ${this.y(i ? this.tops[i - 1][k] : 0).toFixed(1)}`);
      }
      return up.length ? `M${up.join("L")}L${down.reverse().join("L")}Z` : "";
    }

    say(t) {
      const i = t === null ? -1 : nearest(this.clock, t);
      this.spec.lines.forEach((line, k) => (this.outputs[k].value = i < 0 ? "" : show(line.v[i], this.spec.unit)));
    }
  }

  /* The use of each CPU: a strip of cells for each. */
  class Heat extends Plot {
    constructor(timeline) {
      const rows = timeline.data.cpus.length;
      super(timeline, "cpus", "Each CPU", rows === 1 ? "1 CPU" : `${rows} CPUs`, Math.max(HEIGHTS.heat, Math.min(160, rows * 10)));
      this.rows = timeline.data.cpus.map((row) => Array.from(row, (digit) => (digit === " " ? -1 : parseInt(digit, 36) / 35)));
      this.output = this.add_key("s0", "busiest");
    }

    draw() {
      this.width = this.box.clientWidth;
      const canvas = html("canvas"), scale = window.devicePixelRatio || 1;
      canvas.width = this.width * scale;
      canvas.height = this.height * scale;
      const pen = canvas.getContext("2d");
      pen.scale(scale, scale);
      pen.beginPath();
      pen.rect(GUTTER, 0, this.width - GUTTER - MARGIN, this.height);
      pen.clip();
      pen.fillStyle = getComputedStyle(this.node).getPropertyValue("--p3") || "#d55e00";
      this.cells(pen);
      this.box.replaceChildren(canvas);
    }

    cells(pen) {
      const high = this.height / this.rows.length, wide = this.timeline.data.seconds / this.rows[0].length;
      this.rows.forEach((row, i) => row.forEach((use, k) => {
        if (use <= 0) return;
        pen.globalAlpha = use;
        pen.fillRect(this.x(k * wide), i * high, Math.max(0.5, this.x((k + 1) * wide) - this.x(k * wide) + 0.3), Math.max(1, high - 1));
      }));
    }

    say(t) {
      if (t === null) return void (this.output.value = "");
      const k = Math.min(this.rows[0].length - 1, Math.floor((t / this.timeline.data.seconds) * this.rows[0].length));
      const uses = this.rows.map((row) => row[k]), most = Math.max(...uses);
      this.output.value = most < 0 ? "–" : `CPU ${uses.indexOf(most)}: ${show(most, "share")}`;
    }
  }

  /* A knob: how it stood. */
  class Knob extends Plot {
    constructor(timeline, name, points) {
      super(timeline, name, name, "", HEIGHTS.knob);
      this.points = points;
      this.output = this.add_key("s4", "");
      this.node.classList.add("knob");
    }

    paint() {
      const values = this.points.map((p) => p[1]), low = Math.min(0, ...values), high = Math.max(...values, low + 1e-9);
      const y = (v) => this.height - 5 - ((v - low) / (high - low)) * (this.height - 12);
      const parts = this.points.map(([t, v], i) => (i ? `H${this.x(t).toFixed(1)}V${y(v).toFixed(1)}` : `M${this.x(t).toFixed(1)} ${y(v).toFixed(1)}`));
      svg("line", { class: "axis", x1: GUTTER, x2: this.width, y1: y(low), y2: y(low) }, this.area);
      svg("path", { class: "line s4", d: `${parts.join("")}H${this.x(this.timeline.data.seconds).toFixed(1)}` }, this.area);
      svg("text", { x: GUTTER - 5, y: 12, "text-anchor": "end" }, this.root, show(high, "").replace(" ", "\u202f"));
    }

    say(t) {
      const i = place(this.points.map((p) => p[0]), t === null ? Infinity : t + 1e-9) - 1;
      this.output.value = i < 0 ? "–" : show(this.points[i][1], "");
    }
  }

  /* What limited the run, decisions and events. */
  class Lane extends Plot {
    constructor(timeline) {
      super(timeline, "lane", "Limited by", "", HEIGHTS.lane);
      this.output = this.keys.appendChild(html("li")).appendChild(html("output"));
      if (timeline.data.decisions.length) this.label.append(html("small", "", "▲ changed  ◆ guarded"));
    }

    paint() {
      for (const [a, b, bound] of this.timeline.data.bounds)
        svg("rect", { class: css_of(bound), x: this.x(a), y: 4, width: Math.max(0.5, this.x(b) - this.x(a)), height: 16 }, this.area);
      for (const [t] of this.timeline.data.events)
        svg("line", { class: "event", x1: this.x(t), x2: this.x(t), y1: 0, y2: this.height }, this.area);
      for (const [t, changes, guarded] of this.timeline.data.decisions)
        if (changes || guarded) svg("path", { class: guarded ? "mark guarded" : "mark", d: this.mark(t, guarded) }, this.area);
    }

    mark(t, guarded) {
      const x = this.x(t);
      return guarded ? `M${x} 24l5 7l-5 7l-5 -7Z` : `M${x} 25l5 10h-10Z`;
    }

    say(t) {
      const band = t === null ? null : this.timeline.data.bounds.find(([a, b]) => t >= a && t <= b);
      this.output.value = band ? band[2] : "";
    }

    /* What is under the pointer: lines of text. */
    texts_at(t) {
      const close = (time) => Math.abs(this.x(time) - this.x(t)) <= NEAR;
      const events = this.timeline.data.events.filter(([time]) => close(time)).slice(0, 4).map(([, text]) => text);
      const { decisions } = this.timeline.data, i = nearest(decisions.map((d) => d[0]), t);
      return i < decisions.length && close(decisions[i][0]) ? [this.timeline.decision_text(i), ...events] : events;
    }
  }

  /* --- a timeline: the plots of a run --- */

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
      const texts = this.lane && event.target.closest(".plot") && this.lane.node.contains(event.target) ? this.lane.texts_at(t) : [];
      this.show_tip(texts, event);
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
      const keys = { "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.reset(),
                     Escape: () => this.reset(), ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2) };
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
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
})();
