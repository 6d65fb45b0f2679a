"""Models as users write them, each with something that an import may get wrong.

CASES maps a name to a Case. `smooth(module)` turns a module into one without kinks: where the input
of a ReLU changes its sign by rounding, gradients jump, and single draws are far apart.
"""

import dataclasses
from typing import Callable

import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass
class Case:
    make: Callable[[], nn.Module]
    inputs: tuple = ((3, 16, 16),)  # channels and extents of a sample, for each input
    loss: str = "cross_entropy"  # or "mse": what `stratplan import --loss` adds
    losses: tuple = ()  # of a module with several outputs: loss and weight of each
    batch: int = 4
    weight_decay: float = 0
    groups: dict = dataclasses.field(default_factory=dict)  # patterns: PyTorch's settings
    opset: int | None = None  # of the exported model; else PyTorch's usual one
    kinked: bool = False  # even the smooth copy has a kink: it tests a function that has one
    refused: str = ""  # a regular expression: the import may refuse the model with this reason


    @property
    def ends(self):
        """Loss and weight of each output."""
        return self.losses or ((self.loss, 1),)


def smooth(module):
    """Replaces every ReLU and LeakyReLU by ELU, in place."""
    for name, child in module.named_children():
        if isinstance(child, (nn.ReLU, nn.LeakyReLU)):
            setattr(module, name, nn.ELU())
        else:
            smooth(child)
    return module


def convolution(inputs, outputs, kernel=3, stride=1, bias=True):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=bias)


def normalized(inputs, outputs, norm=nn.BatchNorm2d, stride=1):
    """Convolution, normalization, ReLU."""
    return nn.Sequential(convolution(inputs, outputs, 3, stride, False), norm(outputs), nn.ReLU())


def scores(channels, classes=5):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class Residual(nn.Module):
    """Nothing special: it judges the judge."""

    def __init__(self):
        super().__init__()
        self.stem, self.block = normalized(3, 8), normalized(8, 16, stride=2)
        self.conv, self.norm = convolution(16, 16, bias=False), nn.BatchNorm2d(16)
        self.shortcut, self.act, self.head = convolution(8, 16, 1, 2), nn.ReLU(), scores(16)

    def forward(self, x):
        x = self.stem(x)
        return self.head(self.act(self.norm(self.conv(self.block(x))) + self.shortcut(x)))


class ConvNext(nn.Module):
    """A block of ConvNeXt: normalization and products over the channels, which are the last axis."""

    def __init__(self):
        super().__init__()
        self.stem, self.first = convolution(3, 8, 3, 2), nn.LayerNorm(8, eps=1e-6)
        self.depthwise, self.norm = nn.Conv2d(8, 8, 5, padding=2, groups=8), nn.LayerNorm(8)
        self.wide, self.act, self.narrow = nn.Linear(8, 24), nn.ELU(), nn.Linear(24, 8)
        self.pool, self.last = nn.AdaptiveAvgPool2d(1), nn.LayerNorm(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.first(self.stem(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        x = x + self.narrow(self.act(self.wide(y))).permute(0, 3, 1, 2)
        return self.head(self.last(self.pool(x).flatten(1)))


class SplitAndCrop(nn.Module):
    """Channels in two halves, one of which goes its own way; a crop beside it."""

    def __init__(self):
        super().__init__()
        self.stem, self.branch, self.act = convolution(3, 10), convolution(4, 6), nn.ReLU()
        self.head = scores(12)

    def forward(self, x):
        x = self.stem(x)
        own, other = x.split((4, 6), 1)
        own = self.act(self.branch(own))
        return self.head(torch.cat((own, other), 1)[:, :, 1:-2, 3:])


class SharedConvolution(nn.Module):
    """One convolution, used twice."""

    def __init__(self):
        super().__init__()
        self.stem, self.shared = normalized(3, 8), convolution(8, 8)
        self.act, self.head = nn.ReLU(), scores(8)

    def forward(self, x):
        x = self.act(self.shared(self.stem(x)))
        return self.head(self.act(self.shared(x)))


class ScaledVolume(nn.Module):
    """Like CosmoFlow, with a factor behind the tanh: 1.2 is no parameter."""

    def __init__(self):
        super().__init__()
        layers, channels = [], 2
        for filters in (4, 8, 16):
            layers += [
                nn.Conv3d(channels, filters, 3, padding=1),
                nn.LeakyReLU(),
                nn.AvgPool3d(2),
            ]
            channels = filters
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(16 * 8, 32), nn.LeakyReLU(), nn.Linear(32, 4), nn.Tanh()
        )

    def forward(self, x):
        return self.head(self.features(x)) * 1.2


class Preprocessed(nn.Module):
    """A small classifier behind arithmetic on its input."""

    def __init__(self, arithmetic):
        super().__init__()
        self.arithmetic = arithmetic
        self.body, self.head = nn.Sequential(normalized(3, 8), normalized(8, 8)), scores(8)

    def forward(self, x):
        return self.head(self.body(self.arithmetic(x)))


class Standardized(nn.Module):
    """(x - mean) / std, where both are registered buffers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))

    def forward(self, x):
        return (x - self.mean) / self.std


class Shifted(nn.Module):
    """Sums and products with numbers in the code, between layers."""

    def __init__(self):
        super().__init__()
        self.first, self.second = convolution(3, 8), convolution(8, 8, 1)
        self.act, self.head = nn.ReLU(), scores(8)

    def forward(self, x):
        return self.head(self.act(self.second(self.act(self.first(x)) + 3) - 1.5) / 2 + 0.25)


class FrozenBatchNorm2d(nn.Module):
    """The formula of torchvision.ops.FrozenBatchNorm2d: four buffers, no parameter."""

    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.eps = eps
        for name, base in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
            self.register_buffer(name, base + 0.3 * torch.rand(channels))

    def forward(self, x):
        w, b = self.weight.reshape(1, -1, 1, 1), self.bias.reshape(1, -1, 1, 1)
        rv, rm = self.running_var.reshape(1, -1, 1, 1), self.running_mean.reshape(1, -1, 1, 1)
        scale = w * (rv + self.eps).rsqrt()
        bias = b - rm * scale
        return x * scale + bias


class Frozen(nn.Module):
    """A detector's backbone: frozen normalizations, residual sums."""

    def __init__(self):
        super().__init__()
        self.stem = normalized(3, 8, FrozenBatchNorm2d)
        self.block = normalized(8, 8, FrozenBatchNorm2d)
        self.conv, self.norm = convolution(8, 8, bias=False), FrozenBatchNorm2d(8)
        self.act, self.head = nn.ReLU(), scores(8)

    def forward(self, x):
        x = self.stem(x)
        return self.head(self.act(self.norm(self.conv(self.block(x))) + x))


class Evaluated(nn.Module):
    """A batch normalization in evaluation mode among others: its scale and shift are trained."""

    def __init__(self):
        super().__init__()
        self.backbone, self.top, self.head = normalized(3, 8), normalized(8, 8), scores(8)

    def train(self, mode=True):
        super().train(mode)
        self.backbone[1].eval()
        return self

    def forward(self, x):
        return self.head(self.top(self.backbone(x)))


class Translator(nn.Module):
    """Like Pix2Pix: instance normalization without parameters, and a long skip."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2))
        self.deep = nn.Sequential(
            nn.Conv2d(8, 16, 4, 2, 1, bias=False),
            nn.InstanceNorm2d(16),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False),
            nn.InstanceNorm2d(8),
        )
        self.up = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        x = self.down(x)
        return self.up(torch.cat([x, self.deep(x)], 1))


class Classifier(nn.Module):
    """Three normalized convolutions."""

    def __init__(self, *norms):
        super().__init__()
        channels = [3, 8, 16, 16]
        self.body = nn.Sequential(
            *[
                normalized(channels[i], channels[i + 1], norms[i % len(norms)])
                for i in range(3)
            ]
        )
        self.head = scores(16)

    def forward(self, x):
        return self.head(self.body(x))


class SlopedUNet(nn.Module):
    """Like MONAI's U-Net: strided and transposed convolutions, instance normalization, PReLU."""

    def __init__(self, one_slope):
        super().__init__()

        def stage(layer, filters):
            return nn.Sequential(
                layer, nn.InstanceNorm2d(filters), nn.PReLU(1 if one_slope else filters)
            )

        self.first = stage(convolution(2, 8, 3, 2), 8)
        self.second = stage(convolution(8, 16, 3, 2), 16)
        self.bottom = stage(convolution(16, 16), 16)
        self.up = stage(nn.ConvTranspose2d(32, 8, 3, 2, 1, 1), 8)
        self.last = nn.ConvTranspose2d(16, 3, 3, 2, 1, 1)

    def forward(self, x):
        first = self.first(x)
        second = self.second(first)
        up = self.up(torch.cat([second, self.bottom(second)], 1))
        return self.last(torch.cat([first, up], 1))


class Heads(nn.Module):
    """Like RetinaNet: a pyramid of five levels, and two towers that all levels share."""

    def __init__(self, filters=6, classes=2, anchors=1):
        super().__init__()
        self.stem = normalized(3, filters)
        self.stages = nn.ModuleList([normalized(filters, filters, stride=2) for _ in range(4)])
        self.lateral = nn.ModuleList([convolution(filters, filters, 1) for _ in range(5)])
        self.output = nn.ModuleList([convolution(filters, filters) for _ in range(5)])

        def tower(outputs):
            layers = [layer for _ in range(4) for layer in (convolution(filters, filters), nn.ReLU())]
            return nn.Sequential(*layers, convolution(filters, outputs))

        self.classes, self.boxes = tower(classes * anchors), tower(4 * anchors)

    def forward(self, x):
        levels = [self.stem(x)]
        for stage in self.stages:
            levels.append(stage(levels[-1]))
        tops = [lateral(level) for lateral, level in zip(self.lateral, levels)]
        for i in range(3, -1, -1):
            tops[i] = tops[i] + F.interpolate(tops[i + 1], scale_factor=2.0, mode="nearest")
        found = []
        for i, (output, top) in enumerate(zip(self.output, tops)):
            top = output(top)
            both = torch.cat([self.classes(top), self.boxes(top)], 1)
            if i > 0:  # losses of several levels cannot be imported; one map holds them all
                both = F.interpolate(both, scale_factor=2.0**i, mode="nearest")
            found.append(both)
        return torch.cat(found, 1)


class Encoder(nn.Module):
    """Convolutions with batch normalization, pooled to a vector per sample."""

    def __init__(self, channels=3):
        super().__init__()
        self.body = nn.Sequential(normalized(channels, 8), normalized(8, 8, stride=2))
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())

    def forward(self, x):
        return self.pool(self.body(x))


class SiameseInputs(nn.Module):
    """One encoder for two inputs of the graph."""

    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), nn.Linear(8, 2)

    def forward(self, a, b):
        return self.head(torch.abs(self.encoder(a) - self.encoder(b)))


class ImageAndVector(nn.Module):
    """An image, and a vector per sample that gates its channels and joins its features."""

    def __init__(self):
        super().__init__()
        self.stem, self.gate = normalized(3, 8), nn.Linear(5, 8)
        self.conv, self.pool = normalized(8, 8, stride=2), nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(8 + 5, 5)

    def forward(self, image, vector):
        x = self.stem(image) * torch.sigmoid(self.gate(vector))[:, :, None, None]
        return self.head(torch.cat([self.pool(self.conv(x)).flatten(1), vector], 1))


class Auxiliary(nn.Module):
    """Like GoogLeNet: in training, a second classifier reads the middle of the trunk."""

    def __init__(self):
        super().__init__()
        self.stem, self.middle, self.end = (
            normalized(3, 8),
            normalized(8, 12, stride=2),
            normalized(12, 12),
        )
        self.aux = nn.Sequential(convolution(12, 8, 1), nn.ReLU(), scores(8))
        self.head = scores(12)

    def forward(self, x):
        x = self.middle(self.stem(x))
        return self.head(self.end(x)), self.aux(x)


class DeepSupervision(nn.Module):
    """A decoder with a loss at each resolution. Finer levels read the coarser maps of scores."""

    def __init__(self):
        super().__init__()
        self.first, self.down = normalized(2, 6), normalized(6, 8, stride=2)
        self.bottom, self.coarse = normalized(8, 8, stride=2), convolution(8, 3, 1)
        self.up, self.middle = nn.ConvTranspose2d(3, 8, 2, 2), convolution(16, 3)
        self.upper, self.fine = nn.ConvTranspose2d(3, 6, 2, 2), convolution(12, 3)

    def forward(self, x):
        first = self.first(x)
        down = self.down(first)
        coarse = self.coarse(self.bottom(down))
        middle = self.middle(torch.cat([self.up(coarse), down], 1))
        return self.fine(torch.cat([self.upper(middle), first], 1)), middle, coarse


class SiameseHalves(SiameseInputs):
    """One encoder for two halves of the channels."""

    def forward(self, x):
        return super().forward(x[:, :3], x[:, 3:])


class Siamese(SiameseInputs):
    """One encoder, normalizations included, for two views that own convolutions make."""

    def __init__(self):
        super().__init__()
        self.left, self.right = convolution(3, 3), convolution(3, 3, 1)

    def forward(self, x):
        return super().forward(self.left(x), self.right(x))


class Recursive(nn.Module):
    """Like DRRN: one convolution, five times, with skips; its output is added to its input."""

    def __init__(self):
        super().__init__()
        self.first, self.again = convolution(3, 8), convolution(8, 8)
        self.act, self.last = nn.ReLU(), convolution(8, 3)

    def forward(self, x):
        first = y = self.first(x)
        for _ in range(5):
            y = self.again(self.act(y)) + first
        return x + self.last(y)


class LayerScale(nn.Module):
    """Learned factors, one per channel, on residual branches."""

    def __init__(self):
        super().__init__()
        self.stem, self.head = convolution(3, 8), scores(8)
        self.branches = nn.ModuleList(
            [nn.Sequential(convolution(8, 8), nn.ReLU(), convolution(8, 8, 1)) for _ in range(2)]
        )
        self.gamma = nn.ParameterList([nn.Parameter(torch.ones(8, 1, 1)) for _ in range(2)])

    def forward(self, x):
        x = self.stem(x)
        for branch, gamma in zip(self.branches, self.gamma):
            x = x + branch(x) * gamma
        return self.head(x)


class ScaledBranch(nn.Module):
    """SkipInit: one learned number for a whole branch."""

    def __init__(self):
        super().__init__()
        self.stem, self.branch, self.head = convolution(3, 8), convolution(8, 8), scores(8)
        self.gain, self.act = nn.Parameter(torch.ones(())), nn.ReLU()

    def forward(self, x):
        x = self.stem(x)
        return self.head(x + self.act(self.branch(x)) * self.gain)


class TiedDilations(nn.Module):
    """One kernel in two convolutions: dense, and dilated with stride 2 and another bias."""

    def __init__(self):
        super().__init__()
        self.stem, self.dense = normalized(3, 8), convolution(8, 8)
        self.dilated = nn.Conv2d(8, 8, 3, 2, 2, 2)
        self.dilated.weight = self.dense.weight
        self.act, self.head = nn.ReLU(), scores(8)

    def forward(self, x):
        return self.head(self.act(self.dilated(self.act(self.dense(self.stem(x))))))


class TiedAutoencoder(nn.Module):
    """A kernel in a convolution and in the transposed one that inverts it."""

    def __init__(self):
        super().__init__()
        self.encoder, self.act = nn.Conv2d(3, 8, 4, 2, 1), nn.ReLU()
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        y = self.act(self.encoder(x))
        return F.conv_transpose2d(y, self.encoder.weight, self.bias, 2, 1)


class TiedMatrices(nn.Module):
    """A matrix and its transpose."""

    def __init__(self):
        super().__init__()
        self.encoder, self.flatten, self.act = nn.Linear(27, 6), nn.Flatten(), nn.ReLU()

    def forward(self, x):
        return F.linear(self.act(self.encoder(self.flatten(x))), self.encoder.weight.t())


class SharedBias(nn.Module):
    """One bias for two convolutions with kernels of their own."""

    def __init__(self):
        super().__init__()
        self.first, self.second = convolution(3, 8), convolution(8, 8)
        self.second.bias = self.first.bias
        self.act, self.head = nn.ReLU(), scores(8)

    def forward(self, x):
        return self.head(self.act(self.second(self.act(self.first(x)))))


def norm(kind=nn.BatchNorm2d, **options):
    return lambda channels: kind(channels, **options)


def groups(**options):
    return lambda channels: nn.GroupNorm(4, channels, **options)


def in_code(x):
    """Numbers per channel in the code."""
    return (x - torch.tensor([0.5, 0.4, 0.3], dtype=x.dtype).view(1, 3, 1, 1)) / torch.tensor(
        [0.2, 0.25, 0.3], dtype=x.dtype
    ).view(1, 3, 1, 1)


SHARED_SHAPE = "share a parameter only in one role"
CASES = {
    "residual": Case(Residual),
    "parameter_groups": Case(
        Residual,
        weight_decay=0.2,
        groups={
            "head.*": {"lr": 0.25, "weight_decay": 0.4},
            "norms,biases": {"weight_decay": 0},
            "stem.*,block.*": {"lr": 4},
        },
    ),
    "convnext": Case(ConvNext, opset=17),
    "split_and_crop": Case(SplitAndCrop),
    "shared_convolution": Case(SharedConvolution),
    "scaled_volume": Case(ScaledVolume, ((2, 16, 16, 16),), "mse"),
    "standardized_by_buffers": Case(lambda: Preprocessed(Standardized())),
    "standardized_by_numbers": Case(lambda: Preprocessed(lambda x: (x - 0.45) / 0.225)),
    "standardized_by_lists": Case(lambda: Preprocessed(in_code)),
    "divided_by_255": Case(lambda: Preprocessed(lambda x: x / 255)),
    "shifted": Case(Shifted),
    "frozen_batch_norm": Case(Frozen),
    "evaluated_batch_norm": Case(Evaluated),
    "plain_batch_norm": Case(lambda: Classifier(norm(affine=False))),
    "momenta": Case(
        lambda: Classifier(
            norm(), norm(momentum=0.01, eps=1e-3), norm(momentum=0.9, eps=1e-2)
        )
    ),
    "untracked_batch_norm": Case(lambda: Classifier(norm(track_running_stats=False), norm())),
    "plain_instance_norm": Case(Translator, loss="mse"),
    "instance_norm": Case(lambda: Classifier(norm(nn.InstanceNorm2d, affine=True))),
    "group_norm": Case(lambda: Classifier(groups())),
    "plain_group_norm": Case(lambda: Classifier(groups(affine=False))),
    "one_slope": Case(lambda: SlopedUNet(True), ((2, 16, 16),), "mse", kinked=True),
    "slopes": Case(lambda: SlopedUNet(False), ((2, 16, 16),), "mse", kinked=True),
    "retina_heads": Case(Heads, ((3, 32, 32),), "mse"),
    "siamese": Case(Siamese, kinked=True),
    "siamese_inputs": Case(SiameseInputs, ((3, 16, 16), (3, 16, 16)), kinked=True),
    "image_and_vector": Case(ImageAndVector, ((3, 16, 16), (5,))),
    "auxiliary_classifier": Case(
        Auxiliary, losses=(("cross_entropy", 1), ("cross_entropy", 0.4))
    ),
    "deep_supervision": Case(
        DeepSupervision,
        ((2, 16, 16),),
        losses=(("cross_entropy", 1), ("cross_entropy", 0.5), ("mse", 0.25)),
    ),
    "siamese_halves": Case(SiameseHalves, ((6, 16, 16),), refused="Slice"),
    "recursive": Case(Recursive, loss="mse"),
    "layer_scale": Case(LayerScale),
    "scaled_branch": Case(ScaledBranch, refused="one number for all 8 channels"),
    "tied_dilations": Case(TiedDilations),
    "tied_autoencoder": Case(TiedAutoencoder, loss="mse", refused=SHARED_SHAPE),
    "tied_matrices": Case(TiedMatrices, ((3, 3, 3),), "mse", refused=SHARED_SHAPE),
    "shared_bias": Case(SharedBias),
}


def redraw(module, seed):
    """Draws all trained parameters and running statistics anew; other buffers stay as they are.

    No two of them are alike, so that any exchange of two shows.
    """
    generator = torch.Generator().manual_seed(seed)

    def random(tensor):
        return torch.randn(tensor.shape, generator=generator)

    with torch.no_grad():
        for tensor in module.parameters():
            if tensor.dim() > 3:  # the kernel of a convolution: like He's
                tensor.copy_(random(tensor) * (2 / tensor[0].numel()) ** 0.5)
            elif tensor.dim() == 2:
                tensor.copy_(random(tensor) * tensor.shape[1] ** -0.5)
            else:
                tensor.copy_(random(tensor) * 0.1)
        for layer in module.modules():
            if isinstance(layer, nn.modules.batchnorm._NormBase) and layer.running_mean is not None:
                layer.running_mean.copy_(random(layer.running_mean) * 0.1)
                layer.running_var.copy_(1 + 0.2 * random(layer.running_var).clamp(-2, 2))
            if isinstance(layer, (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm)):
                if layer.weight is not None:
                    layer.weight.add_(1)
            if isinstance(layer, nn.PReLU):
                layer.weight.add_(0.25)
        if isinstance(module, (LayerScale, ScaledBranch)):
            for gain in module.gamma if isinstance(module, LayerScale) else [module.gain]:
                gain.add_(0.5)
    return module
