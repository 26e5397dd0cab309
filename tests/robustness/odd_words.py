"""Words of the command line as nobody should type them; they are used in a folder that `made` has filled."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import Image
from tests.robustness.odd_files import half, right_npz, rows
from tests.robustness.odd_values import X, Y

TRAIN = "--method erm --epochs 1 --batch-size 16 --learning-rate 0.01 -q"
LONG = "x" * 300

# Of `crust train right.csv`, beside what is right.
TRAIN_WORDS = """
--epochs 0|--epochs -1|--epochs 1.5|--epochs a|--epochs nan|--epochs 99999999999999999999999|--epochs|--epochs=
--batch-size 0|--batch-size -5|--batch-size x|--learning-rate 0|--learning-rate -1|--learning-rate nan
--learning-rate inf|--learning-rate x|--learning-rate 1e999|--seed -1|--seed 9223372036854775808|--seed 1e3|--seed x
--validation 1|--validation -0.1|--validation nan|--validation 2|--validation x|--fraction 0|--fraction -1
--fraction 2|--fraction x|--fraction nan|--limit 0|--limit -3|--limit x|--limit 1|--image-size 0|--image-size -1
--workers -1|--workers x|--keep-every 0|--keep-every -1|--model nothing|--model resnet8|--model text
--model timm:nothing|--model timm:|--model=|--method nothing|--method crsut|--method=|--method oracle
--optimizer nothing|--optimizer=|--mixed-precision fp8|--mixed-precision yes|--budget 5|--budget passes=
--budget passes=0|--budget passes=-1|--budget passes=nan|--budget epochs=3|--budget passes=x|--set|--set a|--set =3
--set a=|--set nothing=3|--set momentum=7|--set momentum=x|--set momentum=[1]
--set momentum=true|--set momentum=[[[[|--set lr_milestones=[2]|--set lr_milestones=x|--set weight_decay=-1
--set seed=.nan|--set weight_decay={a:1}|--set nesterov=maybe|--noise symmetric|--noise symmetric:2
--noise symmetric:-1|--noise symmetric:x|--noise nothing:0.5|--noise symmetric:nan|--noise matrix:nothing.npy
--noise matrix:right.csv|--noise matrix:|--noise :|--noise symmetric:0.5:0.5|--noise pair-flip:1.5
--labels nothing.npy|--labels right.csv:nothing|--labels .|--labels fifo.npy|--labels right.npz:nothing
--true-labels nothing.npy|--true-labels .|--test nothing.csv|--test .|--test digits|--test fifo.csv|--test right.npz
--label-column nothing|--label-column a|--label-column=|--text-column nothing|--text-column label|--recipe nothing
--recipe nothing.yaml|--recipe .|--recipe right.csv|--recipe fifo.yaml|--recipe /dev/zero|--tracker nothing|--tracker=
--nothing|--nothing 3|-x|--epoch 3|extra|extra words --more|--noise symmetric:0.2 --labels right.npz:y
--augment --no-augment --nothing|--skip-broken maybe|-o right.csv|-o right.csv/a|-o /proc/nothing|-o /dev/null
-o /dev/null/a|-o loop|-o loop/a|-o unwritable/run
"""
DATA_WORDS = """
nothing|nothing.csv|nothing/|.|empty|fifo|fifo.csv|fifo.npz|fifo.parquet|loop|loop.csv|/dev/null|/dev/zero|/dev/stdin
/proc/self/mem|/proc/cpuinfo|unreadable.csv|unreadable|right|right.csv:label|right.npz:x|right.txt|right.pt|folder.csv
folder.npz|cifar10|cifar100|webvision|imagenet|Digits|images/nothing|http://localhost/a.csv|s3://bucket/a.csv
~nobody/a.csv|*.csv|~|broken|one-class-images|flat-images|empty-classes|cut-images|fifo-images|text-images|deep-images
svg-images|-|--
"""
RUN_WORDS = """
nothing|.|empty|right.csv|fifo|loop|/dev/null|/dev/null/a|unreadable|images
"""
# The commands that open a run, and what they need besides.
RUN_COMMANDS = {
    "predict": "right.csv",
    "audit": "",
    "report": "",
    "verify": "",
    "review": "--export out.csv",
    "apply": "right-corrections.csv",
    "theory": "",
}
OTHER_WORDS = """
audit|audit run --top -1|audit run --top x|audit run -o x.txt|audit run -o nothing/x.csv|audit run -o /dev/full/x.csv
audit run -o .|audit run --labels right.npz|audit --probs right.npz|audit --probs nothing.npy --labels right.npz:y
audit run --probs probs.npy|audit --features x.npy --labels right.npz:y --probs probs.npy|audit --features x.npy
audit --labels right.npz:y|audit run extra|audit --features fifo.npy --labels right.npz:y
audit --features x.npy --labels fifo.npy|audit --probs x.npy --labels right.npz:y|report|report run -o x.txt
report run -o nothing/x.html|report run -o .|report run --data nothing|report run --data fifo|report --features x.npy
report --features x.npy --labels right.npz:y|report --features x.npy --labels right.npz:y -o x.csv
report --features x.npy --labels right.npz:y -o x.html --data nothing.txt
report --features x.npy --labels right.npz:y -o x.html --data fifo
report --features x.npy --labels right.npz:y -o x.html --data short.txt
report --features x.npy --labels right.npz:y -o x.html --data .
report --features x.npy --labels right.npz:y -o x.html --data latin.txt
report --features x.npy --labels right.npz:y -o x.html --data objects.npy|predict run|predict run right.csv -o x.txt
predict run right.csv -o nothing/x.csv|predict run right.csv --batch-size 0|predict run right.csv --batch-size x
predict run nothing.csv|predict run .|predict run fifo.csv|predict run right.npz|predict run images
predict run other.csv|predict run empty.csv|predict run right.csv -o right.csv|predict run digits
predict run words.csv|predict run right.csv -o unwritable/x.csv|predict run|predict|verify run --data nothing
verify run --data fifo|verify run --data other.csv|verify|verify run|review run --export x.txt
review run --export nothing/x.csv|review run --port 99999|review run --port x|review run --export out.csv
review run --data nothing --export out.csv|review|apply run|apply run nothing.csv|apply run fifo.csv|apply run .
apply run right-corrections.csv --move|apply run --move-back|apply run right-corrections.csv -o x.txt
apply run right-corrections.csv -o nothing/x.csv|apply run right-corrections.csv -o right.csv
apply run right-corrections.csv --data nothing.csv|apply run right-corrections.csv --data other.csv
apply run right-corrections.csv -o fifo.csv|apply run empty.sqlite|apply run text.sqlite
apply run right-corrections.csv --data fifo|apply|theory run --epochs x|theory run --epochs -1|theory run --epochs 99
theory run --points 1|theory run --cut x|theory run --cut -1|theory run --cut nan|theory run --repeats -1
theory run -o right.csv|theory run --epochs 1,,2|theory run --epochs {digits}|theory
theory run --points 99999999999999999999|select x.npy|select|select x.npy -k 0|select x.npy -k -1|select x.npy -k 2.5
select x.npy -k x|select x.npy -k nan|select x.npy -k 41|select x.npy -k 99999999999999999999999
select x.npy -k 5 -o x.csv|select x.npy -k 5 -o nothing/x.parquet|select x.npy -k 5 -o .
select x.npy -k 5 --groups nothing.npy|select x.npy -k 5 --groups short.npy|select x.npy -k 5 --groups fifo.npy
select x.npy -k 5 --columns a|select right.csv -k 5 --columns nothing|select right.csv -k 5 --columns label
select right.csv -k 5 --columns a,a|select right.csv -k 5 --columns=|select right.csv -k 5 --group-column nothing
select x.npy -k 5 --group-column a|select x.npy -k 5 --algorithm nothing|select x.npy -k 5 --metric l1
select x.npy -k 5 --metric precomputed|select x.npy -k 5 --min-per-group -1|select x.npy -k 5 --epsilon 0
select x.npy -k 5 --epsilon 2|select x.npy -k 5 --epsilon nan|select x.npy -k 5 --seed -1
select x.npy -k 5 --threads 0|select x.npy -k 5 --threads -1|select x.npy -k 5 --memory-limit 0
select x.npy -k 5 --memory-limit x|select x.npy -k 5 --memory-limit 5XB|select x.npy -k 5 --device gpu
select x.npy -k 5 --device cuda:7|select x.npy -k 5 --engine spark
select x.npy -k 5 --engine ray --address nowhere:1 --algorithm greedy|select x.npy -k 5 --address a
select x.npy -k 5 --plot x.txt|select x.npy -k 5 --plot nothing/x.png|select x.npy -k 5 --nothing|select fifo.npy -k 5
select loop -k 5|select empty -k 5|select . -k 5|select unreadable.csv -k 5|select right.npz -k 5
select right.npz:z -k 5|select x.npy x.npy -k 5|select /dev/zero -k 5|select /dev/null -k 5|select x.npy -k 5 -o x.npy
select x.npy -k 5 --groups .|reproduce|reproduce nothing|reproduce table1 --scale nothing|reproduce table1 --seeds x
reproduce table1 --seeds 0|reproduce table1 --seeds -1|reproduce table1 --seeds 99999999999999
reproduce table1 --methods nothing|reproduce table1 --methods=|reproduce table1 --engine nothing
reproduce table1 --jobs 0|reproduce table1 --jobs x|reproduce --grid nothing.yaml|reproduce --grid .
reproduce --grid fifo.yaml|reproduce --grid right.csv|reproduce table1 --grid grid.yaml
reproduce table1 --results nothing --dry-run|reproduce table1 --results fifo --dry-run
reproduce table1 --results right.csv --dry-run|reproduce table1 --data-dir nothing
reproduce table1 --human-labels nothing.npz|reproduce table1 --cpus -1|reproduce table1 --cpus nan
reproduce table1 --gpus 7|reproduce table1 --workers -1|reproduce table1 -o right.csv|reproduce table1 -o /dev/null/a
reproduce all all all --scale|reproduce table9|methods nothing|methods crust extra|methods --json nothing
methods ../../etc/passwd|demo --epochs 0|demo --epochs x|demo --seed -1|demo -o right.csv|demo -o /dev/null/a
demo extra|demo --seed 99999999999999999999|nothing|trian|--nothing|-q|--version extra|help|train train train
"""
RIGHT = {
    "report --features x.npy --labels right.npz:y",
    "report --features x.npy --labels right.npz:y -o x.html",
    "--version extra",
    "report --features x.npy --labels right.npz:y -o x.html --data latin.txt",
    "select right.csv -k 5 --columns a,a",
    "select right.csv -k 5 --columns=",
    "theory run --points 99999999999999999999",
}


def listed(words: str) -> list[str]:
    return [one.strip() for one in words.strip().replace("\n", "|").split("|")]


def made(folder: Path) -> None:
    """All files that the words name, in the folder one stands in."""
    os.chdir(folder)
    text = rows()
    for name in ("right.csv", "right", "right.txt", "right.pt", "unreadable.csv"):
        Path(name).write_text(text)
    Path("other.csv").write_text(text.replace("a,b,label", "c,d,kind"))
    Path("words.csv").write_text(text.replace("0.", "zero"))
    Path("right-corrections.csv").write_text("index,corrected\n0,dog\n")
    Path("grid.yaml").write_text(
        "data: digits\nlabels: symmetric:0.2\nmethod: erm\nepochs: 1\nlimit: 60\nmodel: mlp\nscale: smoke\n"
    )
    for name in ("empty.csv", "empty.sqlite"):
        Path(name).write_text("")
    Path("text.sqlite").write_text("no database" * 100)
    Path("short.txt").write_text("a\nb\n")
    Path("latin.txt").write_bytes(b"caf\xe9\n" * 40)
    right_npz(Path("right.npz"))
    np.save("x.npy", X)
    np.save("short.npy", Y[:5])
    np.save("probs.npy", np.eye(2)[Y])
    np.save("objects.npy", np.array([None] * 40), allow_pickle=True)
    for name in (
        "empty",
        "folder.csv",
        "folder.npz",
        "unwritable",
        "unreadable",
        "empty-classes/cat",
        "empty-classes/dog",
    ):
        Path(name).mkdir(parents=True)
    for name in ("fifo", "fifo.csv", "fifo.npz", "fifo.parquet", "fifo.npy", "fifo.yaml"):
        os.mkfifo(name)
    Path("loop").symlink_to("loop")
    Path("loop.csv").symlink_to("loop.csv")
    Path("broken").symlink_to("nowhere")
    images("images")
    images("one-class-images", ("cat",))
    images("flat-images", ("",))
    images("cut-images")
    for path in Path("cut-images").rglob("*.png"):
        path.write_bytes(half(path.read_bytes()))
    images("fifo-images")
    os.mkfifo("fifo-images/cat/pipe.png")
    for kind, content in (("text", b"no image"), ("svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>")):
        for label in ("cat", "dog"):
            Path(f"{kind}-images/{label}").mkdir(parents=True)
            Path(f"{kind}-images/{label}/a.png").write_bytes(content)
    images("deep-images")
    Path("deep-images/cat/again").symlink_to("..")
    for name in ("unreadable.csv", "unreadable", "unwritable"):
        Path(name).chmod(0)


def images(root: str, classes: tuple[str, ...] = ("cat", "dog")) -> None:
    rng = np.random.default_rng(0)
    for label, name in enumerate(classes):
        Path(root, name).mkdir(parents=True)
        for i in range(8):
            pixels = rng.integers(0, 100, (8, 8, 3), dtype=np.uint8) + np.uint8(100 * label)
            Image.fromarray(pixels).save(Path(root, name, f"{i}.png"))
