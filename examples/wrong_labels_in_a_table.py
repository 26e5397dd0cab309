"""Find wrong labels in a table: 178 wines of three growers, a tenth of them under the wrong name.

    python examples/wrong_labels_in_a_table.py [TABLE.csv LABEL_COLUMN]

Leaves wrong_labels_in_a_table.png: how far down the list the planted errors are.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import crust

planted = None
if len(sys.argv) == 3:
    frame = pd.read_csv(sys.argv[1])
    given, features = frame[sys.argv[2]].to_numpy(), frame.drop(columns=sys.argv[2]).select_dtypes("number").to_numpy()
else:
    features, truth = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    planted = rng.permutation(len(truth)) < len(truth) // 10
    given = np.where(planted, (truth + 1) % 3, truth)

features = StandardScaler().fit_transform(features)
quick = crust.find_label_issues(given, features=features)  # no training: neighbours and a linear model
result = crust.fit("auto", (features.astype("float32"), given), method="crust", seed=0)  # a network, and its audit
trained = result.audit()

print(trained.sort_values("label_quality").head(10)[["index", "given_label", "predicted_label", "label_quality"]])
if planted is not None:
    for name, table in (("features", quick), ("training", trained)):
        order = np.argsort(table["label_quality"].to_numpy(), kind="stable")
        found = np.cumsum(planted[table["index"].to_numpy()[order]]) / planted.sum()
        plt.plot(np.arange(1, len(found) + 1), found, label=f"from {name}")
    plt.axvline(planted.sum(), color="grey", linestyle=":", label="as many as are wrong")
    plt.ylabel("share of the wrong labels that is found")
else:
    plt.plot(np.sort(trained["label_quality"]))
    plt.ylabel("label quality")
plt.xlabel("labels looked at, worst first")
plt.legend()
plt.savefig("wrong_labels_in_a_table.png", dpi=120)
