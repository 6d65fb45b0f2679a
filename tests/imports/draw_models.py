"""Draws models of torchvision, timm, MONAI and segmentation_models_pytorch, in an order that a seed
fixes.

    draw_models.py [LIBRARY ...]     prints the order of the draw

All constructors are enumerated. Left out are what the rules below name. torchvision's and MONAI's
are shuffled. timm's families (modules of timm.models) are shuffled and give a model in turn, since
half of timm's models belong to a few families. segmentation_models_pytorch's architectures take
turns too, each with a shuffled encoder.

    transformers   a class of the model's modules is called like one of TRANSFORMER
    size           more than LARGEST parameters, so that 30 models take half an hour
    tasks          torchvision's detectors, optical flow and quantized models: their losses and types
                   are not those that an import adds
"""

import random
import re
import sys
import warnings

import torch
from torch import nn

SEED, LARGEST = 2026, 40_000_000
# Attention between positions, recurrence, and products over all positions. Gates ("SEModule",
# "EcaModule", "SelectiveKernelAttn") are not meant.
TRANSFORMER = re.compile(
    r"\w*Attention(2d|Rel|V2|Downsample|2dDownsample|Global|Cl|Rope|Pool\w*)?|\w*Transformer\w*"
    r"|(TalkingHead|Class|LocallyGrouped|GlobalSubSample|Halo|Bottleneck|NonLocal|BatNonLocal"
    r"|CrossCovariance)?Attn|FactorAttn\w*|BilinearAttnTransform|SelfAttnBlock|SABlock|PABBlock"
    r"|SHSA|SHMA|GPSA|\w*MHSA|\w*MLA|XCA|HSMSSD|Lambda\w*|MlpMixer|\w*LSTM\w*"
)
GATES = {"segmentation_models_pytorch.base.modules.Attention"}
LIBRARIES = ("torchvision", "timm", "monai", "segmentation_models_pytorch")


class TrainedOutputs(nn.Module):
    """A model with the outputs that are trained: of a tuple, the first, which is the prediction; of
    a list or a dictionary, all, which are heads or levels.
    """

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        found = tuple(self.trained(self.model(x)))
        return found[0] if len(found) == 1 else found

    def trained(self, found):
        if isinstance(found, torch.Tensor):
            return [found]
        if isinstance(found, tuple):
            return self.trained(found[0])
        each = found.values() if isinstance(found, dict) else found
        return [output for part in each for output in self.trained(part)]


def torchvision_models():
    """Returns {name: (constructor, sizes of the input)}."""
    from torchvision import models

    found = {}
    for module, size in (
        (models, (3, 96, 96)),
        (models.segmentation, (3, 96, 96)),
        (models.video, (3, 16, 64, 64)),
    ):
        for name in models.list_models(module=module):
            options = {"weights": None}
            if module is models.segmentation:
                options["weights_backbone"] = None
            if name in ("googlenet", "inception_v3"):  # heads that only the loss of a user reads
                options |= {"aux_logits": False, "init_weights": False}
            found[name] = (lambda name=name, options=options: models.get_model(name, **options), size)
    return found


def timm_models():
    import timm

    return {
        name: (lambda name=name: timm.create_model(name), (3, 96, 96)) for name in timm.list_models()
    }


def monai_models():
    """MONAI's constructors need arguments. These are small, in two and three dimensions."""
    from monai.networks import nets as n

    found = {}
    for axes in (2, 3):
        size = (2, *[32] * 3) if axes == 3 else (2, 96, 96)
        kind = {"spatial_dims": axes}
        ways = {**kind, "in_channels": 2, "out_channels": 3}
        classes = {**kind, "in_channels": 2, "num_classes": 4}
        unet = {**ways, "channels": (8, 16, 32), "strides": (2, 2)}
        dynamic = {
            **ways,
            "kernel_size": [3, 3, 3],
            "strides": [1, 2, 2],
            "upsample_kernel_size": [2, 2],
            "filters": [8, 16, 32],
        }
        few = (8, 8, 16, 32, 64, 8)
        image = size[1:]
        made = {
            "UNet": lambda u=unet: n.UNet(**u),
            "UNet residual": lambda u=unet: n.UNet(**u, num_res_units=2),
            "UNet batch": lambda u=unet: n.UNet(**u, norm="batch", act="relu", num_res_units=1),
            "UNet group": lambda u=unet: n.UNet(**u, norm=("group", {"num_groups": 4})),
            "BasicUNet": lambda w=ways: n.BasicUNet(**w, features=few),
            "BasicUNet deconv": lambda w=ways: n.BasicUNet(**w, features=few, norm="batch"),
            "BasicUNetPlusPlus": lambda w=ways: n.BasicUNetPlusPlus(**w, features=few),
            "DynUNet": lambda d=dynamic: n.DynUNet(**d),
            "DynUNet residual": lambda d=dynamic: n.DynUNet(**d, res_block=True),
            "DynUNet batch": lambda d=dynamic: n.DynUNet(**d, norm_name="batch"),
            "FlexibleUNet": lambda w=ways: n.FlexibleUNet(
                w["in_channels"], w["out_channels"], "efficientnet-b0", False, (32, 16, 16, 8, 8),
                w["spatial_dims"],
            ),  # fmt: skip
            "SegResNet": lambda w=ways: n.SegResNet(**w, init_filters=8),
            "SegResNet deconv": lambda w=ways: n.SegResNet(
                **w, init_filters=8, upsample_mode="deconv", norm="batch"
            ),
            "SegResNetVAE": lambda w=ways, i=image: n.SegResNetVAE(i, **w, init_filters=8),
            "SegResNetDS": lambda w=ways: n.SegResNetDS(**w, init_filters=8, blocks_down=(1, 2, 2)),
            "VNet": lambda w=ways: n.VNet(**w, dropout_prob_down=0, dropout_prob_up=(0, 0)),
            "HighResNet": lambda w=ways: n.HighResNet(**w),
            "AHNet": lambda w=ways: n.AHNet(**w, psp_block_num=0),
            "AttentionUnet": lambda u=unet: n.AttentionUnet(**u),
            "DenseNet121": lambda w=ways: n.DenseNet121(**w),
            "DenseNet169": lambda w=ways: n.DenseNet169(**w),
            "SEResNet50": lambda c=classes: n.SEResNet50(**c),
            "SEResNext50": lambda c=classes: n.SEResNext50(**c),
            "resnet10": lambda k=kind: n.resnet10(**k, n_input_channels=2, num_classes=4),
            "resnet18": lambda k=kind: n.resnet18(**k, n_input_channels=2, num_classes=4),
            "resnet50": lambda k=kind: n.resnet50(**k, n_input_channels=2, num_classes=4),
            "EfficientNetBN": lambda c=classes: n.EfficientNetBN(
                "efficientnet-b0", False, **c
            ),
            "AutoEncoder": lambda u=unet: n.AutoEncoder(**{**u, "strides": (2, 2, 1)}),
            "VarAutoEncoder": lambda k=kind, s=size: n.VarAutoEncoder(
                **k, in_shape=s, out_channels=3, latent_size=8, channels=(8, 16), strides=(2, 2)
            ),
            "Regressor": lambda s=size: n.Regressor(s, (1,), (8, 16), (2, 2)),
            "Classifier": lambda s=size: n.Classifier(s, 4, (8, 16), (2, 2)),
            "Discriminator": lambda s=size: n.Discriminator(s, (8, 16), (2, 2)),
            "Critic": lambda s=size: n.Critic(s, (8, 16), (2, 2)),
            "RegUNet": lambda w=ways: n.RegUNet(**w, num_channel_initial=8, depth=2),
            "LocalNet": lambda w=ways: n.LocalNet(
                **w, num_channel_initial=8, extract_levels=(0, 1, 2)
            ),
            "GlobalNet": lambda k=kind, i=image: n.GlobalNet(
                list(i), **k, in_channels=2, num_channel_initial=8, depth=2
            ),
            "VoxelMorphUNet": lambda k=kind: n.VoxelMorphUNet(
                **k, in_channels=2, unet_out_channels=8, channels=(8, 8, 8, 8),
                final_conv_channels=(8,),
            ),  # fmt: skip
            "PatchDiscriminator": lambda w=ways: n.PatchDiscriminator(
                spatial_dims=w["spatial_dims"], channels=8, in_channels=2, num_layers_d=2
            ),
            "VQVAE": lambda w=ways: n.VQVAE(
                **w, channels=(8, 8, 8), num_res_layers=1, num_res_channels=(8, 8, 8)
            ),
            "AutoencoderKL": lambda w=ways: n.AutoencoderKL(
                **w, num_res_blocks=(1, 1), channels=(8, 8), attention_levels=(False, False),
                norm_num_groups=4, with_encoder_nonlocal_attn=False,
                with_decoder_nonlocal_attn=False,
            ),  # fmt: skip
            "MedNeXt": lambda w=ways: n.MedNeXt(**w, init_filters=8),
        }
        found.update({f"{name} {axes}d": (make, size) for name, make in made.items()})
    flat = {
        "SENet154": lambda: n.SENet154(spatial_dims=2, in_channels=2, num_classes=4),
        "DAF3D": lambda: n.DAF3D(2, 3),
        "HoVerNet": lambda: n.HoVerNet(in_channels=2, out_classes=3),
        "Quicknat": lambda: n.Quicknat(num_classes=3, num_channels=2, num_filters=8),
        "TorchVisionFCModel": lambda: n.TorchVisionFCModel(
            "resnet18", 4, in_channels=None, pool=("avg", {"kernel_size": 3, "stride": 1})
        ),
    }
    sizes = {"DAF3D": (2, 32, 32, 32), "HoVerNet": (2, 256, 256), "TorchVisionFCModel": (3, 96, 96)}
    found.update({name: (make, sizes.get(name, (2, 96, 96))) for name, make in flat.items()})
    return found


def segmentation_models():
    """Each architecture with each encoder; some cannot be built together.

    The exporter has no node for a dropout of whole channels in training, so it is left out.
    """
    import segmentation_models_pytorch as smp

    def make(architecture, encoder):
        model = smp.create_model(architecture, encoder, encoder_weights=None, classes=3)
        for part in list(model.modules()):
            for name, child in part.named_children():
                if isinstance(child, nn.Dropout2d):
                    setattr(part, name, nn.Identity())
        return model

    # Pyramids of pooled maps need extents that their levels divide.
    sizes = {"pan": 128, "upernet": 192}
    return {
        f"{architecture} {encoder}": (
            lambda a=architecture, e=encoder: make(a, e),
            (3, *[sizes.get(architecture, 96)] * 2),
        )
        for architecture in smp.MODEL_ARCHITECTURES_MAPPING
        for encoder in smp.encoders.get_encoder_names()
    }


ENUMERATED = {
    "torchvision": torchvision_models,
    "timm": timm_models,
    "monai": monai_models,
    "segmentation_models_pytorch": segmentation_models,
}


def family(library, name):
    """Returns what a model's name is drawn with, in turn with other families."""
    if library == "timm":
        from timm.models import model_entrypoint

        return model_entrypoint(name).__module__
    return name.split()[0]


def order(library, names, seed=SEED):
    """Returns the names in the order of the draw."""
    random_number = random.Random(seed)
    names = sorted(names)
    if library in ("torchvision", "monai"):
        random_number.shuffle(names)
        return names
    families = {}
    for name in names:
        families.setdefault(family(library, name), []).append(name)
    lists = [families[family] for family in sorted(families)]
    random_number.shuffle(lists)
    for each in lists:
        random_number.shuffle(each)
    longest = max(map(len, lists))
    return [each[turn] for turn in range(longest) for each in lists if turn < len(each)]


def draw(library, seed=SEED):
    """Yields (name, constructor, size of the input) in the order of the draw."""
    found = ENUMERATED[library]()
    for name in order(library, found, seed):
        yield (name, *found[name])


def left_out(model):
    """Returns why a rule leaves a model out, or nothing."""
    for module in model.modules():
        kind = type(module).__name__
        if f"{type(module).__module__}.{kind}" in GATES:
            continue
        if TRANSFORMER.fullmatch(kind):
            return f"transformer ({kind})"
    count = sum(parameter.numel() for parameter in model.parameters())
    return f"{count / 1e6:.0f} M parameters" if count > LARGEST else ""


def without_values(make):
    """Returns the model without memory for its parameters, or with it where that fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.device("meta"):
                return make()
        except (RuntimeError, NotImplementedError):
            return make()


if __name__ == "__main__":
    for wanted in sys.argv[1:] or LIBRARIES:
        for position, (drawn, _, extents) in enumerate(draw(wanted)):
            print(f"{wanted} {position}: {drawn} {extents}")
