// ---- the list of circles ------------------------------------------------------------------------------------
function difference(view, circle) {
  if (circle.without === null || view.score === null) return "";
  const change = decimals(circle.without - view.score).replace(/^−(?=0\.000$)/, ""); // what shows as 0 has no side
  const side = change === "0.000" ? "" : change.startsWith("−") ? " down" : " up";
  const text = make("span", `delta${side}`);
  text.title = "the score without this circle, and what has changed";
  text.append(`${decimals(circle.without)} `, make("b", "", (side === " up" ? "+" : "") + change));
  return text;
}

function circleRow(view, circle) {
  const row = make("li", "circle"), name = make("button", "name", circle.passage ? `¶${circle.number}` : circle.name);
  row.dataset.circle = circle.number;
  name.type = "button";
  if (circle.passage) {
    name.addEventListener("click", () => go(circle.members[0], true, view));
  } else {
    const box = make("input"), chip = make("span", "number", circle.number), leader = wholeWord(circle.leader).join("");
    box.type = "checkbox";
    box.ariaLabel = `Show circle ${circle.number}`;
    box.addEventListener("change", () => {
      if (!view.shown.delete(circle.number)) view.shown.add(circle.number);
      paintCircles(view);
    });
    underline(chip, [circle.number], 4);
    name.title = `Its most distinctive words; led by “${leader}”, word ${circle.leader}. Let this circle stand out`;
    name.dir = "auto";
    name.ariaLabel = `Circle ${circle.number}, ${circle.name}, led by ${leader}: let it stand out`;
    name.addEventListener("click", () => {
      view.solo = view.solo === circle.number ? null : circle.number;
      paintCircles(view);
      if (view.solo === null) return;
      view.shown.add(view.solo);
      reveal(view, circle.leader);
    });
    row.style.setProperty("--own", colour(circle.number));
    row.append(box, chip);
  }
  const size = make("span", "size", circle.members.length);
  size.title = count(circle.members.length, "word piece") + (circle.ties === null ? "" : `, ${count(circle.ties, "friendship")} inside`);
  row.append(name, size, difference(view, circle), strip(circle.members, null, circle.leader));
  if (data.given) row.append(given(view, circle));
  return row;
}

// What BERT is given for a circle; it is drawn when somebody opens it.
function given(view, circle) {
  const box = make("details", "given"), summary = make("summary", "", "What BERT reads");
  summary.ariaLabel = `What BERT reads of ${circle.passage ? "passage" : "circle"} ${circle.number}`;
  box.append(summary);
  box.addEventListener("toggle", () => { if (box.open && box.childNodes.length === 1) box.append(...sequence(circle)); });
  return box;
}

function sequence(circle) {
  const text = make("p", "sequence"), mark = (what) => make("b", "mark", what), together = data.given === "together";
  text.dir = "auto";
  text.append(mark("[CLS]"));
  if (together) {
    const asked = data.asked.map((piece, i) => (i && isTail(piece) ? piece.slice(2) : (i ? " " : "") + visible(piece)));
    text.append(" ", make("span", "asked", asked.join("")), " ", mark("[SEP]"));
  }
  // A run of neighbours is text as it stands; where a run ends, the next word comes from elsewhere in the document.
  let run = null, last = null;
  for (const node of circle.members) {
    const joined = node - 1 === last && continues(node);
    if (run === null || node - 1 !== last) {
      run = make("span", "run", visible(data.words[node]));
      text.append(" ", run);
    } else run.append((joined ? "" : " ") + shownWord(node));
    last = node;
  }
  text.append(" ", mark("[SEP]"));
  const parts = [count(circle.members.length, "word piece") + " of the circle"];
  if (together) parts.unshift(`${data.asked.length} of the query`);
  const total = circle.members.length + (together ? data.asked.length + 3 : 2);
  const notes = [`${count(total, "word piece")}: ${parts.join(", ")}, ${together ? 3 : 2} marks.`, ...cuts(circle, together)];
  return [text, make("p", "note", notes.join(" "))];
}

// What is not in the sequence though one might look for it there.
function cuts(circle, together) {
  const found = [];
  if (!together) found.push("The query is read apart.");
  else if (data.whole && data.whole[1] > data.asked.length) {
    found.push(`The query is cut after ${data.asked.length} of its ${count(data.whole[1], "word piece")}.`);
  }
  if (circle.passage) return found;
  const inside = new Set(circle.members), all = start[circle.leader + 1] - start[circle.leader];
  let out = 0;
  for (let place = start[circle.leader]; place < start[circle.leader + 1]; place++) if (!inside.has(friend[place])) out++;
  if (out) found.push(`Left out: ${figure(out)} of the leader’s ${count(all, "friend")}.`);
  if (answerEnd > answerStart) {
    const held = circle.members.filter(inAnswer).length;
    found.push(`It holds ${held} of the ${count(answerEnd - answerStart, "word piece")} of the evidence.`);
  }
  return found;
}

function drawCircles(view) {
  const { friendCircles, passages, shown } = view, box = make("details", "list"), head = make("summary");
  const kept = view.circlesOf.filter((numbers) => numbers.length).length;
  const told = friendCircles.length ? `keep ${Math.round((100 * kept) / length)} % of the words` : "none";
  head.append(several ? `${view.name}: ${count(friendCircles.length, "circle")}` : count(friendCircles.length, "circle"), " ", make("small", "", told));
  box.append(head, chooser(view), make("p", "note"), make("ul", "friends"));
  box.open = !narrow.matches; // on a phone the text comes first
  const note = box.querySelector(".note");
  if (view.score === null) {
    note.append("No scores: a model (", make("code", "", "--model FOLDER"), ") shows what each circle is worth.");
  } else {
    note.append("Score ", make("b", "", decimals(view.score)), ". Beside each circle: its word pieces, and the score without it. Where that is lower, the circle speaks for the document.");
  }
  box.lastElementChild.append(...friendCircles.map((circle) => circleRow(view, circle)));
  view.list.append(box);
  view.list.ariaLabel = several ? `Circles of ${view.name}` : "Circles";
  if (!passages.length) return;
  const texts = make("details", "passage-list");
  texts.append(make("summary", "", count(passages.length, "passage")), make("ul"));
  texts.lastElementChild.append(...passages.map((circle) => circleRow(view, circle)));
  box.append(texts);
}

// Whose lines are drawn: all, none, or the first ones.
function chooser(view) {
  const box = make("div", "show"), label = make("label", "", "the first "), button = (text, action) => {
    const one = make("button", text, text);
    one.type = "button";
    one.addEventListener("click", () => { action(); paintCircles(view); });
    return one;
  };
  const first = (amount) => {
    view.shown = new Set(view.friendCircles.slice(0, amount).map((circle) => circle.number));
    if (!view.shown.has(view.solo)) view.solo = null;
  };
  view.output = make("output", "", view.shown.size);
  view.slider = Object.assign(make("input", "first"), { type: "range", min: 0, max: view.shown.size, ariaLabel: "Show the first circles" });
  view.slider.addEventListener("input", () => { first(Number(view.slider.value)); paintCircles(view); });
  label.append(view.output);
  box.append(label, view.slider, button("all", () => first(view.friendCircles.length)), button("none", () => first(0)));
  box.hidden = view.friendCircles.length < 2;
  return box;
}
