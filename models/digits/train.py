"""Trains digits.py and writes digits.safetensors and the sample images.

Data: "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, UCI Machine Learning
Repository, CC BY 4.0) as scikit-learn ships it. Needs torch, safetensors and scikit-learn:
python models/digits/train.py"""
import os

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from sklearn.datasets import load_digits

from digits import Digits

HERE = os.path.dirname(os.path.abspath(__file__))
data = load_digits()
images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1)
labels = torch.tensor(data.target)
train, test = slice(0, 1400), slice(1400, None)

torch.manual_seed(1)
net = Digits()
optimiser = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
for epoch in range(40):
    net.train()
    order = torch.randperm(1400)
    for start in range(0, 1400, 50):
        pick = order[start:start + 50]
        shift = torch.randint(-1, 2, (2,)).tolist()
        x = torch.roll(images[pick], shift, (2, 3)) if epoch % 2 else images[pick]
        loss = F.nll_loss(torch.log(net(x) + 1e-9), labels[pick])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
net.eval()
with torch.no_grad():
    hits = (net(images[test]).argmax(1) == labels[test]).sum().item()
print(f"{hits} of {len(labels[test])} unseen digits right")
save_file({k: v for k, v in net.state_dict().items()}, os.path.join(HERE, "digits.safetensors"))
for digit in range(10):
    at = next(i for i in range(1400, len(labels)) if labels[i] == digit)
    pixels = bytes(int(v) for v in images[at].flatten())
    with open(os.path.join(HERE, "images", f"{digit}.pgm"), "wb") as file:
        file.write(b"P5\n8 8\n16\n" + pixels)
