// Asks for the page's two parts again and again, and changes what has changed in them.
const options = { responsive: true, displaylogo: false, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };
const sources = new WeakMap();
const later = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const told = {};
const problems = {};
let library;
let pressed = false;

for (const [name, held] of [["pointerdown", true], ["pointerup", false], ["pointercancel", false]]) {
  document.addEventListener(name, () => { pressed = held; }, true);
}

function say(text, problem = false, place = "said") {
  document.getElementById(place).textContent = text;
  document.getElementById(place).classList.toggle("problem", problem);
}

// What a person has done to a part stays: what is open, sorted, scrolled, and what the charts show.
function keep(before, after) {
  const open = new Set([...before.querySelectorAll("details[open]")].map((details) => details.dataset.key));
  for (const details of after.querySelectorAll("details")) details.open = open.has(details.dataset.key);
  const tables = after.querySelectorAll("table.sortable");
  before.querySelectorAll("table.sortable").forEach((table, place) => {
    const head = table.querySelector("th[data-rising]");
    const same = head && tables[place]?.querySelectorAll("th")[[...head.parentNode.children].indexOf(head)];
    if (same) sortBy(same, head.dataset.rising === "yes");
  });
  const field = before.querySelector("input");
  if (field && after.querySelector("input")) after.querySelector("input").value = field.value;
  const plots = before.querySelectorAll(".plot");
  after.querySelectorAll(".plot").forEach((plot, place) => {
    const drawn = plots[place];
    if (!drawn?.classList.contains("js-plotly-plot")) return;
    drawn.style.height = plot.style.height;
    drawn.fresh = plot.firstElementChild.textContent;
    plot.replaceWith(drawn);
  });
}

// Charts of hundreds of trials take seconds to draw: those that nobody sees wait until they are scrolled to.
const watch = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    target.seen = isIntersecting;
    if (isIntersecting) draw(target);
  }
}, { rootMargin: "300px" });
let drawing = Promise.resolve();

function draw(plot) {
  drawing = drawing.then(() => drawNow(plot)).catch((error) => {
    problems.charts = String(error);
    console.error(error);
  });
}

async function drawNow(plot) {
  const script = plot.querySelector(":scope > script");
  const text = script ? script.textContent : plot.fresh;
  if (!text || !plot.isConnected) return;
  delete plot.fresh;
  const { data, layout } = JSON.parse(text);
  // Zoom, and traces that were switched off, stay as they are while the data changes.
  layout.uirevision = "same";
  const seen = {};
  for (const trace of data) {
    const name = `${trace.xaxis ?? ""} ${trace.type} ${trace.name ?? ""}`;
    seen[name] = (seen[name] ?? 0) + 1;
    trace.uid = `${name} ${seen[name]}`;
  }
  library ??= load("../files/plotly.js").catch((error) => { library = undefined; throw error; });
  await library;
  if (script) {
    plot.replaceChildren();
    await Plotly.newPlot(plot, data, layout, options);
  } else {
    await Plotly.react(plot, data, layout, options);
  }
  await later(0);
}

function load(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = resolve;
    script.onerror = () => reject(new Error("what draws the charts cannot be loaded"));
    document.head.append(script);
  });
}

function patch(root, html) {
  const fresh = new DOMParser().parseFromString(html, "text/html").querySelectorAll("[data-part]");
  const left = new Map([...root.children].map((child) => [child.dataset.part, child]));
  const focus = document.activeElement?.dataset?.key;
  const placed = new Set();
  let place = root.firstElementChild;
  for (const part of fresh) {
    const before = left.get(part.dataset.part);
    left.delete(part.dataset.part);
    let node = before;
    const source = part.outerHTML;
    if (!before || sources.get(before) !== source) {
      node = document.importNode(part, true);
      sources.set(node, source);
      if (before) {
        const scrolled = [...before.querySelectorAll(".wide")].map((wide) => [wide.scrollLeft, wide.scrollTop]);
        keep(before, node);
        if (place === before) place = node;
        before.replaceWith(node);
        node.querySelectorAll(".wide").forEach((wide, number) => {
          if (scrolled[number]) [wide.scrollLeft, wide.scrollTop] = scrolled[number];
        });
      }
    }
    if (node === place) place = place.nextElementSibling;
    else root.insertBefore(node, place);
    placed.add(node);
  }
  for (const child of [...root.children]) if (!placed.has(child)) child.remove();
  if (focus && document.activeElement === document.body) {
    document.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
  }
}

// Returns the mark of what is shown now.
async function look(id, mark) {
  let answer;
  try {
    const headers = mark ? { "If-None-Match": mark } : {};
    answer = await fetch(`${location.pathname}/${id}`, { headers, cache: "no-store" });
  } catch {
    const over = document.querySelector("[data-over]")?.dataset.over;
    const kept = !over || over === "yes" ? "" : ` Its page is kept in ${over}.`;
    problems[id] = over ? `The sweep is over.${kept} specon ui shows it again.` : "specon does not answer here any more; this is how the sweep stood.";
    return mark;
  }
  if (answer.status === 304) {
    problems[id] = told[id];
    return mark;
  }
  if (answer.status !== 200) {
    problems[id] = (await answer.text()).slice(0, 500);
    return mark;
  }
  const { html, problem } = await answer.json();
  problems[id] = told[id] = problem;
  for (let wait = 0; pressed && wait < 60; wait++) await later(50);
  const root = document.getElementById(id);
  patch(root, html);
  for (const plot of root.querySelectorAll(".plot")) {
    watch.observe(plot);
    if (plot.seen) draw(plot);
  }
  document.documentElement.dataset[id] = "drawn";
  return answer.headers.get("ETag") ?? "";
}

async function follow(id, every) {
  let mark = "";
  for (;;) {
    if (document.hidden) await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
    try {
      mark = await look(id, mark);
    } catch (error) {
      problems[id] = String(error);
      console.error(error);
    }
    const text = [...new Set(Object.values(problems))].filter(Boolean).join(" ");
    say(text, !document.querySelector("[data-over]"), "problem");
    await later(every);
  }
}

async function ask(button) {
  const { what, trial } = button.dataset;
  if (what === "stop" && !confirm(`Stop ${trial ?? "all trials"}? This cannot be taken back while the sweep runs.`)) return;
  const body = what === "policy" ? { policy: document.getElementById("policy").value } : { what, trials: trial ? [trial] : null };
  button.disabled = true;
  try {
    const answer = await fetch(`${location.pathname}/${what === "policy" ? "policy" : "ask"}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    say((await answer.text()).slice(0, 500), !answer.ok);
  } catch (error) {
    say(`It could not be asked: ${error.message}`, true);
  } finally {
    button.disabled = false;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-what]");
  if (button) ask(button);
});

if (document.getElementById("standing")) {
  follow("standing", 2000);
  follow("report", 5000);
}
