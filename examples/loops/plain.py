"""CRUST in a plain PyTorch loop: `python examples/loops/plain.py`."""

import torch
from handwriting import EPOCHS, given, network, report, train_set
from torch.utils.data import DataLoader

import crust

model = network()
sampler = crust.CoresetSampler(train_set, given, model, epochs=EPOCHS)  # new
loader = DataLoader(train_set, batch_size=32, sampler=sampler)  # sampler= instead of shuffle=True
optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
planned = EPOCHS * len(loader)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, planned)
steps = 0
for _ in range(EPOCHS):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        sampler.loss(model(x), y).backward()  # instead of cross_entropy
        optimizer.step()
        schedule.step()
        steps += 1
last_rate = schedule.get_last_lr()[0]
accuracy, auroc = report(model, sampler.audit())
