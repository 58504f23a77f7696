"use strict";
// Everything on the page is made here, from the data below, by textContent alone: no text is ever read as HTML.
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function bytes(text) { return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer; }
const count = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
const decimals = (value) => value.toFixed(3).replace("-", "−");
const plain = (name) => name.replaceAll("_", " ");

// ---- what is known -----------------------------------------------------------------------------------------
const length = data.words.length;
const patterns = Object.keys(data.edges.shares);
const weights = new Uint16Array(bytes(data.edges.weight));
const shares = Object.fromEntries(patterns.map((name) => [name, new Uint8Array(bytes(data.edges.shares[name]))]));
const friendCircles = data.circles.filter((circle) => !circle.passage);
const passages = data.circles.filter((circle) => circle.passage);
const matches = new Set(data.matches);
const continues = (node) => node > 0 && data.words[node].length > 2 && data.words[node].startsWith("##");
// What has nothing to see would be nothing to point at.
const visible = (text) => (/[^\p{C}\p{Z}\p{M}]/u.test(text) ? text : "□");
const shownWord = (node) => visible(continues(node) ? data.words[node].slice(2) : data.words[node]);

const { start, friend, edge } = neighbours();
const circlesOf = memberships(friendCircles);
const passagesOf = memberships(passages);

// The edges come once, by their lower end; here every node gets all its friends, in the order of the text.
function neighbours() {
  const after = new Uint32Array(bytes(data.edges.count));
  const higher = new (data.edges.wide ? Uint32Array : Uint16Array)(bytes(data.edges.friend));
  const start = new Uint32Array(length + 1);
  for (let node = 0, at = 0; node < length; node++) {
    for (let left = after[node]; left > 0; left--, at++) { start[node + 1]++; start[higher[at] + 1]++; }
  }
  for (let node = 0; node < length; node++) start[node + 1] += start[node];
  const next = start.slice(), friend = new Uint32Array(start[length]), edge = new Uint32Array(start[length]);
  for (let node = 0, at = 0; node < length; node++) {
    for (let left = after[node]; left > 0; left--, at++) {
      const other = higher[at];
      friend[next[node]] = other; edge[next[node]++] = at;
      friend[next[other]] = node; edge[next[other]++] = at;
    }
  }
  return { start, friend, edge };
}

function memberships(circles) {
  const found = Array.from({ length }, () => []);
  for (const circle of circles) for (const node of circle.members) found[node].push(circle.number);
  return found;
}

// A tie's weight: its probability, or the part of it that is owed to one pattern.
function tie(place, pattern) {
  const whole = weights[edge[place]] * data.edges.step;
  return pattern ? (whole * shares[pattern][edge[place]]) / 255 : whole;
}

function friendsOf(node, pattern) {
  const found = [];
  for (let place = start[node]; place < start[node + 1]; place++) {
    found.push({ node: friend[place], edge: edge[place], weight: tie(place, pattern), whole: tie(place) });
  }
  return found.sort((a, b) => b.weight - a.weight || a.node - b.node);
}

// How many of a word's friends each pattern accounts for.
function owed(node, pattern) {
  let sum = 0;
  for (let place = start[node]; place < start[node + 1]; place++) sum += shares[pattern][edge[place]] / 255;
  return sum;
}

function mainPattern(edgeNumber) {
  const best = patterns.reduce((a, b) => (shares[b][edgeNumber] > shares[a][edgeNumber] ? b : a), patterns[0]);
  return best && shares[best][edgeNumber] > 0 ? best : null;
}

const meet = (i, j) => circlesOf[i].filter((number) => circlesOf[j].includes(number));

// ---- what is chosen ----------------------------------------------------------------------------------------
const shown = new Set(friendCircles.map((circle) => circle.number));
const turn = new Map(friendCircles.map((circle, place) => [circle.number, place]));
const colour = (number) => `var(--c${turn.get(number) % 8})`;
let solo = null; // the circle that stands out
let current = null; // the word whose friends are shown
let held = false; // whether it stays while the pointer moves on
let stop = 0; // the word that Tab comes back to
let everyone = false; // whether all its friends are listed
let shade = null; // how strongly each word is shaded while there is no current one, from 0 to 1

const chosenPattern = () => ($("shade").value.startsWith("pattern:") ? $("shade").value.slice(8) : null);

function shading() {
  const [kind, name] = $("shade").value.split(":");
  if (kind === "circles") return null;
  const value = Array.from({ length }, (_, node) => {
    if (kind === "weight") return data.weights[name][node] ?? 0;
    return kind === "pattern" ? owed(node, name) : start[node + 1] - start[node];
  });
  const least = value.reduce((a, b) => Math.min(a, b), Infinity), most = value.reduce((a, b) => Math.max(a, b), -Infinity);
  return value.map((x) => (most > least ? (x - least) / (most - least) : 0));
}

// ---- the text ----------------------------------------------------------------------------------------------
const pieces = [];
const badges = new Map(); // leader -> the mark beside it

function drawText() {
  const begins = new Map(passages.map((passage) => [passage.members[0], passage.number]));
  const leaders = new Set(friendCircles.map((circle) => circle.leader));
  let block = make("div");
  for (let node = 0; node < length; node++) {
    if (begins.has(node)) {
      if (block.childNodes.length) $("text").append(block, " ");
      block = make("div");
      block.dataset.label = `¶${begins.get(node)}`;
    } else if (!continues(node)) block.append(" ");
    const piece = make("span", matches.has(node) ? "piece match" : "piece", shownWord(node));
    Object.assign(piece, { dir: "auto", tabIndex: node ? -1 : 0, role: "option", ariaSelected: "false" });
    piece.dataset.node = node;
    pieces.push(piece);
    block.append(piece);
    if (leaders.has(node)) {
      badges.set(node, make("sup", "badge"));
      badges.get(node).ariaHidden = "true";
      block.append(badges.get(node));
    }
  }
  $("text").append(block);
  if (!length) $("text").append(make("p", "note", "The document has no word piece."));
}

// The line of a circle: solid for the first eight circles, then dashed, then dotted.
function line(number) {
  const [on, off] = [[1, 0], [6, 3], [2, 3]][Math.floor(turn.get(number) / 8) % 3];
  return `repeating-linear-gradient(90deg, ${colour(number)} 0 ${on}px, transparent ${on}px ${on + off}px)`;
}

// One line for each circle, one below the other.
function underline(element, numbers, room = 11) {
  const step = Math.min(4, room / Math.max(numbers.length, 1)), thick = Math.max(step - 1, 0.8);
  element.style.backgroundImage = numbers.map(line).join(", ");
  element.style.backgroundSize = numbers.map(() => `100% ${thick}px`).join(", ");
  element.style.backgroundPosition = numbers.map((_, i) => `0 calc(100% - ${room - thick - i * step}px)`).join(", ");
}

function paintCircles() {
  const member = new Set(solo === null ? [] : data.circles[solo].members);
  const drawn = (number) => (solo === null ? shown.has(number) : number === solo);
  $("text").classList.toggle("solo-view", solo !== null);
  $("text").style.setProperty("--own", solo === null ? "" : colour(solo));
  pieces.forEach((piece, node) => {
    if (circlesOf[node].length) underline(piece, circlesOf[node].filter(drawn));
    piece.classList.toggle("member", member.has(node));
  });
  for (const [node, badge] of badges) {
    const led = friendCircles.filter((circle) => circle.leader === node && drawn(circle.number));
    badge.textContent = led.map((circle) => circle.number).join(" ");
    badge.hidden = !led.length;
    pieces[node].classList.toggle("leading", led.length > 0);
  }
  for (const row of $("friends").children) {
    const number = Number(row.dataset.circle);
    row.classList.toggle("solo", number === solo);
    row.querySelector(".name").ariaPressed = String(number === solo);
    row.querySelector("input").checked = shown.has(number);
  }
  $("shown").textContent = $("first").value = shown.size;
}

// While a word is current its friends are shaded, else what the selector says.
function paintShade() {
  const much = shade ? shade.slice() : new Array(length).fill(0);
  if (current !== null) {
    much.fill(0);
    const friends = friendsOf(current, chosenPattern());
    for (const { node, weight } of friends) if (weight > 0) much[node] = 0.12 + (0.88 * weight) / friends[0].weight;
  }
  pieces.forEach((piece, node) => {
    piece.classList.toggle("shaded", much[node] > 0);
    if (much[node] > 0) piece.style.setProperty("--much", much[node].toFixed(3));
    piece.classList.toggle("self", node === current);
    piece.ariaSelected = String(held && node === current);
  });
  document.body.classList.toggle("held", held);
}

// ---- the word ----------------------------------------------------------------------------------------------
function choose(node, hold = held) {
  if (node === current && hold === held) return;
  everyone = everyone && node === current;
  if (node !== null) {
    pieces[stop].tabIndex = -1;
    pieces[(stop = node)].tabIndex = 0;
  }
  current = node;
  held = hold && node !== null;
  paintShade();
  drawWord();
}

function go(node, hold = held) {
  choose(node, hold);
  pieces[node].focus({ preventScroll: true });
  pieces[node].scrollIntoView({ block: "nearest" });
}

function wholeWord(node) {
  let first = node, last = node + 1;
  while (continues(first)) first--;
  while (last < length && continues(last)) last++;
  const part = (from, to) => Array.from({ length: to - from }, (_, i) => shownWord(from + i)).join("");
  return [part(first, node), shownWord(node), part(node + 1, last)];
}

function chips(numbers) {
  const box = make("span", "circles");
  for (const number of numbers) {
    const chip = make("span", "number", number);
    if (turn.has(number)) underline(chip, [number], 4);
    box.append(chip);
  }
  return box;
}

function meter(share) {
  const box = make("span", "meter");
  box.append(make("i"));
  box.firstChild.style.width = `${100 * Math.min(share, 1)}%`;
  return box;
}

// Where in the document something stands: ticks of heights from 0 to 1.
function strip(nodes, heights, centre) {
  const tall = 30, space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", `0 0 ${Math.max(length, 1)} ${tall}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "strip");
  svg.setAttribute("aria-hidden", "true");
  const tick = (node, i) => `M${node + 0.5} ${tall}V${(tall * (1 - (heights ? heights[i] : 0.75))).toFixed(1)}`;
  for (const [name, path] of [["", nodes.map(tick).join("")], ["centre", `M${centre + 0.5} ${tall}V0`]]) {
    const element = document.createElementNS(space, "path");
    element.setAttribute("d", path);
    element.setAttribute("class", name);
    svg.append(element);
  }
  return svg;
}

function drawWord() {
  $("about").replaceChildren();
  $("ties").replaceChildren();
  $("word").classList.toggle("empty", current === null);
  if (current === null) {
    const hint = "Point at a word to see its friends, or walk from word to word with the arrow keys. A click or Enter " +
      "holds the word, Escape lets it go.";
    $("about").append(make("p", "note", hint));
    return;
  }
  const pattern = chosenPattern(), friends = friendsOf(current, pattern);
  const [before, piece, after] = wholeWord(current);
  const title = make("h2");
  title.append(make("s", "", before), piece, make("s", "", after));
  title.dir = "auto";
  const place = make("p", "", `word ${current} of ${length.toLocaleString("en")}`);
  if (matches.has(current)) place.append(", in the query");
  if (passagesOf[current].length) place.append(`, passage ¶${passagesOf[current].join(" ¶")}`);
  if (circlesOf[current].length) place.append(circlesOf[current].length > 1 ? ", circles " : ", circle ");
  place.append(chips(circlesOf[current]));
  const met = friends.filter((one) => meet(current, one.node).length).length;
  const also = friendCircles.length ? `, ${met} of them in a circle with it` : "";
  $("about").append(title, place, make("p", "", count(friends.length, "friend") + also));
  if (friends.length) {
    const most = friends[0].weight || 1;
    $("ties").append(strip(friends.map((one) => one.node), friends.map((one) => one.weight / most), current));
  }
  drawPatterns(pattern, friends.length);
  const own = Object.entries(data.weights).map(([name, all]) => `${plain(name)} ${Number(all[current]?.toPrecision(3))}`);
  if (own.length) $("ties").append(make("p", "note", `Its weights: ${own.join(", ")}`));
  if (friends.length) drawFriends(friends, pattern);
}

const initials = new Map(patterns.map((name) => [name, name.split("_").map((word) => word[0]).join("")]));
const short = (name) => ([...initials.values()].filter((x) => x === initials.get(name)).length > 1 ? plain(name) : initials.get(name));

function drawPatterns(chosen, friends) {
  if (!patterns.length || !friends) return;
  $("ties").append(make("p", "note", "Friends that each pattern accounts for:"));
  for (const name of patterns) {
    const row = make("div", name === chosen ? "bar chosen" : "bar"), amount = owed(current, name);
    row.append(make("span", "", `${plain(name)} (${short(name)})`), meter(amount / friends), make("span", "right", amount.toFixed(1)));
    $("ties").append(row);
  }
}

function drawFriends(friends, pattern) {
  const table = make("table"), head = make("tr"), listed = everyone ? friends : friends.slice(0, 15);
  const names = ["friend", "at", pattern ? `p by ${short(pattern)}` : "p", ...(patterns.length ? ["most by"] : []), "meet in"];
  head.append(...names.map((name) => make("th", "", name)));
  table.append(head);
  for (const one of listed) {
    const row = make("tr"), button = make("button", "", wholeWord(one.node).join("")), word = make("td");
    button.type = "button";
    button.dir = "auto";
    button.addEventListener("click", () => go(one.node, true));
    word.append(button);
    const weight = make("td", "weight", one.weight.toFixed(3));
    weight.append(meter(one.weight));
    row.append(word, make("td", "", one.node), weight);
    if (patterns.length) {
      const main = mainPattern(one.edge), cell = make("td", "", main ? short(main) : "chance");
      cell.title = main ? plain(main) : "no pattern speaks";
      row.append(cell);
    }
    row.append(make("td"));
    row.lastChild.append(chips(meet(current, one.node)));
    row.dataset.node = one.node;
    table.append(row);
  }
  $("ties").append(table);
  if (listed.length < friends.length) {
    const more = make("button", "", `all ${friends.length.toLocaleString("en")} friends`);
    Object.assign(more, { type: "button", id: "more" });
    more.addEventListener("click", () => { everyone = true; drawWord(); });
    $("ties").append(more);
  }
}

// ---- circles, statistics, the head of the page -------------------------------------------------------------
function difference(circle) {
  if (circle.without === null || data.score === null) return "";
  const change = circle.without - data.score, text = make("span", change < 0 ? "delta down" : "delta up");
  text.title = "the score without this circle, and what has changed";
  text.append(`${decimals(circle.without)} `, make("b", "", (change < 0 ? "" : "+") + decimals(change)));
  return text;
}

function circleRow(circle) {
  const row = make("li", "circle"), name = make("button", "name", circle.passage ? `¶${circle.number}` : "");
  row.dataset.circle = circle.number;
  name.type = "button";
  if (circle.passage) {
    name.addEventListener("click", () => go(circle.members[0], true));
  } else {
    const box = make("input"), chip = make("span", "number", circle.number);
    box.type = "checkbox";
    box.ariaLabel = `Show circle ${circle.number}`;
    box.addEventListener("change", () => { if (!shown.delete(circle.number)) shown.add(circle.number); paintCircles(); });
    underline(chip, [circle.number], 4);
    name.textContent = wholeWord(circle.leader).join("");
    name.title = "Let this circle stand out";
    name.dir = "auto";
    name.ariaLabel = `Circle ${circle.number}, led by ${name.textContent}: let it stand out`;
    name.addEventListener("click", () => {
      solo = solo === circle.number ? null : circle.number;
      if (solo !== null) { shown.add(solo); pieces[circle.leader].scrollIntoView({ block: "center" }); }
      paintCircles();
    });
    row.style.setProperty("--own", colour(circle.number));
    row.append(box, chip);
  }
  const size = make("span", "size", circle.members.length);
  size.title = count(circle.members.length, "word") + (circle.ties === null ? "" : `, ${count(circle.ties, "friendship")} inside`);
  row.append(name, size, difference(circle), strip(circle.members, null, circle.leader));
  return row;
}

function drawCircles() {
  $("friends").append(...friendCircles.map(circleRow));
  const kept = circlesOf.filter((numbers) => numbers.length).length;
  $("kept").textContent = friendCircles.length ? `keep ${Math.round((100 * kept) / length)} % of the words` : "none";
  $("show").hidden = friendCircles.length < 2;
  $("first").max = friendCircles.length;
  $("first").addEventListener("input", () => {
    const first = friendCircles.slice(0, Number($("first").value));
    shown.clear();
    for (const circle of first) shown.add(circle.number);
    if (!shown.has(solo)) solo = null;
    paintCircles();
  });
  $("passage-list").hidden = !passages.length;
  $("passage-list").firstElementChild.textContent = count(passages.length, "passage");
  $("passage-list").lastElementChild.append(...passages.map(circleRow));
  if (data.score === null) {
    $("scores").append("No scores: a model (", make("code", "", "--model FOLDER"), ") shows what each circle is worth.");
  } else {
    $("scores").append("Score ", make("b", "", decimals(data.score)), ". Beside each circle: its words, and the score without it. Where that is lower, the circle speaks for the document.");
  }
}

function drawHead() {
  const title = data.query ? `How ${data.document_id || "the document"} looks to the query “${data.query}”` : data.document_id;
  $("title").textContent = title || "A document’s social graph";
  document.title = $("title").textContent;
  const pairs = (length * (length - 1)) / 2, ties = weights.length;
  const density = pairs ? ` (${((100 * ties) / pairs).toFixed(1)} % of all pairs)` : "";
  $("facts").textContent = [
    count(length, "word piece"), count(ties, "friendship") + density, count(passages.length, "passage"),
    count(friendCircles.length, "friend circle"), ...(data.score === null ? [] : [`score ${decimals(data.score)}`]),
  ].join(" · ");
  const option = (value, text) => { const one = make("option", "", text); one.value = value; return one; };
  $("shade").append(option("circles", "nothing"), option("degree", "number of friends"));
  for (const [label, kind, names] of [["friends that a pattern accounts for", "pattern", patterns], ["weight", "weight", Object.keys(data.weights)]]) {
    const group = make("optgroup");
    group.label = label;
    group.append(...names.map((name) => option(`${kind}:${name}`, plain(name))));
    if (names.length) $("shade").append(group);
  }
  for (const [name, value] of data.statistics) $("statistics").lastElementChild.append(make("dt", "", name), make("dd", "", value));
  $("statistics").hidden = !data.statistics.length;
}

// ---- what a reader does ------------------------------------------------------------------------------------
const nodeAt = (event) => { const piece = event.target.closest(".piece"); return piece ? Number(piece.dataset.node) : null; };

// The word above or below: the nearest of the next line.
function across(node, step) {
  const at = (one) => { const box = pieces[one].getClientRects()[0]; return { y: box.bottom, x: (box.left + box.right) / 2 }; };
  const here = at(node);
  let best = node, row = null, gap = Infinity;
  for (let other = node + step; other >= 0 && other < length; other += step) {
    const there = at(other);
    if (row === null && Math.abs(there.y - here.y) > 8) row = there.y;
    if (row === null) continue;
    if (Math.abs(there.y - row) > 8) break;
    if (Math.abs(there.x - here.x) < gap) { gap = Math.abs(there.x - here.x); best = other; }
  }
  return best;
}

let before = null; // the word that was held when the pointer came down
$("text").addEventListener("pointerover", (event) => {
  const node = nodeAt(event);
  if (node !== null && !held && event.pointerType !== "touch") choose(node);
});
$("text").addEventListener("pointerdown", () => { before = held ? current : null; });
$("text").addEventListener("click", (event) => { const node = nodeAt(event); if (node !== null) choose(node, node !== before); });
$("text").addEventListener("focusin", (event) => { const node = nodeAt(event); if (node !== null) choose(node); });
$("text").addEventListener("keydown", (event) => {
  const node = nodeAt(event);
  if (node === null || event.ctrlKey || event.metaKey || event.altKey) return;
  const steps = {
    ArrowRight: () => go(Math.min(node + 1, length - 1)), ArrowLeft: () => go(Math.max(node - 1, 0)),
    ArrowDown: () => go(across(node, 1)), ArrowUp: () => go(across(node, -1)),
    Home: () => go(0), End: () => go(length - 1),
    Enter: () => choose(node, !held), " ": () => choose(node, !held),
  };
  if (event.key in steps) { event.preventDefault(); steps[event.key](); }
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") choose(held ? current : null, false); });
$("close").addEventListener("click", () => choose(null, false));
$("text").addEventListener("pointerleave", () => { if (shade && !held) choose(null); });
$("shade").addEventListener("change", () => {
  shade = shading();
  if (!held) current = null;
  paintShade();
  drawWord();
});
$("passages").addEventListener("change", () => $("text").classList.toggle("passages", $("passages").checked));
$("all").addEventListener("click", () => { friendCircles.forEach((circle) => shown.add(circle.number)); paintCircles(); });
$("none").addEventListener("click", () => { shown.clear(); solo = null; paintCircles(); });

drawHead();
drawText();
drawCircles();
drawWord();
paintCircles();
$("text").classList.toggle("passages", $("passages").checked);
})();
