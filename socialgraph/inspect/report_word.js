// ---- the word and its friends -------------------------------------------------------------------------------
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

// While a word is current its friends are shaded, else what the selector says.
function paintShade() {
  const much = shade ? shade.slice() : new Array(length).fill(0);
  if (current !== null) {
    much.fill(0);
    const friends = friendsOf(current, chosenPattern());
    for (const { node, weight } of friends) if (weight > 0) much[node] = 0.12 + (0.88 * weight) / friends[0].weight;
  }
  for (const view of views) {
    view.pieces.forEach((piece, node) => {
      piece.classList.toggle("shaded", much[node] > 0);
      if (much[node] > 0) piece.style.setProperty("--much", much[node].toFixed(3));
      piece.classList.toggle("self", node === current);
      piece.ariaSelected = String(held && node === current);
    });
  }
  document.body.classList.toggle("held", held);
}

function choose(node, hold = held) {
  if (node === current && hold === held) return;
  everyone = everyone && node === current;
  if (node !== null) {
    for (const view of views) {
      view.pieces[stop].tabIndex = -1;
      view.pieces[node].tabIndex = 0;
    }
    stop = node;
  }
  current = node;
  held = hold && node !== null;
  paintShade();
  drawWord();
}

function go(node, hold = held, view = primary) {
  choose(node, hold);
  view.pieces[node].focus({ preventScroll: true });
  view.pieces[node].scrollIntoView({ block: "nearest" });
}

// Bring a word to the middle of a text.
function reveal(view, node) {
  view.pieces[node].scrollIntoView({ block: "center" });
}

function meter(share) {
  const box = make("span", "meter");
  box.append(make("i"));
  box.firstChild.style.width = `${100 * Math.min(share, 1)}%`;
  return box;
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
  const place = make("p", "", `word ${current} of ${figure(length)}`);
  if (matches.has(current)) place.append(", in the query");
  if (inAnswer(current)) place.append(", in the evidence");
  if (primary.passagesOf[current].length) place.append(`, passage ¶${primary.passagesOf[current].join(" ¶")}`);
  for (const view of views) {
    const mine = view.circlesOf[current];
    if (mine.length) place.append(`, ${several ? `${view.name} ` : ""}${mine.length > 1 ? "circles" : "circle"} `, chips(mine));
  }
  const met = (view) => friends.filter((one) => meet(view, current, one.node).length).length;
  const also = views.filter((view) => view.friendCircles.length).map((view) => `, ${met(view)} of them in a circle with it${several ? ` (${view.name})` : ""}`);
  $("about").append(title, place, make("p", "", count(friends.length, "friend") + also.join("")));
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
  const names = ["friend", "at", pattern ? `p by ${short(pattern)}` : "p", ...(patterns.length ? ["most by"] : []), ...views.map((view) => (several ? view.name : "meet in"))];
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
    for (const view of views) {
      row.append(make("td"));
      row.lastChild.append(chips(meet(view, current, one.node)));
    }
    row.dataset.node = one.node;
    table.append(row);
  }
  $("ties").append(table);
  if (listed.length < friends.length) {
    const more = make("button", "", `all ${figure(friends.length)} friends`);
    Object.assign(more, { type: "button", id: "more" });
    more.addEventListener("click", () => { everyone = true; drawWord(); });
    $("ties").append(more);
  }
}
