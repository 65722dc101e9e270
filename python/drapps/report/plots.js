/* plots.js: the panels of a timeline, each drawn anew for a range of time.  timeline.js shows them. */
"use strict";

const GUTTER = 46, MARGIN = 8; // left of a plot, for the numbers of its axis; right of it
const HEIGHTS = { lane: 44, heat: 40, knob: 36, axis: 24, panel: 92 };
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

function show_time(seconds) {
  if (seconds === 0) return "0";
  if (seconds < 1e-3) return `${three(seconds * 1e6)} µs`;
  return seconds < 1 ? `${three(seconds * 1e3)} ms` : `${three(seconds)} s`;
}

function show(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "share") return `${three(100 * value)} %`;
  if (unit === "B" || unit === "B/s") return scaled(value, unit);
  if (unit === "s") return show_time(value);
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
    const width = Math.max(1, this.width - GUTTER - MARGIN);
    const inner = svg("svg", { x: GUTTER, y: 0, width, height: this.height }, this.root);
    this.area = svg("g", { transform: `translate(${-GUTTER} 0)` }, inner);
    for (const [a, b] of this.timeline.data.gaps) this.rect("gap", a, b, 0, this.height);
  }

  rect(css, a, b, y, height) {
    svg("rect", { class: css, x: this.x(a), y, width: Math.max(0.5, this.x(b) - this.x(a)), height }, this.area);
  }

  /* A line across the plot, at a height; with a number where there is one. */
  level(css, y, text) {
    svg("line", { class: css, x1: GUTTER, x2: this.width, y1: y, y2: y }, this.area);
    if (text !== undefined) this.number(y + 4, text);
  }

  /* A number left of the plot; its blank is a narrow one. */
  number(y, text) {
    svg("text", { x: GUTTER - 5, y, "text-anchor": "end" }, this.root, text.replace(" ", "\u202f"));
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
const TIME_STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900,
  1800, 3600, 7200, 14400, 43200, 86400]; // seconds

class Axis extends Plot {
  paint() {
    const [a, b] = this.timeline.view;
    const most = Math.max(2, Math.floor((this.width - GUTTER) / 90));
    const step = TIME_STEPS.find((s) => (b - a) / s <= most) || round_up((b - a) / most);
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
    this.clock = timeline.clocks[spec.source];
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

  /* CPUs: as many as there are, although a sum of sensors that are read one after the other may be above. */
  top(most) {
    if (this.spec.name === "cpu" && this.timeline.data.n_cpus) return this.timeline.data.n_cpus;
    return this.spec.unit === "share" && most > 0.5 ? Math.max(1, most) : round_up(most);
  }

  paint() {
    this.scale();
    for (const value of this.least < 0 ? [this.least, this.most] : [this.most / 2, this.most]) {
      this.level("grid", this.y(value), show(value, this.spec.unit === "B/s" ? "B" : this.spec.unit));
    }
    this.level("axis", this.y(0));
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
      if (values[i] === null || (pen && this.timeline.gap_between(this.clock[i - 1], this.clock[i]))) pen = false;
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
    super(timeline, "cpus", "Each CPU", "", Math.max(HEIGHTS.heat, Math.min(160, rows * 10)));
    const use_of = (digit) => (digit === " " ? -1 : parseInt(digit, 36) / 35);
    this.rows = timeline.data.cpus.map((row) => Array.from(row, use_of));
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
      const left = this.x(k * wide), right = this.x((k + 1) * wide);
      pen.globalAlpha = use;
      pen.fillRect(left, i * high, Math.max(0.5, right - left + 0.3), Math.max(1, high - 1));
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
    const values = this.points.map((p) => p[1]);
    const low = Math.min(0, ...values), high = Math.max(...values) > low ? Math.max(...values) : low + 1;
    const y = (v) => this.height - 5 - ((v - low) / (high - low)) * (this.height - 12);
    const [first, ...rest] = this.points;
    const steps = rest.map(([t, v]) => `H${this.x(t).toFixed(1)}V${y(v).toFixed(1)}`).join("");
    const begin = `M${this.x(first[0]).toFixed(1)} ${y(first[1]).toFixed(1)}`;
    this.level("axis", y(low));
    const end = `H${this.x(this.timeline.data.seconds).toFixed(1)}`;
    svg("path", { class: "line s4", d: begin + steps + end }, this.area);
    this.number(12, show(high, ""));
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
    this.output = this.label.firstChild.appendChild(html("output"));
    if (timeline.data.decisions.length) this.label.append(html("small", "", "▲ changed  ◆ guarded"));
  }

  paint() {
    for (const [a, b, bound] of this.timeline.data.bounds) this.rect(css_of(bound), a, b, 4, 16);
    for (const [t] of this.timeline.data.events)
      svg("line", { class: "event", x1: this.x(t), x2: this.x(t), y1: 0, y2: this.height }, this.area);
    for (const [t, changes, guarded] of this.timeline.data.decisions)
      if (guarded) svg("path", { class: "mark guarded", d: `M${this.x(t)} 24l5 7l-5 7l-5 -7Z` }, this.area);
      else if (changes) svg("path", { class: "mark", d: `M${this.x(t)} 25l5 10h-10Z` }, this.area);
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
