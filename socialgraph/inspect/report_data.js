// Everything on the page is made from the data below, by textContent alone: no text is ever read as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function bytes(text) { return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer; }
const figure = (number) => number.toLocaleString("en");
const count = (number, what) => `${figure(number)} ${what}${number === 1 ? "" : "s"}`;
const decimals = (value) => value.toFixed(3).replace("-", "−");
const plain = (name) => name.replaceAll("_", " ");

// ---- what is known of the document, whatever the partition --------------------------------------------------
const length = data.words.length;
const patterns = Object.keys(data.edges.shares);
const weights = new Uint16Array(bytes(data.edges.weight));
const shares = Object.fromEntries(patterns.map((name) => [name, new Uint8Array(bytes(data.edges.shares[name]))]));
const matches = new Set(data.matches);
const [answerStart, answerEnd] = data.evidence ?? [0, 0];
const inAnswer = (node) => node >= answerStart && node < answerEnd;
const isTail = (piece) => piece.length > 2 && piece.startsWith("##");
const continues = (node) => node > 0 && isTail(data.words[node]);
// What has nothing to see would be nothing to point at.
const visible = (text) => (/[^\p{C}\p{Z}\p{M}]/u.test(text) ? text : "□");
const shownWord = (node) => visible(continues(node) ? data.words[node].slice(2) : data.words[node]);

const { start, friend, edge } = neighbours();

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

// The word that a piece is part of: what stands before it, the piece, what stands after it.
function wholeWord(node) {
  let first = node, last = node + 1;
  while (continues(first)) first--;
  while (last < length && continues(last)) last++;
  const part = (from, to) => Array.from({ length: to - from }, (_, i) => shownWord(from + i)).join("");
  return [part(first, node), shownWord(node), part(node + 1, last)];
}

// Where in the document something stands: ticks of heights from 0 to 1, and the place of the answer behind them.
function strip(nodes, heights, centre) {
  const tall = 30, space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", `0 0 ${Math.max(length, 1)} ${tall}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "strip");
  svg.setAttribute("aria-hidden", "true");
  const tick = (node, i) => `M${node + 0.5} ${tall}V${(tall * (1 - (heights ? heights[i] : 0.75))).toFixed(1)}`;
  const paths = [["", nodes.map(tick).join("")], ["centre", `M${centre + 0.5} ${tall}V0`]];
  if (answerEnd > answerStart) paths.unshift(["answer", `M${answerStart} 0H${answerEnd}V${tall}H${answerStart}Z`]);
  for (const [name, path] of paths) {
    const element = document.createElementNS(space, "path");
    element.setAttribute("d", path);
    element.setAttribute("class", name);
    svg.append(element);
  }
  return svg;
}
