// ---- the head of the page, statistics -----------------------------------------------------------------------
function drawHead() {
  const title = data.query ? `How ${data.document_id || "the document"} looks to the query “${data.query}”` : data.document_id;
  $("title").textContent = title || "A document’s social graph";
  document.title = $("title").textContent;
  const pairs = (length * (length - 1)) / 2, ties = weights.length;
  const density = pairs ? ` (${((100 * ties) / pairs).toFixed(1)} % of all pairs)` : "";
  const pieces = data.whole && data.whole[0] > length ? `the first ${figure(length)} of ${count(data.whole[0], "word piece")}` : count(length, "word piece");
  const facts = [pieces, count(ties, "friendship") + density, count(primary.passages.length, "passage")];
  for (const view of views) {
    const score = view.score === null ? "" : `, score ${decimals(view.score)}`;
    facts.push((several ? `${view.name}: ` : "") + count(view.friendCircles.length, "friend circle") + score);
  }
  if (data.evidence && answerStart >= length) facts.push(`the evidence begins at word piece ${figure(answerStart)}, which is not read`);
  $("facts").textContent = facts.join(" · ");
  $("key-answer").hidden = !(answerEnd > answerStart && answerStart < length);
  const option = (value, text) => { const one = make("option", "", text); one.value = value; return one; };
  $("shade").append(option("circles", "nothing"), option("degree", "number of friends"));
  for (const [label, kind, names] of [["friends that a pattern accounts for", "pattern", patterns], ["weight", "weight", Object.keys(data.weights)]]) {
    const group = make("optgroup");
    group.label = label;
    group.append(...names.map((name) => option(`${kind}:${name}`, plain(name))));
    if (names.length) $("shade").append(group);
  }
}

// A number of each view; a name that is pointed at, tapped or chosen with the keyboard tells what it means.
function drawStatistics() {
  const all = data.views.map((view) => new Map(view.statistics.map(([name, value, meaning]) => [name, { value, meaning }])));
  const names = [...new Set(all.flatMap((one) => [...one.keys()]))], box = $("numbers");
  box.style.setProperty("--columns", views.length);
  if (several) box.append(make("div", "columns"));
  if (several) box.lastChild.append(make("span"), ...views.map((view) => make("span", "value", view.name)));
  for (const name of names) {
    const meaning = all.map((one) => one.get(name)?.meaning).find(Boolean), row = make("details", "fact"), head = make("summary");
    head.append(make("span", "what", name), ...all.map((one) => make("span", "value", one.get(name)?.value ?? "-")));
    row.append(head, make("p", "note", meaning || "a number of your own"));
    if (meaning) head.title = meaning;
    box.append(row);
  }
  $("statistics").hidden = !names.length;
}

// ---- search -------------------------------------------------------------------------------------------------
// As word pieces are: without case and accents, and punctuation by itself.
const searched = (text) => (text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().match(/[\p{L}\p{N}]+|[^\p{L}\p{N}\s]/gu) ?? []).join(" ");
let haystack = null; // the text as it is searched, and which node each of its characters belongs to
let hits = []; // nodes of each place that was found
let hit = 0; // the one that is shown

function searchable() {
  let text = "";
  const owner = [];
  for (let node = 0; node < length; node++) {
    const word = searched(continues(node) ? data.words[node].slice(2) : data.words[node]);
    const part = (node && !continues(node) ? " " : "") + word;
    for (let i = 0; i < part.length; i++) owner.push(node);
    text += part;
  }
  return { text, owner };
}

function search() {
  const wanted = searched($("search").value);
  haystack ??= searchable();
  hits = [];
  for (let at = wanted ? haystack.text.indexOf(wanted) : -1; at >= 0; at = haystack.text.indexOf(wanted, at + wanted.length)) {
    hits.push([...new Set(haystack.owner.slice(at, at + wanted.length))]);
  }
  hit = 0;
  $("bar").classList.toggle("on", Boolean(wanted));
  const found = new Set(hits.flat());
  for (const view of views) view.pieces.forEach((piece, node) => piece.classList.toggle("found", found.has(node)));
  showHit();
}

function showHit() {
  const now = new Set(hits[hit]);
  for (const view of views) view.pieces.forEach((piece, node) => piece.classList.toggle("now", now.has(node)));
  $("hits").textContent = !$("search").value.trim() ? "" : hits.length ? `${hit + 1} of ${figure(hits.length)}` : "not found";
  if (hits.length) for (const view of stacked.matches ? [primary] : views) reveal(view, hits[hit][0]);
}

$("search").addEventListener("input", search);
$("search").addEventListener("keydown", (event) => {
  if (event.key === "Escape") { $("search").value = ""; search(); }
  if (event.key !== "Enter" || !hits.length) return;
  hit = (hit + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
  showHit();
});

// ---- what a reader does -------------------------------------------------------------------------------------
// The word above or below: the nearest of the next line.
function across(view, node, step) {
  const at = (one) => { const box = view.pieces[one].getClientRects()[0]; return { y: box.bottom, x: (box.left + box.right) / 2 }; };
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

function listen(view) {
  const nodeAt = (event) => { const piece = event.target.closest(".piece"); return piece ? Number(piece.dataset.node) : null; };
  let before = null; // the word that was held when the pointer came down
  view.text.addEventListener("pointerover", (event) => {
    const node = nodeAt(event);
    if (node !== null && !held && event.pointerType !== "touch") choose(node);
  });
  view.text.addEventListener("pointerdown", () => { before = held ? current : null; });
  view.text.addEventListener("click", (event) => { const node = nodeAt(event); if (node !== null) choose(node, node !== before); });
  view.text.addEventListener("focusin", (event) => { const node = nodeAt(event); if (node !== null) choose(node); });
  view.text.addEventListener("keydown", (event) => {
    const node = nodeAt(event);
    if (node === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = {
      ArrowRight: () => go(Math.min(node + 1, length - 1), held, view), ArrowLeft: () => go(Math.max(node - 1, 0), held, view),
      ArrowDown: () => go(across(view, node, 1), held, view), ArrowUp: () => go(across(view, node, -1), held, view),
      Home: () => go(0, held, view), End: () => go(length - 1, held, view),
      Enter: () => choose(node, !held), " ": () => choose(node, !held),
    };
    if (event.key in steps) { event.preventDefault(); steps[event.key](); }
  });
  view.text.addEventListener("pointerleave", () => { if (shade && !held) choose(null); });
}

document.addEventListener("keydown", (event) => { if (event.key === "Escape") choose(held ? current : null, false); });
$("close").addEventListener("click", () => choose(null, false));
$("shade").addEventListener("change", () => {
  shade = shading();
  if (!held) current = null;
  paintShade();
  drawWord();
});
const cutIntoPassages = () => views.forEach((view) => view.text.classList.toggle("passages", $("passages").checked));
$("passages").addEventListener("change", cutIntoPassages);

const narrow = matchMedia("(max-width: 48rem)"); // a phone
const stacked = matchMedia("(max-width: 70rem)"); // two texts scroll with the page, not each by itself
const below = () => document.body.classList.toggle("below", narrow.matches || (several && stacked.matches));
for (const width of [narrow, stacked]) width.addEventListener("change", below);
below();
document.body.classList.toggle("several", several);
drawHead();
for (const view of views) {
  const section = make("section", "view");
  drawText(view);
  drawCircles(view);
  section.append(view.list, view.text);
  $("views").append(section);
  listen(view);
  paintCircles(view);
}
drawWord();
drawStatistics();
$("statistics").open = !narrow.matches;
cutIntoPassages();
