"""Models of torchvision for export_real_models.py: name -> function giving (module, arguments[, options])."""
import torch
import torchvision
from torchvision import models, ops


def rand(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def uniform(*shape, seed=1):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


MODELS = {}


def classification(name, size=64, **options):
    def build():
        # with auxiliary heads scripting makes the result a tuple
        return models.get_model(name, weights=None, num_classes=10, **options), (rand(1, 3, size, size),), {"scripted_result": "aux_logits" in options}
    MODELS[name] = build


classification("alexnet", 128)
classification("vgg11_bn", 64)
classification("googlenet", 96, aux_logits=False, init_weights=False)
classification("inception_v3", 128, aux_logits=False, init_weights=False)
classification("densenet121")
classification("squeezenet1_1")
classification("shufflenet_v2_x1_0")
classification("mobilenet_v2")
classification("mobilenet_v3_small")
classification("mnasnet1_0")
classification("efficientnet_b1")
classification("efficientnet_v2_s")
classification("regnet_y_400mf")
classification("regnet_x_400mf")
classification("resnext50_32x4d")
classification("wide_resnet50_2")
classification("convnext_tiny")
classification("swin_t")
classification("swin_v2_t")
classification("vit_b_32", 224)
classification("maxvit_t", 224)
classification("resnet34")


HEADS = {"cls_logits": 1.5, "cls_score": 1.5, "classification_head.module_list": 1.5, "bbox_ctrness": 1.0, "bbox_pred": 0.3, "bbox_reg": 0.3,
         "regression_head.module_list": 0.3, "kps_score_lowres": 1.0, "mask_fcn_logits": 1.0}


def spread(module, arguments):
    """Random heads tell everything alike, and random deep features explode: heads are scaled to outputs of a known
    spread, so that the order of boxes is no accident of rounding."""
    with torch.no_grad():
        for name, p in module.named_parameters():
            if name.endswith("bn3.weight"):
                p.mul_(0.25)
    hooks = []
    for name, layer in module.named_modules():
        target = next((t for key, t in HEADS.items() if key in name), None)
        if target is not None and isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear, torch.nn.ConvTranspose2d)):
            torch.nn.init.normal_(layer.weight, generator=torch.Generator().manual_seed(layer.weight.numel()))
            seen = []

            def hook(layer, inputs, output, target=target, seen=seen):
                if not seen and output.numel() > 1:
                    seen.append(True)
                    factor = target / float(output.std().clamp_min(1e-6))
                    layer.weight.data.mul_(factor)
                    if layer.bias is not None:
                        layer.bias.data.zero_()
                    return layer._conv_forward(inputs[0], layer.weight, layer.bias) if isinstance(layer, torch.nn.Conv2d) else output * factor
                return output

            hooks.append(layer.register_forward_hook(hook))
    with torch.no_grad():
        module.eval()(*arguments)
    for hook in hooks:
        hook.remove()
    return module


def detection(name, **options):
    def build():
        module = models.get_model(name, weights=None, weights_backbone=None, num_classes=5, **options)
        arguments = ([uniform(3, 120, 100), uniform(3, 90, 130, seed=2)],)
        return spread(module, arguments), arguments, {"scripted_result": True, "perturb": False}
    MODELS[name] = build


small = {"min_size": 96, "max_size": 128}
rpn = {"rpn_pre_nms_top_n_test": 100, "rpn_post_nms_top_n_test": 20, "box_detections_per_img": 10}
detection("fasterrcnn_resnet50_fpn", **small, **rpn)
detection("fasterrcnn_resnet50_fpn_v2", **small, **rpn)
detection("maskrcnn_resnet50_fpn", **small, **rpn)
detection("maskrcnn_resnet50_fpn_v2", **small, **rpn)
detection("keypointrcnn_resnet50_fpn", **small, **rpn)
detection("retinanet_resnet50_fpn", **small, topk_candidates=100, detections_per_img=20)
detection("retinanet_resnet50_fpn_v2", **small, topk_candidates=100, detections_per_img=20)
detection("fcos_resnet50_fpn", **small, topk_candidates=100, detections_per_img=20)
detection("ssd300_vgg16", topk_candidates=40, detections_per_img=20)
detection("ssdlite320_mobilenet_v3_large", topk_candidates=40, detections_per_img=20)


def segmentation(name, **options):
    def build():
        module = models.get_model(name, weights=None, weights_backbone=None, num_classes=5, **options)
        return module, (rand(1, 3, 65, 97),), {"scripted_result": True}
    MODELS[name] = build


segmentation("fcn_resnet50")
segmentation("deeplabv3_mobilenet_v3_large")
segmentation("deeplabv3_resnet50", aux_loss=True)
segmentation("lraspp_mobilenet_v3_large")


def video(name, frames=8, size=64, **options):
    def build():
        return models.get_model(name, weights=None, num_classes=10, **options), (rand(1, 3, frames, size, size),)
    MODELS[name] = build


video("r3d_18", 4, 32)
video("mc3_18", 4, 32)
video("r2plus1d_18", 4, 32)
video("s3d", 16, 224)
video("mvit_v1_b", 16, 224)
video("mvit_v2_s", 16, 224)
video("swin3d_t", 4, 64)


def raft_small():
    return models.optical_flow.raft_small(weights=None), (rand(1, 3, 128, 128), rand(1, 3, 128, 128, seed=2), 3)


MODELS["raft_small"] = raft_small


# ---- the operators by themselves ----
def boxes(n, seed, scale=30.0):
    corner = uniform(n, 2, seed=seed) * scale
    return torch.cat([corner, corner + 1 + uniform(n, 2, seed=seed + 100) * scale], 1)


class BoxOps(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, scores: torch.Tensor, group: torch.Tensor):
        kept = ops.nms(a, scores, 0.4)
        by_group = ops.batched_nms(a, scores, group, 0.3)
        small = ops.remove_small_boxes(a, 12.0)
        inside = ops.clip_boxes_to_image(a, (40, 48))
        center = ops.box_convert(a, "xyxy", "cxcywh")
        return (kept, by_group, small, inside, center, ops.box_convert(center, "cxcywh", "xyxy"), ops.box_area(a), ops.box_iou(a, b),
                ops.generalized_box_iou(a, b), ops.complete_box_iou(a, b), ops.distance_box_iou(a, b))


class LossOps(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, a: torch.Tensor, b: torch.Tensor):
        return (ops.sigmoid_focal_loss(x, y, reduction="mean"), ops.generalized_box_iou_loss(a, b, reduction="sum"),
                ops.complete_box_iou_loss(a, b), ops.distance_box_iou_loss(a, b, reduction="mean"))


class RoiOps(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.align = ops.RoIAlign((3, 4), 0.5, 2, aligned=True)
        self.pool = ops.RoIPool((3, 2), 0.5)
        self.ps_align = ops.PSRoIAlign(2, 0.5, 2)
        self.ps_pool = ops.PSRoIPool(2, 0.5)

    def forward(self, x: torch.Tensor, rois: torch.Tensor):
        return (self.align(x, rois), self.pool(x, rois), self.ps_align(x, rois), self.ps_pool(x, rois),
                ops.roi_align(x, [rois[:3, 1:], rois[3:, 1:]], (2, 2), 1.0, -1, False))


class MultiScale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = ops.MultiScaleRoIAlign(["0", "1"], 3, 2)
        self.pyramid = ops.FeaturePyramidNetwork([4, 8], 6, ops.feature_pyramid_network.LastLevelMaxPool())

    def forward(self, a: torch.Tensor, b: torch.Tensor, boxes: list[torch.Tensor]):
        levels = self.pyramid({"0": a, "1": b})
        return self.pool(levels, boxes, [(64, 64), (64, 64)]), levels["pool"]


class Deformable(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = torch.nn.Conv2d(8, 2 * 2 * 9, 3, padding=1)
        self.mask = torch.nn.Conv2d(8, 2 * 9, 3, padding=1)
        self.conv = ops.DeformConv2d(8, 12, 3, padding=1, groups=2)
        self.plain = ops.DeformConv2d(12, 4, 3, stride=2, padding=2, dilation=2, bias=False)
        self.plain_offset = torch.nn.Conv2d(12, 18, 3, stride=2, padding=1)

    def forward(self, x: torch.Tensor):
        y = self.conv(x, self.offset(x), torch.sigmoid(self.mask(x)))
        return self.plain(y, self.plain_offset(y))


class Blocks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = ops.FrozenBatchNorm2d(8)
        self.se = ops.SqueezeExcitation(8, 4)
        self.block = ops.Conv2dNormActivation(8, 8, 3, norm_layer=ops.FrozenBatchNorm2d)
        self.depth = ops.StochasticDepth(0.4, "row")
        self.mlp = ops.MLP(8, [16, 4])
        self.permute = ops.Permute([0, 2, 3, 1])

    def forward(self, x: torch.Tensor, masks: torch.Tensor):
        y = x + self.depth(self.se(self.block(self.norm(x))))
        return self.mlp(self.permute(y)), ops.masks_to_boxes(masks)


def masks():
    m = torch.zeros(3, 12, 14, dtype=torch.bool)
    m[0, 2:5, 3:9] = True
    m[1, 7, 1] = True
    m[2, :, 4:6] = True
    return m


def rois(n, seed):
    b = boxes(n, seed)
    return torch.cat([torch.tensor([[0.0]] * 3 + [[1.0]] * (n - 3)), b], 1)


MODELS["ops_boxes"] = lambda: (BoxOps(), (boxes(40, 1), boxes(7, 2), uniform(40, seed=3), torch.arange(40) % 3))
MODELS["ops_losses"] = lambda: (LossOps(), (rand(6, 5), (rand(6, 5, seed=2) > 0).float(), boxes(6, 1), boxes(6, 2)))
MODELS["ops_roi"] = lambda: (RoiOps(), (rand(2, 8, 24, 28), rois(7, 4)))
MODELS["ops_multiscale"] = lambda: (MultiScale(), (rand(2, 4, 16, 16), rand(2, 8, 8, 8), [boxes(3, 1), boxes(4, 2)]))
MODELS["ops_deform_conv2d"] = lambda: (Deformable(), (rand(2, 8, 10, 11),))
MODELS["ops_blocks"] = lambda: (Blocks(), (rand(2, 8, 9, 9), masks()), {"trace": True})
