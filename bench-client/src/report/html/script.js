"use strict";
// Read-outs: the values of all curves under the pointer, or under the focus with the arrow keys.
for (const plot of document.querySelectorAll(".plot")) {
  const data = JSON.parse(plot.querySelector("script").textContent);
  const field = plot.querySelector(".field");
  const pointer = plot.querySelector(".pointer");
  const readout = plot.parentElement.querySelector(".readout");
  const hint = "Point at the chart, or focus it and use the arrow keys, to read values.";
  let place = -1;

  const digits = (value, count) => value.toFixed(count);
  const format = (value) => {
    if (data.unit === "rate") return value.toLocaleString("en").replaceAll(",", "\u202f");
    if (value < 1e3) return value + " ns";
    if (value < 1e5) return digits(value / 1e3, 1) + " µs";
    if (value < 1e9) return digits(value / 1e6, 3) + " ms";
    return digits(value / 1e9, 3) + " s";
  };
  const height = (value) => {
    const inside = Math.min(Math.max(value, data.low), data.high);
    const share = data.log
      ? Math.log(inside / data.low) / Math.log(data.high / data.low)
      : (inside - data.low) / (data.high - data.low);
    return data.height * (1 - share);
  };
  const add = (parent, name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent.append(element);
  };
  const show = (next) => {
    place = next;
    const x = data.places[place] / 100 + "%";
    pointer.replaceChildren();
    add(pointer, "line", { x1: x, x2: x, y1: 0, y2: data.height });
    const name = document.createElement("b");
    name.textContent = data.labels[place] + ": ";
    readout.replaceChildren(name);
    for (const curve of data.curves) {
      const value = curve.values[place];
      if (value === null) continue;
      add(pointer, "circle", { cx: x, cy: height(value), r: 4, class: "dot " + curve.look });
      const part = document.createElement("span");
      const number = document.createElement("b");
      number.textContent = format(value);
      part.append(curve.name + " ", number);
      readout.append(part, " ");
    }
  };
  const hide = () => {
    place = -1;
    pointer.replaceChildren();
    readout.textContent = hint;
  };
  const nearest = (event) => {
    const box = field.getBoundingClientRect();
    const wanted = ((event.clientX - box.left) / box.width) * 10000;
    let best = 0;
    data.places.forEach((at, index) => {
      if (Math.abs(at - wanted) < Math.abs(data.places[best] - wanted)) best = index;
    });
    return best;
  };
  const last = data.places.length - 1;
  if (last < 0) continue;
  plot.tabIndex = 0;
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label", "Chart; the arrow keys read values");
  readout.setAttribute("aria-live", "polite");
  hide();
  plot.addEventListener("pointermove", (event) => show(nearest(event)));
  plot.addEventListener("pointerdown", (event) => show(nearest(event)));
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: Math.max(place - 1, 0), ArrowRight: Math.min(place + 1, last), Home: 0, End: last };
    if (event.key === "Escape") return hide();
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(steps[event.key]);
  });
}
