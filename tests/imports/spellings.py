"""Models with the spellings that users write between convolutions: a function in most of them, and
small modules where it needs parameters.

CASES maps a name to a Case of models.py.
"""

import torch
from torch import nn
from torch.nn import functional as F

from models import Case, convolution, normalized, scores


class Between(nn.Module):
    """A normalized convolution, a function of its output, and a head."""

    def __init__(self, function, head):
        super().__init__()
        self.stem, self.function, self.head = normalized(3, 8), function, head

    def forward(self, x):
        return self.head(self.function(self.stem(x)))


class Gate(nn.Module):
    """A function of the input and of what a layer makes of it."""

    def __init__(self, layer, function):
        super().__init__()
        self.layer, self.function = layer, function

    def forward(self, x):
        return self.function(x, self.layer(x))


class Means(nn.Module):
    """A linear layer of the means over positions."""

    def __init__(self, outputs=8):
        super().__init__()
        self.linear = nn.Linear(8, outputs)

    def forward(self, x):
        return self.linear(x.mean((2, 3)))


class Transposed(nn.Module):
    """The last two axes change places."""

    def forward(self, x):
        return x.transpose(1, 2)


class Efficient(nn.Module):
    """ECA: a convolution along the channels."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 1, 3, padding=1, bias=False)

    def forward(self, x):
        y = self.conv(x.mean((2, 3)).unsqueeze(1)).transpose(1, 2).unsqueeze(-1)
        return x * y.sigmoid().expand_as(x)


class Context(nn.Module):
    """Global context: a softmax over positions, and a product of two computed tensors."""

    def __init__(self):
        super().__init__()
        self.key, self.value = nn.Conv2d(8, 1, 1), nn.Conv2d(8, 8, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        weights = self.key(x).view(n, 1, h * w).softmax(-1)
        context = torch.bmm(x.view(n, c, h * w), weights.transpose(1, 2)).view(n, c, 1, 1)
        return x + self.value(context)


class Selective(nn.Module):
    """Selective kernels: a softmax over two branches."""

    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList([convolution(8, 8), convolution(8, 8, 1)])
        self.linear = nn.Linear(8, 16)

    def forward(self, x):
        y = torch.stack([branch(x) for branch in self.branches], 1)
        weights = self.linear(y.sum(1).mean((2, 3))).view(-1, 2, 8).softmax(1)
        return (y * weights[..., None, None]).sum(1)


class Response(nn.Module):
    """Global response normalization, channels last."""

    def __init__(self, channels=8):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(1, 1, 1, channels))
        self.beta = nn.Parameter(torch.zeros(1, 1, 1, channels))

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        norm = torch.norm(x, p=2, dim=(1, 2), keepdim=True)
        found = self.gamma * (x * (norm / (norm.mean(-1, keepdim=True) + 1e-6))) + self.beta + x
        return found.permute(0, 3, 1, 2)


class Pyramid(nn.Module):
    """Three levels in one size, stacked and added up."""

    def __init__(self):
        super().__init__()
        self.first = normalized(3, 8)
        self.second, self.third = normalized(8, 8, stride=2), normalized(8, 8, stride=2)
        self.last = nn.Conv2d(8, 3, 1)

    def forward(self, x):
        x = self.first(x)
        second = self.second(x)
        levels = [
            F.interpolate(level, size=x.shape[2:], mode="bilinear", align_corners=False)
            for level in (second, self.third(second))
        ]
        return self.last(torch.stack([x, *levels]).sum(0))


class Generator(nn.Module):
    """An image from a vector."""

    def __init__(self):
        super().__init__()
        self.linear, self.act = nn.Linear(12, 16 * 4 * 4), nn.ReLU()
        self.first, self.norm = nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.BatchNorm2d(8)
        self.second = nn.ConvTranspose2d(8, 3, 4, 2, 1)

    def forward(self, z):
        x = self.linear(z).view(-1, 16, 4, 4)
        return torch.tanh(self.second(self.act(self.norm(self.first(x)))))


class Signal(nn.Module):
    """A network of one dimension."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv1d(2, 8, 5, padding=2), nn.BatchNorm1d(8)
        self.second, self.pool = nn.Conv1d(8, 16, 3, padding=1), nn.MaxPool1d(2)
        self.act, self.head = nn.ReLU(), nn.Linear(16, 5)

    def forward(self, x):
        x = self.pool(self.act(self.norm(self.first(x))))
        return self.head(self.act(self.second(x)).mean(-1))


def between(function, channels=8, **options):
    """A case with a function behind the stem, whose output has so many channels."""
    return Case(lambda: Between(function, scores(channels)), **options)


def pooled(function, features=8, **options):
    """A case with a function that makes a vector."""
    return Case(lambda: Between(function, nn.Linear(features, 5)), **options)


def gated(layer, function, channels=8, **options):
    """A case with a function of the stem's output and of what a layer makes of it."""
    return Case(lambda: Between(Gate(layer(), function), scores(channels)), **options)


def module(make, channels=8, **options):
    return Case(lambda: Between(make(), scores(channels)), **options)


class Wrapped(nn.Module):
    """A convolution of an image that continues at its other end. PyTorch 1.13 exports its own
    circular padding with slices that are one position off, so that the file differs from it.
    """

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3)

    def forward(self, x):
        x = torch.cat([x[:, :, -1:], x, x[:, :, :1]], 2)
        return self.conv(torch.cat([x[..., -1:], x, x[..., :1]], 3))


def padded(mode):
    return lambda: nn.Conv2d(8, 8, 3, padding=1, padding_mode=mode)


def shuffled(x, groups=2):
    n, c, h, w = x.shape
    return x.view(n, groups, c // groups, h, w).transpose(1, 2).contiguous().view(n, c, h, w)


def focus(x):
    corners = [x[..., i::2, j::2] for j in (0, 1) for i in (0, 1)]
    return torch.cat(corners, 1)


def own_layer():
    return convolution(8, 8)


CASES = {
    # vectors
    "view_minus_one": pooled(lambda x: x.view(x.size(0), -1), 8 * 256),
    "flatten_1": pooled(lambda x: x.flatten(1), 8 * 256),
    "mean_of_flat": pooled(lambda x: x.flatten(2).mean(-1)),
    "mean_list": pooled(lambda x: x.mean([2, 3])),
    "mean_twice": pooled(lambda x: x.mean(3).mean(2)),
    "sum_pool": pooled(lambda x: x.sum((2, 3)) / 256),
    "amax_pool": pooled(lambda x: x.amax((2, 3))),
    "both_pools": pooled(
        lambda x: torch.cat(
            [F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, 1)], 1
        ).flatten(1),
        16,
    ),
    "normalized_vector": pooled(lambda x: F.normalize(x.mean((2, 3)))),
    "vector_norm": Case(
        lambda: nn.Sequential(
            normalized(3, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(8), nn.ELU(),
            nn.Linear(8, 5),
        )
    ),  # fmt: skip
    # moving data
    "chunk_swap": between(lambda x: torch.cat(list(x.chunk(2, 1))[::-1], 1)),
    "gated_halves": between(lambda x: F.glu(x, 1), 4),
    "channel_shuffle": between(shuffled),
    "pixel_shuffle": between(lambda x: F.pixel_shuffle(x, 2), 2),
    "pixel_unshuffle": between(lambda x: F.pixel_unshuffle(x, 2), 32),
    "focus": between(focus, 32),
    "last_row": between(lambda x: x[:, :, -1].unsqueeze(2)),
    "center_crop": between(lambda x: x[:, :, 4:12, 4:12]),
    "circular": module(Wrapped),
    "reflect": module(padded("reflect")),
    "replicate": module(padded("replicate")),
    "padding_value": between(lambda x: F.pad(x, (1, 1, 1, 1), value=-1.5)),
    "bilinear_corners": between(
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
    ),
    "bilinear_size": between(lambda x: F.interpolate(x, size=(23, 25), mode="bilinear")),
    "bilinear_down": between(lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear")),
    "nearest_size": between(lambda x: F.interpolate(x, size=(24, 20))),
    "pyramid": Case(Pyramid, loss="mse"),
    "generator": Case(Generator, inputs=((12,),), loss="mse"),
    "signal": Case(Signal, inputs=((2, 32),)),
    # combining
    "kept_mean": module(lambda: Gate(nn.Conv2d(8, 8, 1), lambda x, y: x * y.mean((2, 3), True))),
    "squeeze_excite": gated(Means, lambda x, y: x * torch.sigmoid(y).view(-1, 8, 1, 1)),
    "feature_modulation": gated(
        lambda: Means(16), lambda x, y: x * (1 + y[:, :8, None, None]) + y[:, 8:, None, None]
    ),
    "spatial_gate": gated(lambda: nn.Conv2d(8, 1, 1), lambda x, y: x * torch.sigmoid(y)),
    "channel_reduced_gate": module(
        lambda: Gate(
            nn.Identity(),
            lambda x, y: x * torch.sigmoid(y.mean(1, keepdim=True) + y.amax(1, keepdim=True)),
        ),
        kinked=True,
    ),
    "max_of_two": gated(own_layer, torch.max, kinked=True),
    "quotient": gated(own_layer, lambda x, y: (y - x) / (1 + x * x)),
    "clamped": gated(own_layer, lambda _, y: y.clamp(-0.5, 0.7), kinked=True),
    "efficient_gate": module(Efficient),
    "global_context": module(Context),
    "selective_kernels": module(Selective),
    # functions and norms
    "normalized_channels": between(lambda x: F.normalize(x, dim=1)),
    "divided_by_norm": between(lambda x: x / (x.norm(2, 1, True) + 1e-3)),
    "root_mean_square": between(
        lambda x: x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-5)
    ),
    "response_norm": module(Response),
    "gelu": between(F.gelu),
    "quick_gelu": between(lambda x: x * torch.sigmoid(1.702 * x)),
    "linear_over_flat": module(
        lambda: Gate(
            nn.Sequential(nn.Flatten(2), Transposed(), nn.Linear(8, 8), Transposed()),
            lambda x, y: x + y.view(x.shape),
        )
    ),
}
