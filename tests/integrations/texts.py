"""A small text problem for the frameworks: three topics of ten words among filler, a third of the labels wrong."""

import numpy as np
import torch

TOPICS, EACH, FILLER = 3, 10, 40
VOCABULARY = 1 + TOPICS * EACH + FILLER  # 0 is padding
CLASSES = ["sea", "sky", "sun"]


def texts(n: int = 300, seed: int = 0, wrong: float = 0.3):
    """Lists of token ids of different lengths, given labels, true labels."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, TOPICS, n)
    ids = []
    for topic in true:
        own = 1 + topic * EACH + rng.integers(0, EACH, rng.integers(2, 5))
        other = 1 + TOPICS * EACH + rng.integers(0, FILLER, rng.integers(2, 12))
        ids.append(rng.permutation(np.concatenate([own, other])).tolist())
    given = np.where(rng.random(n) < wrong, (true + rng.integers(1, TOPICS, n)) % TOPICS, true)
    return ids, given, true


def bert(seed: int = 0):
    """Two hidden layers less than the smallest one has, with random weights."""
    from transformers import BertConfig, BertForSequenceClassification

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=32,
            num_labels=TOPICS,
        )
        return BertForSequenceClassification(config)


def collator():
    """The collator of transformers, with a tokenizer that needs no download."""
    from tokenizers import Tokenizer, models
    from transformers import DataCollatorWithPadding, PreTrainedTokenizerFast

    words = {f"w{i}": i for i in range(1, VOCABULARY)} | {"[PAD]": 0}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[PAD]"))
    return DataCollatorWithPadding(PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]"))


def dataset(n: int = 300, seed: int = 0, wrong: float = 0.3):
    """As users of `datasets` have it: a text column too, names of classes, lists of different lengths."""
    from datasets import ClassLabel, Dataset, Features, Sequence, Value

    ids, given, true = texts(n, seed, wrong)
    columns = {
        "text": [" ".join(f"w{i}" for i in row) for row in ids],
        "label": given.tolist(),
        "input_ids": ids,
        "attention_mask": [[1] * len(row) for row in ids],
    }
    features = Features(
        text=Value("string"),
        label=ClassLabel(names=CLASSES),
        input_ids=Sequence(Value("int64")),
        attention_mask=Sequence(Value("int64")),
    )
    return Dataset.from_dict(columns, features=features), given, true


def auroc(table, wrong) -> float:
    """How well the audit ranks the wrong labels."""
    quality = table["label_quality"].to_numpy()
    return float((quality[wrong][:, None] < quality[~wrong][None]).mean())
