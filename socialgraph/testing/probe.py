"""What can a partition bring together? Measured where the answer is known, without a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch

from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import OptionError, is_whole
from socialgraph.partition import Partition
from socialgraph.testing.known_answers import KINDS, KnownAnswer, known_answer

#: documents that are drawn together
TOGETHER = 8
#: standard errors above chance from which on a difference counts
CLEAR = 3.0


class Met(NamedTuple):
    """How many of some pairs of words met, on average over documents."""

    share: float  #: of all pairs
    chance: float  #: of all pairs of two words of the same documents, wherever they stand
    error: float  #: standard error of the difference

    @property
    def clear(self) -> bool:
        """Whether the share lies clearly above chance, by three standard errors."""
        return self.share - self.chance > max(CLEAR * self.error, 1e-9)

    def __str__(self) -> str:
        return f"{self.share:.2f} ({self.chance:.2f}){'*' if self.clear else ''}"


class Row(NamedTuple):
    """One kind of document at one distance and density."""

    kind: str  #: "fact" or "halves", see :data:`socialgraph.testing.known_answers.KINDS`
    distractors: int
    distance: int
    circle: Met  #: both words are in one circle
    leaders: Met  #: each is in some circle: the leaders of the two can tell each other


class Probe(NamedTuple):
    """What :func:`probe` found; ``print`` shows it as a table."""

    partition: str
    edges: str
    length: int
    documents: int
    rows: list[Row]

    def reach(self, kind: str, distractors: int, by: str = "circle") -> int:
        """Return up to which of the distances tried clearly more pairs meet than by chance; 0 where not at the first.

        Args:
            kind: "fact" or "halves".
            distractors: one of the numbers tried.
            by: "circle" or "leaders".

        Raises:
            OptionError: this was not tried.
        """
        rows = [row for row in self.rows if (row.kind, row.distractors) == (kind, distractors)]
        if not rows or by not in ("circle", "leaders"):
            raise OptionError(f"nothing was tried with kind={kind!r}, distractors={distractors}, by={by!r}")
        clear = takewhile(lambda row: getattr(row, by).clear, rows)  # from near to far
        return max((row.distance for row in clear), default=0)

    def __str__(self) -> str:
        counts = sorted({row.distractors for row in self.rows})
        row = {(row.kind, row.distance, row.distractors): row for row in self.rows}

        def line(head: str, left: Iterable[object], right: Iterable[object]) -> str:
            one, other = ("".join(f"{x!s:14}" for x in cells) for cells in (left, right))
            return f"{head:18}{one:24}{other}".rstrip()

        lines = [self.partition, f"{self.documents} documents of each sort, {self.length} words; {self.edges}", ""]
        lines.append(line("", ["in one circle (chance)".ljust(14 * len(counts))], ["by leaders (chance)"]))
        lines += [line("distractors", counts, counts), "kind    distance"]
        for kind, distance in dict.fromkeys((row.kind, row.distance) for row in self.rows):
            cells = [row[kind, distance, count] for count in counts]
            lines.append(line(f"{kind:8}{distance:8}", [x.circle for x in cells], [x.leaders for x in cells]))
        return "\n".join([*lines, "", "* clearly above chance (three standard errors)"])


@torch.no_grad()
def probe(
    partition: Partition,
    edges: SocialEdges | None = None,
    length: int = 2048,
    distances: Sequence[int] = (8, 32, 128, 512),
    distractors: Sequence[int] = (0, 8, 32),
    documents: int = 20,
) -> Probe:
    """Measure up to which distance, and among how many distractors, a partition brings together what belongs together.

    The documents are made up, see :func:`~socialgraph.testing.known_answers.known_answer`: a *fact* stands ``distance``
    words from the words of the query that ask for it; or two *halves* of an answer stand so far from each other, each
    beside words of the query. A *distractor* is the same words of the query where there is nothing to find.

    Counted are pairs of a word of the key and one of the fact, or of words of the two halves:

    * in *one circle*: some circle holds both, so that one sequence of a model reads them together;
    * *by leaders*: both are in some circle. Leaders talk with each other, so what the one word says reaches the other
      within two hops of leaders, a block later.

    Beside each share stands the same share of any two words of these documents: chance. A high share beside a high
    chance says that circles are many and large, and no more.

    Args:
        partition: an instance, such as ``MyPartition(k=8)``; :func:`check_partition` says whether it is one indeed.
        edges: draws the graph; the mean of static distance, static centrality and dynamic distance at the paper's
            sparsity by default (dynamic centrality would need a BERT that knows these words).
        length: words of a document.
        distances: between key and fact, or between the halves; 1 for neighbours.
        distractors: how many false keys.
        documents: of each sort.

    Raises:
        OptionError: no partition, edges that are not social, a number out of its range, or documents that are too
            short for the distance and the distractors.
    """
    if not isinstance(partition, Partition):
        raise OptionError(f"probe takes an instance of a Partition, such as MyPartition(), got {partition!r}")
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()]) if edges is None else edges
    if not isinstance(edges, SocialEdges):
        raise OptionError(f"probe draws social edges, such as SocialEdges([StaticDistance()]), got {edges!r}")
    for name, value, least in (("length, the number of words,", length, 2), ("documents, their number,", documents, 2)):
        if not is_whole(value, least):
            raise OptionError(f"{name} must be at least {least}, got {value}")
    for name, values, least in (("distances", distances, 1), ("distractors", distractors, 0)):
        if not values or not all(is_whole(value, least) for value in values):
            raise OptionError(f"{name} must be whole numbers of at least {least}, got {values}")
    rows = []
    for kind in KINDS:
        for number in sorted(set(distractors)):
            for distance in sorted(set(distances)):
                answers = [known_answer(n, kind, length, distance, number) for n in range(documents)]
                rows.append(Row(kind, number, distance, *measured(partition, edges, answers)))
    return Probe(repr(partition), repr(edges), length, documents, rows)


def measured(partition: Partition, edges: SocialEdges, answers: Sequence[KnownAnswer]) -> tuple[Met, Met]:
    """Return who met, in one circle and by leaders, on average over documents."""
    means = torch.cat([torch.cat([shares(*part), chances(part[0])], 1) for part in gathered(partition, edges, answers)])
    together, linked, by_chance, linked_by_chance = means.T
    return met(together, by_chance), met(linked, linked_by_chance)


def met(share: Tensor, chance: Tensor) -> Met:
    """Return the mean over documents ``[D]``."""
    error = float((share - chance).std()) / math.sqrt(len(share))
    return Met(float(share.mean()), float(chance.mean()), error)


def gathered(
    partition: Partition, edges: SocialEdges, answers: Sequence[KnownAnswer]
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield, for some documents at once, which places are in which circles ``[D, l, C]``, and what is to meet."""
    for first in range(0, len(answers), TOGETHER):
        part = answers[first : first + TOGETHER]
        graph = Batch.from_data_list([answer.graph for answer in part])
        circle_index, leader_index = partition.from_sampled(edges.sampled(graph))
        length = graph.num_nodes // len(part)  # all have the same
        member = torch.zeros(graph.num_nodes, leader_index.numel(), dtype=torch.bool)
        member[circle_index[0], circle_index[1]] = True
        one, other = (torch.stack([getattr(answer, name) for answer in part]) for name in ("one", "other"))
        yield member.view(len(part), length, -1), one, other


def shares(member: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Return the share of pairs in one circle, and of those that are both in some circle, ``[D, 2]`` float64.

    Args:
        member: which places are in which circles, ``[D, l, C]``.
        one: places of the one side, ``[D, a]``.
        other: places of the other, ``[D, b]``.
    """
    document = torch.arange(len(member))[:, None]
    left, right = member[document, one].double(), member[document, other].double()  # [D, a, C], [D, b, C]
    together = left @ right.transpose(1, 2) > 0
    linked = left.any(2)[:, :, None] & right.any(2)[:, None]
    return torch.stack([together.double().mean((1, 2)), linked.double().mean((1, 2))], 1)


def chances(member: Tensor) -> Tensor:
    """Return what :func:`shares` would be for all pairs of two places of each document, ``[D, 2]`` float64."""
    size = member.size(1)
    inside = member.any(2).sum(1).double()
    linked = inside * (inside - 1.0)
    together = torch.zeros_like(linked)
    for document, circles in enumerate(member):
        # Words of the same circles count at once; the rows of `kinds` are few, a matrix of all pairs would be large.
        own = circles[circles.any(1)][:, circles.any(0)]
        if own.numel() == 0:
            continue
        kinds, amount = torch.unique(own, dim=0, return_counts=True)
        meet = (kinds.double() @ kinds.double().T > 0).double()
        together[document] = amount.double() @ meet @ amount.double() - inside[document]  # but none with itself
    return torch.stack([together, linked], 1) / (size * (size - 1))
