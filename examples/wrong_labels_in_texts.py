"""Find wrong labels in mails, or in any texts.

    python examples/wrong_labels_in_texts.py [MAILS.csv TEXT_COLUMN LABEL_COLUMN]

Without a table it takes what Python's own modules say of their functions, with a tenth of the topics made wrong.
Leaves wrong_labels_in_texts.png: for how many texts of each topic another one is predicted.
"""

import inspect
import sys
import tkinter
import unittest.mock
from email import message
from logging import handlers

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import crust

if len(sys.argv) == 4:
    frame = pd.read_csv(sys.argv[1])
    texts, given = frame[sys.argv[2]].astype(str).tolist(), frame[sys.argv[3]].to_numpy()
    length = {}
else:
    topics = {"windows": tkinter, "tests": unittest.case, "mails": message, "logs": handlers, "mocks": unittest.mock}
    rows = set()
    for topic, module in topics.items():
        for _, kind in inspect.getmembers(module, inspect.isclass):
            rows |= {(text, topic) for _, each in inspect.getmembers(kind, callable) if (text := inspect.getdoc(each))}
    rows = sorted(row for row in rows if len(row[0]) > 40)
    texts, truth = [row[0] for row in rows], np.array([row[1] for row in rows])
    rng = np.random.default_rng(0)
    planted = rng.random(len(rows)) < 0.1
    given = np.where(planted, rng.permutation(truth), truth)
    length = {"epochs": 6}

result = crust.fit("text", (texts, given), **length)
table = result.audit()
for _, row in table.sort_values("label_quality").head(8).iterrows():
    print(f"{row['given_label']} rather {row['predicted_label']}: {texts[row['index']][:70]!r}")

pd.crosstab(table["given_label"], table["predicted_label"]).plot.bar(stacked=True)
plt.ylabel("texts, by predicted label")
plt.tight_layout()
plt.savefig("wrong_labels_in_texts.png", dpi=120)
