"""Linear-chain conditional random field (Lafferty, McCallum and Pereira, 2001)."""

import torch
from torch import Tensor, nn


class LinearChainCRF(nn.Module):
    """Scores a tag sequence by its tags' own scores, by each step from tag to tag, and by its two ends.

    In what follows ``scores`` is (examples, places, tags) and ``tags`` (examples, places).
    """

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.zeros(tags))
        self.step = nn.Parameter(torch.zeros(tags, tags))  # from row to column
        self.end = nn.Parameter(torch.zeros(tags))

    def log_likelihood(self, scores: Tensor, tags: Tensor) -> Tensor:
        """Return each sequence's log-probability among all tag sequences of its length (examples,)."""
        return self.score(scores, tags) - self.log_partition(scores)

    def score(self, scores: Tensor, tags: Tensor) -> Tensor:
        """Return the unnormalised log-score of one tag sequence per example (examples,)."""
        own = scores.gather(2, tags[..., None]).sum(dim=(1, 2))
        steps = self.step[tags[:, :-1], tags[:, 1:]].sum(dim=1)
        return own + steps + self.start[tags[:, 0]] + self.end[tags[:, -1]]

    def log_partition(self, scores: Tensor) -> Tensor:
        """Return the log of the summed scores of all tag sequences, by the forward algorithm (examples,)."""
        forward = self.start + scores[:, 0]
        for own in scores[:, 1:].unbind(dim=1):
            forward = torch.logsumexp(forward[:, :, None] + self.step, dim=1) + own
        return torch.logsumexp(forward + self.end, dim=1)

    def decode(self, scores: Tensor) -> Tensor:
        """Return the likeliest tag sequence per example, by the Viterbi algorithm (examples, places)."""
        best, came_from = self.start + scores[:, 0], []
        for own in scores[:, 1:].unbind(dim=1):
            top = (best[:, :, None] + self.step).max(dim=1)
            best = top.values + own
            came_from.append(top.indices)
        path = [(best + self.end).argmax(dim=1, keepdim=True)]
        for previous in reversed(came_from):
            path.append(previous.gather(1, path[-1]))
        return torch.cat(path[::-1], dim=1)
