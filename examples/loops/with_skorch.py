"""CRUST in skorch: `python examples/loops/with_skorch.py`."""

import torch
from handwriting import EPOCHS, given, images, network, report, train_set
from skorch import NeuralNetClassifier

import crust

model = network()
sampler = crust.CoresetSampler(train_set, given, model, epochs=EPOCHS)  # new
net = NeuralNetClassifier(
    model,
    criterion=torch.nn.CrossEntropyLoss,
    optimizer=torch.optim.AdamW,
    lr=1e-3,
    max_epochs=EPOCHS,
    batch_size=32,
    train_split=None,  # the sampler holds out a tenth itself
    iterator_train__sampler=sampler,  # instead of iterator_train__shuffle=True
    verbose=0,
)
net.fit(images[:1297].numpy(), given)
steps, planned = sum(len(epoch["batches"]) for epoch in net.history), EPOCHS * -(-len(sampler) // 32)
accuracy, auroc = report(net.module_, sampler.audit())
