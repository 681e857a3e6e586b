import itertools

import pytest

pytest.importorskip("torch")

import torch

from workflows.jobs.pytorch.crf import LinearChainCRF

pytestmark = pytest.mark.pytorch

EXAMPLES, PLACES, TAGS = 3, 5, 3


@pytest.fixture(params=range(4))
def field(request: pytest.FixtureRequest) -> tuple[LinearChainCRF, torch.Tensor]:
    torch.manual_seed(request.param)
    crf = LinearChainCRF(TAGS)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter, std=2)
    return crf, 2 * torch.randn(EXAMPLES, PLACES, TAGS)


def every_sequence() -> list[torch.Tensor]:
    return [torch.tensor(tags).expand(EXAMPLES, PLACES) for tags in itertools.product(range(TAGS), repeat=PLACES)]


def score_by_hand(crf: LinearChainCRF, scores: torch.Tensor, tags: torch.Tensor, example: int) -> float:
    path = tags[example].tolist()
    own = sum(scores[example, place, tag].item() for place, tag in enumerate(path))
    steps = sum(crf.step[a, b].item() for a, b in itertools.pairwise(path))
    return own + steps + crf.start[path[0]].item() + crf.end[path[-1]].item()


def test_forward_algorithm_sums_what_enumeration_sums(field: tuple[LinearChainCRF, torch.Tensor]) -> None:
    crf, scores = field
    enumerated = [
        torch.logsumexp(torch.tensor([score_by_hand(crf, scores, tags, example) for tags in every_sequence()]), dim=0)
        for example in range(EXAMPLES)
    ]
    torch.testing.assert_close(crf.log_partition(scores), torch.stack(enumerated))


def test_likelihoods_of_all_sequences_sum_to_one(field: tuple[LinearChainCRF, torch.Tensor]) -> None:
    crf, scores = field
    total = torch.stack([crf.log_likelihood(scores, tags).exp() for tags in every_sequence()]).sum(dim=0)
    torch.testing.assert_close(total, torch.ones(EXAMPLES))


def test_decoding_finds_the_likeliest_sequence(field: tuple[LinearChainCRF, torch.Tensor]) -> None:
    crf, scores = field
    likeliest = torch.stack([crf.score(scores, tags) for tags in every_sequence()]).max(dim=0).values
    torch.testing.assert_close(crf.score(scores, crf.decode(scores)), likeliest)
