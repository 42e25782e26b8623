"use strict";
// What a job says is written by textContent and setAttribute only, so it is never markup.

const DENSE_FROM = 65;
const RANKS = 8;
const PICTURE_EVERY_MS = 10000;
const $ = (id) => document.getElementById(id);
let shown = null;      // the last state that came
let time = null;       // the last time of the server's command, and when it came, on this page's clock
let cut = false;       // the page has lost its server
let chosen = null;     // the node whose details are shown
let drawing = false;

function element(name, text, look) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (look) made.className = look;
  return made;
}

function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const seconds = () => performance.now() / 1000;
const now = () => (time ? time.at + seconds() - time.cameAt : shown.at);
const over = () => ["succeeded", "failed", "cancelled"].includes(shown.state);

function span(length) {
  const whole = Math.max(0, Math.floor(length));
  if (whole < 60) return `${whole} s`;
  const two = (number) => String(number).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}:${two(whole % 60)} min`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)} h`;
}

function lasted(length) {
  const whole = Math.max(0, Math.floor(length));
  const two = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  return `${hours ? `${hours}:${two(Math.floor(whole / 60) % 60)}` : Math.floor(whole / 60)}:${two(whole % 60)}`;
}

const clock = (at) => new Date((shown.epoch + at) * 1000).toLocaleTimeString([], { hourCycle: "h23" });
const counted = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;
const ranks = (node) => (node.ranks ? `${node.ranks.includes("-") ? "ranks" : "rank"} ${node.ranks}` : "no ranks");

// --- nodes

function showNodes() {
  const list = $("nodes");
  const dense = shown.nodes.length >= DENSE_FROM;
  list.classList.toggle("dense", dense);
  const known = new Map([...list.children].map((tile) => [tile.dataset.node, tile]));
  const tiles = shown.nodes.map((node) => known.get(node.node) || newTile(node.node));
  if (tiles.length !== list.children.length || tiles.some((tile, place) => tile !== list.children[place])) {
    const focused = document.activeElement;
    const had = list.contains(focused);
    list.replaceChildren(...tiles);
    if (had && list.contains(focused)) focused.focus();
    else if (had && tiles.length) tiles[0].firstChild.focus();
  }
  if (!shown.nodes.some((node) => node.node === chosen)) chosen = null;
  const stop = chosen || (shown.nodes[0] && shown.nodes[0].node);
  shown.nodes.forEach((node, place) => fill(tiles[place].firstChild, node, dense, stop));
  const looks = new Map();
  for (const node of shown.nodes) looks.set(node.state, (looks.get(node.state) || 0) + 1);
  const limits = shown.nodes_max ? ` · ${shown.nodes_min === shown.nodes_max ? shown.nodes_min : `${shown.nodes_min} to ${shown.nodes_max}`} wanted` : "";
  write($("summary"), [...looks].map(([state, number]) => `${number} ${state}`).join(" · ") + (looks.size ? limits : "no node is seated"));
  tellChosen();
}

function newTile(node) {
  const tile = element("li");
  tile.dataset.node = node;
  const button = tile.appendChild(element("button"));
  button.type = "button";
  button.append(element("b"), element("span"), element("span"));
  button.addEventListener("click", () => { chosen = chosen === node ? null : node; showNodes(); });
  return tile;
}

function fill(button, node, dense, stop) {
  button.className = node.look;
  button.tabIndex = node.node === stop ? 0 : -1;
  button.setAttribute("aria-pressed", String(node.node === chosen));
  button.setAttribute("aria-label", `${node.name}, ${node.state}, ${ranks(node)}${isOld() ? ", as it was seen last" : ""}`);
  button.title = dense ? `${node.name} · ${node.state} · ${ranks(node)}` : "";
  const [name, first, second] = button.children;
  name.hidden = second.hidden = dense;
  write(name, node.name);
  write(first, dense ? (node.name.match(/\d{1,4}$/) || [node.name.slice(-3)])[0] : node.state);
  write(second, ranks(node));
}

function tellChosen() {
  const node = shown.nodes.find((each) => each.node === chosen);
  write($("chosen"), node ? [node.name, ...(node.host === node.name ? [] : [`host ${node.host}`]), node.state, ranks(node), counted(node.workers, "worker"), `role ${node.role}`, node.address, ...(node.standbys ? [`standbys: ${node.standbys}`] : []), ...(node.notice ? [`drained ${node.notice}`] : []), ...(node.aside ? [node.aside] : []),
    `since ${clock(node.since)}${node.before ? " or before" : ""}`, node.node].join(" · ") : "");
}

$("nodes").addEventListener("keydown", (event) => {
  const buttons = [...$("nodes").querySelectorAll("button")];
  const place = buttons.indexOf(document.activeElement);
  if (place < 0) return;
  const row = buttons.filter((button) => button.offsetTop === buttons[0].offsetTop).length;
  const goes = { ArrowRight: place + 1, ArrowLeft: place - 1, ArrowDown: place + row, ArrowUp: place - row, Home: 0, End: buttons.length - 1 };
  const next = buttons[goes[event.key]];
  if (!next) return;
  event.preventDefault();
  buttons.forEach((button) => { button.tabIndex = button === next ? 0 : -1; });
  next.focus();
});

// --- timeline

function showEvents() {
  $("events").replaceChildren(...shown.events.slice().reverse().map((each) => {
    const line = element("li");
    const time = line.appendChild(element("time", clock(each.at), "dim"));
    time.dateTime = new Date((shown.epoch + each.at) * 1000).toISOString();
    line.append(element("span", each.text, each.kind));
    return line;
  }));
  $("rounds").replaceChildren(...shown.rounds.slice().reverse().map((each) => {
    const row = element("tr");
    const least = each.at_most ? "≤ " : "";
    const recovery = each.recovery === null ? "" : least + (each.recovery < 1 ? `${Math.round(each.recovery * 1000)} ms` : `${each.recovery.toFixed(1)} s`);
    const ran = element("td");
    if (each.ended === null) ran.dataset.since = each.began;
    else ran.textContent = span(each.ended - each.began);
    row.append(element("td", each.round), element("td", each.nodes), element("td", each.workers), element("td", recovery), ran,
      element("td", each.ended === null ? "" : `${each.how}, ${clock(each.ended)}`));
    return row;
  }));
}

async function draw() {
  if (drawing || document.hidden) return;
  drawing = true;
  try {
    const answer = await fetch("timeline.svg");
    if (answer.ok) {
      const root = new DOMParser().parseFromString(await answer.text(), "image/svg+xml").documentElement;
      if (root.localName === "svg") $("picture").replaceChildren(document.importNode(root, true));
    }
  } catch {
    // the server is away; the stream says so
  } finally {
    drawing = false;
  }
}

// --- failures

function showFailures() {
  const more = shown.failed > shown.failures.length ? `, the last ${shown.failures.length} of them here` : "";
  write($("failed"), shown.failed ? `${counted(shown.failed, "failure")} on record${more}` : "No failure is on record.");
  const list = $("failure-list");
  const known = new Map([...list.children].map((item) => [item.dataset.key, item]));
  const items = shown.failures.map((failure, place) => {
    const old = known.get(failure.key);
    const item = old || newFailure(failure, place === 0);
    const cause = item.querySelector(".cause");
    cause.hidden = !failure.cause;
    write(cause, failure.sure ? "first cause" : "perhaps the first cause");
    return item;
  });
  if (items.length !== list.children.length || items.some((item, place) => item !== list.children[place])) list.replaceChildren(...items);
}

function showStacks() {
  const stacks = shown.stacks || [];
  $("stacked").hidden = !stacks.length;
  const more = shown.stacked > stacks.length ? `; ${shown.stacked - stacks.length} more places are left out` : "";
  write($("stacked"), stacks.length ? `Where workers were stopped in round ${stacks[0].round}, the odd ones last${more}` : "");
  $("stacks").replaceChildren(...stacks.map((each) => element("li", `${ranksOf(each.ranks)} ${each.place}`)));
}

function ranksOf(ranks) {
  if (ranks.length > RANKS) return counted(ranks.length, "rank");
  return `${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;
}

function newFailure(failure, open) {
  const item = element("li");
  item.dataset.key = failure.key;
  const box = item.appendChild(element("details"));
  box.open = open;
  const head = box.appendChild(element("summary"));
  head.append(element("span", "first cause", "cause"), element("strong", failure.who), ` · round ${failure.round} · ${failure.ended}`);
  if (failure.said && failure.said !== failure.ended) head.append(` · ${failure.said}`);
  const facts = box.appendChild(element("dl"));
  const when = new Date(failure.when);
  const at = Number.isNaN(when.getTime()) ? failure.when : when.toLocaleString([], { hourCycle: "h23" });
  for (const [name, text] of [["when", at], ["after", `${failure.after.toFixed(1)} s`], ["where", failure.where], ["remark", failure.remark], ["log", failure.log]]) {
    if (text) facts.append(element("dt", name), element("dd", text));
  }
  for (const [title, text] of [["Traceback", failure.traceback], ["End of its log", failure.tail]]) {
    if (!text) continue;
    const lines = element("pre", text);
    lines.tabIndex = 0;
    lines.setAttribute("aria-label", `${title} of ${failure.who}`);
    box.append(element("h3", title), lines);
  }
  return item;
}

// --- where the time went

function showGoodput() {
  const goodput = shown.goodput;
  $("time").hidden = !goodput;
  if (!goodput) return;
  const bar = $("bar");
  let x = 0;
  bar.replaceChildren(...goodput.bar.map((each) => {
    const part = document.createElementNS(bar.namespaceURI, "rect");
    const width = 1000 * each.share;
    for (const [name, value] of [["class", each.look], ["x", x], ["y", 0], ["width", width], ["height", 40]]) part.setAttribute(name, value);
    part.appendChild(document.createElementNS(bar.namespaceURI, "title")).textContent = each.text;
    x += width;
    return part;
  }));
  write($("spent"), goodput.lines[0]);
  write($("lost"), goodput.lines[1] || "");
}

// --- all of it

function show() {
  write($("sentence"), shown.sentence);
  write($("state"), shown.state);
  $("state").className = `badge ${["forming", "running", "succeeded", "failed", "cancelled"].includes(shown.state) ? shown.state : ""}`;
  document.title = `${shown.state} · ${shown.job} · elastic`;
  showNodes();
  showEvents();
  showFailures();
  showStacks();
  showGoodput();
  const left = shown.max_restarts - shown.restarts;
  write($("restarts"), shown.max_restarts === undefined ? "" : `${counted(left, "restart")} left of ${shown.max_restarts}`);
  showTimes();
}

function isOld() {
  return cut || shown.forgotten || (Boolean(shown.silent) && !over());
}

function showTimes() {
  if (!shown) return;
  for (const cell of $("rounds").querySelectorAll("[data-since]")) write(cell, span(now() - Number(cell.dataset.since)));
  const silent = shown.silent;
  if (silent && !over()) {
    write($("silent-for"), lasted(now() - silent.since));
    write($("silent-since"), clock(silent.since));
  }
  $("silent").hidden = !silent || over();
  document.body.classList.toggle("old", isOld());
  write($("store"), silent
    ? `${shown.store} does not answer for ${span(now() - silent.since)}${over() ? "; the job is over, and its store may have ended with it" : ""}: ${silent.why}`
    : `${shown.store} answers${shown.took ? `, within ${shown.took} ms` : ""}`);
}

function come(event) {
  const took = shown && shown.took;
  shown = { ...JSON.parse(event.data), took };
  show();
  draw();
}

const stream = new EventSource("events");
stream.addEventListener("state", come);
stream.addEventListener("tick", (event) => {
  if (!shown) return;
  const tick = JSON.parse(event.data);
  shown.took = tick.took;
  time = { at: tick.at, cameAt: seconds() };
  showTimes();
});

function loses(server) {
  $("cut").hidden = !server;
  cut = server;
  if (shown) show();
}

stream.onopen = () => loses(false);
stream.onerror = () => loses(true);
setInterval(showTimes, 1000);
setInterval(draw, PICTURE_EVERY_MS);
document.addEventListener("visibilitychange", draw);
