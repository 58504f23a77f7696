"""Every loss equals what its formula gives by hand, stays finite, and pulls scores the right way."""

import math

import pytest
import torch

from socialgraph.errors import OptionError
from socialgraph.ranking.losses import (
    LOSSES,
    binary_cross_entropy,
    listwise_cross_entropy,
    loss_resolver,
    pairwise_hinge,
    ranknet,
)

# three queries: one relevant of three documents, two of three, none of two
SCORES = torch.tensor([1.0, 2.0, 0.5, 3.0, -1.0, 2.5, 9.0, 7.0])
GROUP = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2])
RELEVANT = torch.tensor([True, False, False, True, True, False, False, False])
#: (relevant, other) of each group that has a pair
PAIRS = [[(1.0, 2.0), (1.0, 0.5)], [(3.0, 2.5), (-1.0, 2.5)]]


def mean_of_means(cost):
    means = [sum(cost(better, worse) for better, worse in pairs) / len(pairs) for pairs in PAIRS]
    return sum(means) / len(means)


def test_listwise_cross_entropy_by_hand():
    first = math.log(math.exp(1) + math.exp(2) + math.exp(0.5)) - 1
    second = math.log(math.exp(3) + math.exp(-1) + math.exp(2.5)) - (3 - 1) / 2  # the mean over two relevant ones
    loss = listwise_cross_entropy(SCORES[:6], GROUP[:6], RELEVANT[:6])
    assert loss.item() == pytest.approx((first + second) / 2, abs=1e-6)


def test_pairwise_hinge_by_hand():
    # group 0: (2 + 0.5) / 2; group 1: (0.5 + 4.5) / 2; group 2 has no pair
    assert pairwise_hinge(SCORES, GROUP, RELEVANT).item() == pytest.approx((1.25 + 2.5) / 2)
    for margin in (0.0, 0.25, 3.0):
        expected = mean_of_means(lambda better, worse, m=margin: max(0.0, m - better + worse))
        assert pairwise_hinge(SCORES, GROUP, RELEVANT, margin=margin).item() == pytest.approx(expected)


def test_ranknet_by_hand():
    expected = mean_of_means(lambda better, worse: math.log(1 + math.exp(-(better - worse))))
    assert ranknet(SCORES, GROUP, RELEVANT).item() == pytest.approx(expected, abs=1e-6)


def test_binary_cross_entropy_by_hand():
    chance = [1 / (1 + math.exp(-score)) for score in SCORES.tolist()]
    losses = [-math.log(p if yes else 1 - p) for p, yes in zip(chance, RELEVANT.tolist(), strict=True)]
    assert binary_cross_entropy(SCORES, GROUP, RELEVANT).item() == pytest.approx(sum(losses) / len(losses), abs=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_order_of_documents_and_numbers_of_groups_do_not_matter(name):
    scores, group, relevant = SCORES[:6], GROUP[:6], RELEVANT[:6]
    loss = LOSSES[name](scores, group, relevant)
    order = torch.tensor([5, 0, 3, 1, 4, 2])
    torch.testing.assert_close(LOSSES[name](scores[order], 1 - group[order], relevant[order]), loss)


@pytest.mark.parametrize("name", LOSSES)
def test_a_hopeless_or_certain_loss_stays_finite(name):
    for relevant in ([True, False], [False, True]):
        scores = torch.tensor([-5000.0, 5000.0], requires_grad=True)
        loss = LOSSES[name](scores, torch.tensor([0, 0]), torch.tensor(relevant))
        loss.backward()
        assert loss.shape == ()
        assert loss.isfinite()
        assert loss >= 0
        assert scores.grad.isfinite().all()


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_small_steps_and_lift_the_relevant(name):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(8, dtype=torch.float64, generator=generator).requires_grad_()
    loss = LOSSES[name]
    assert torch.autograd.gradcheck(lambda x: loss(x, GROUP, RELEVANT), scores)
    equal = torch.zeros(3, requires_grad=True)
    loss(equal, GROUP[:3], RELEVANT[:3]).backward()
    assert equal.grad[0] < 0
    assert (equal.grad[1:] > 0).all()


@pytest.mark.parametrize("name", ["hinge", "ranknet"])
@pytest.mark.parametrize("relevant", [True, False])
def test_without_any_pair_the_loss_is_zero_with_a_gradient(name, relevant):
    scores = SCORES.clone().requires_grad_()
    loss = LOSSES[name](scores, GROUP, torch.full_like(RELEVANT, relevant))
    loss.backward()
    assert loss.item() == 0
    assert scores.grad.tolist() == [0] * 8


def own(scores, group, relevant):
    return scores.sum()


class Own:
    def __call__(self, scores, group, relevant):
        return scores.sum()


def test_resolver_takes_a_name_a_dotted_name_or_a_function():
    assert loss_resolver("hinge") is pairwise_hinge
    assert {name: loss_resolver(name) for name in LOSSES} == LOSSES
    assert loss_resolver(math.fsum) is math.fsum
    assert loss_resolver(f"{__name__}.own") is own
    assert loss_resolver(f"{__name__}.Own")(SCORES, GROUP, RELEVANT) == SCORES.sum()
    with pytest.raises(OptionError, match="'triplet'; there are listwise, hinge, ranknet, binary"):
        loss_resolver("triplet")
    for name in ("no_such_module.loss", f"{__name__}.none", "math.pi"):
        with pytest.raises(OptionError, match="loss"):
            loss_resolver(name)
