"""CRUST in a loop of Accelerate, with accumulation: `accelerate launch examples/loops/with_accelerate.py`."""

import torch
from accelerate import Accelerator
from handwriting import EPOCHS, given, network, report, train_set
from torch.utils.data import DataLoader

import crust

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = network()
sampler = crust.CoresetSampler(train_set, given, model, epochs=EPOCHS)  # new
loader = DataLoader(train_set, batch_size=16, sampler=sampler)  # sampler= instead of shuffle=True
optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
planned = EPOCHS * -(-len(loader) // 2)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer.optimizer, 1.0, 0.0, planned)
steps = 0
for _ in range(EPOCHS):
    model.train()
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(sampler.loss(model(x), y))  # instead of cross_entropy
            optimizer.step()
            optimizer.zero_grad()
            if accelerator.sync_gradients:
                schedule.step()
                steps += 1
last_rate = schedule.get_last_lr()[0]
if accelerator.is_main_process:
    accuracy, auroc = report(accelerator.unwrap_model(model), sampler.audit())
