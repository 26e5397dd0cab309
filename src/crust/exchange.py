"""Label issues to other tools, and annotations back as corrections: cleanlab, Label Studio, Argilla, FiftyOne.

None of these tools needs to be installed: what is written are the files, tables and dicts that they read.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from crust._util.atomic_write import write_atomic
from crust._util.foreign import as_array, cannot_read, check_text, is_sequence
from crust._util.foreign_files import LONGEST, parse_json, path_of, read_file
from crust._util.output_files import write_table
from crust.audit.audit_tables import as_audit, classes_of
from crust.errors import InputError, choices
from crust.report.payload import worst_first

if TYPE_CHECKING:
    import pandas as pd

    from crust.report.previews import Looks

__all__ = [
    "from_argilla",
    "from_cleanlab",
    "from_fiftyone",
    "from_label_studio",
    "label_studio_config",
    "read_annotations",
    "to_argilla",
    "to_cleanlab",
    "to_fiftyone",
    "to_label_studio",
]

TOOLS = {"cleanlab": (".csv", ".parquet"), "label-studio": (".json",), "argilla": (".json",), "fiftyone": (".json",)}
INDEX, ID = "crust_index", "crust_id"  # what says in other tools which example is meant
NUMBERS = ("label_quality", "predicted_prob")

log = logging.getLogger("crust")


def write_for(tool: str, table: pd.DataFrame, path: Path, *, looks: Looks | None = None) -> None:
    """What a tool reads, as a file.

    Args:
        tool: one of `TOOLS`.
        table: an audit, or a part of it.
        path: where it goes.
        looks: how the examples are shown.
    """
    if tool == "cleanlab":
        write_table(to_cleanlab(table).reset_index(names="index"), path)
        return
    found: Any
    if tool == "label-studio":
        found = to_label_studio(table, looks)
    elif tool == "argilla":
        found = to_argilla(table, looks)
    else:
        found = to_fiftyone(table)
    write_atomic(path, json.dumps(found, ensure_ascii=False, indent=1, default=_plain).encode("utf-8", "replace"))


# ------------------------------------------------------------ cleanlab


def to_cleanlab(audit: pd.DataFrame, classes: Sequence[Any] | None = None) -> pd.DataFrame:
    """Label issues as cleanlab has them: what `CleanLearning.fit(label_issues=...)` takes.

    Args:
        audit: the table of an audit.
        classes: in the order of their numbers; None takes those that occur, sorted. Labels become numbers, as in
            cleanlab.

    Returns:
        Columns `is_label_issue`, `label_quality`, `given_label`, `predicted_label`; the index is the position.

    Example:
        >>> import pandas as pd
        >>> columns = {"given_label": ["cat", "dog"], "predicted_label": ["cat", "cat"], "label_quality": [0.9, 0.2]}
        >>> found = to_cleanlab(pd.DataFrame({"index": [0, 1], **columns, "is_label_issue": [False, True]}))
        >>> found.values.tolist()
        [[False, 0.9, 0, 0], [True, 0.2, 1, 0]]
    """
    import pandas as pd

    from crust.data.labels import column_codes

    audit = _any_audit(audit)
    if not (classes is None or is_sequence(classes)):
        raise InputError(f"classes are a {type(classes).__name__}: give a list of names", code="classes-type")
    names = classes_of(audit) if classes is None else list(classes)
    if len({str(name) for name in names}) < len(names):
        raise InputError("the classes name one twice: name each once", code="classes-type")
    columns: dict[str, Any] = {name: audit[name].to_numpy() for name in ("is_label_issue", "label_quality")}
    columns |= {name: column_codes(audit[name], names, name) for name in ("given_label", "predicted_label")}
    return pd.DataFrame(columns, index=audit["index"].to_numpy()).sort_index()


def from_cleanlab(found: Any, labels: Any = None, pred_probs: Any = None) -> pd.DataFrame:
    """What cleanlab has found as an audit, for `crust.review_labels`, `crust report` and the rest.

    Args:
        found: a `Datalab` after `find_issues`, the table of its `get_issues("label")` or of `CleanLearning`, or what
            `cleanlab.filter.find_label_issues` returns: a mask, or positions.
        labels: the labels that were given to `find_label_issues`.
        pred_probs: the probabilities that were.

    Example:
        >>> table = from_cleanlab([1], labels=[0, 1, 1], pred_probs=[[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]])
        >>> table["is_label_issue"].tolist()
        [False, True, False]
    """
    if hasattr(found, "get_issues"):
        try:
            found = found.get_issues("label")
        except Exception as error:  # of another package
            raise cannot_read("the issues of cleanlab", error) from error
    if hasattr(found, "iloc") and hasattr(found, "columns"):
        return as_audit(found, "the table of cleanlab")[0]
    if labels is None or pred_probs is None:
        raise InputError(
            "a mask or positions do not say which labels they are of: give labels and pred_probs too",
            code="options-missing",
        )
    from crust.audit import find_label_issues

    table = find_label_issues(labels, pred_probs)
    listed = as_array(found, "the issues")
    if listed.ndim != 1 or (listed.dtype.kind not in "biu" and listed.size):
        raise InputError(
            f"the issues have shape {listed.shape} of {listed.dtype}: give a mask, or positions", code="index-type"
        )
    if listed.dtype == bool:
        if listed.shape != (len(table),):
            raise InputError(
                f"the mask has {listed.size} entries, but there are {len(table)} labels: give those it was made from",
                code="labels-length",
            )
        return table.assign(is_label_issue=listed)
    if listed.size and (listed.min() < 0 or listed.max() >= len(table)):
        worst = listed.min() if listed.min() < 0 else listed.max()
        raise InputError(
            f"position {worst} is none of the {len(table)} labels: give the labels it was made from",
            code="unknown-example",
        )
    return table.assign(is_label_issue=np.isin(np.arange(len(table)), listed))


# ------------------------------------------------------------ Label Studio


def to_label_studio(
    audit: pd.DataFrame, looks: Looks | None = None, *, image_prefix: str = "/data/local-files/?d="
) -> list[dict[str, Any]]:
    """Tasks for Label Studio, the worst label first, with the predicted label as a prediction.

    Args:
        audit: the table of an audit, or the part of it that is to be annotated.
        looks: what is shown (`crust.runs.show_source.looks_of_shown`); without it there is the name alone.
        image_prefix: what stands before the name of an image file: that of Label Studio's local storage, whose document
            root is then the folder of the images, or the address of a server.

    Example:
        >>> import pandas as pd
        >>> columns = {"given_label": ["cat"], "predicted_label": ["dog"], "label_quality": [0.2]}
        >>> task = to_label_studio(pd.DataFrame({"index": [4], **columns, "predicted_prob": [0.8]}))[0]
        >>> task["data"]["crust_index"], task["predictions"][0]["result"][0]["value"]
        (4, {'choices': ['dog']})
    """
    tasks = []
    for row in worst_first(_any_audit(audit)).to_dict("records"):
        kind, shown = _shown(row, looks)
        if kind == "image":
            shown = image_prefix + quote(str(row.get("id", "")) or Path(shown).name)
        data = {kind: shown, "given_label": str(row["given_label"]), INDEX: int(row["index"])}
        data |= {ID: str(row["id"])} if "id" in row else {}
        data |= {name: _rounded(row.get(name)) for name in NUMBERS}
        result = {
            "id": f"crust-{row['index']}", "from_name": "label", "to_name": kind, "type": "choices",
            "value": {"choices": [str(row["predicted_label"])]},
        }  # fmt: skip
        score = _rounded(row.get("predicted_prob"))
        prediction = {"model_version": "crust", "result": [result]} | ({} if score is None else {"score": score})
        tasks.append({"data": data, "predictions": [prediction]})
    return tasks


def label_studio_config(classes: Sequence[Any], kind: str = "text") -> str:
    """The labelling interface that belongs to these tasks; `kind` is text, image or row.

    Example:
        >>> print(label_studio_config(["cat", "d<g"], "image"))
        <View>
          <Image name="image" value="$image"/>
          <Choices name="label" toName="image" choice="single" showInline="true">
            <Choice value="cat"/>
            <Choice value="d&lt;g"/>
          </Choices>
        </View>
    """
    from markupsafe import escape

    tags = {"text": "Text", "image": "Image", "row": "Table"}
    tag = tags[choices(kind, tags, "kind")]
    if not is_sequence(classes) or not len(classes):
        raise InputError("there are no classes to choose from: give their names", code="classes-type")
    listed = "\n".join(f'    <Choice value="{escape(str(name))}"/>' for name in classes)
    head = f'  <{tag} name="{kind}" value="${kind}"/>'
    inner = f'  <Choices name="label" toName="{kind}" choice="single" showInline="true">\n{listed}\n  </Choices>'
    return f"<View>\n{head}\n{inner}\n</View>"


def from_label_studio(export: str | Path | Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Annotations of Label Studio as corrections: an export as JSON or JSON-MIN of tasks of `to_label_studio`.

    Where several people have annotated a task and do not agree, it is left out, which the log says; cancelled
    annotations do not count.

    Example:
        >>> value = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": ["dog"]}}
        >>> done = [{"data": {"crust_index": 4}, "annotations": [{"result": [value], "was_cancelled": False}]}]
        >>> from_label_studio(done)[["index", "corrected"]].values.tolist()
        [[4, 'dog']]
    """
    found, what = [], "the export of Label Studio"
    for task in _listed(export, "an export of Label Studio"):
        data = task["data"] if isinstance(task.get("data"), Mapping) else task
        if "annotations" in task:
            chosen = [
                name
                for one in _json_objects(task["annotations"], what)
                if not one.get("was_cancelled")
                for result in _json_objects(one.get("result"), what)
                if result.get("type") == "choices" and result.get("from_name", "label") == "label"
                for name in _chosen_names(_json_object(result.get("value"), what).get("choices"), what)
            ]
        else:  # JSON-MIN: one annotation a task, flat
            label = task.get("label", task.get("choice"))
            chosen = _chosen_names(label.get("choices") if isinstance(label, Mapping) else label, what)
        found.append((data, chosen))
    return _corrections(found, "the export of Label Studio")


# ------------------------------------------------------------ Argilla


def to_argilla(audit: pd.DataFrame, looks: Looks | None = None, question: str = "label") -> list[dict[str, Any]]:
    """Records for Argilla, the worst label first: `dataset.records.from_json(path)`, or `Record.from_dict` of each.

    Args:
        audit: the table of an audit, or the part of it that is to be annotated.
        looks: what is shown.
        question: the name of the label question, for which the predicted label is a suggestion.

    Example:
        >>> import pandas as pd
        >>> columns = {"given_label": ["cat"], "predicted_label": ["dog"], "label_quality": [0.2]}
        >>> record = to_argilla(pd.DataFrame({"index": [4], **columns, "predicted_prob": [0.8]}))[0]
        >>> record["suggestions"], record["metadata"]["given_label"]
        ({'label': {'value': 'dog', 'score': 0.8, 'agent': 'crust'}}, 'cat')
    """
    records = []
    for row in worst_first(_any_audit(audit)).to_dict("records"):
        kind, shown = _shown(row, looks)
        fields = {str(name): str(value) for name, value in shown.items()} if kind == "row" else {kind: str(shown)}
        metadata = {INDEX: int(row["index"]), "given_label": str(row["given_label"])}
        metadata |= {name: _rounded(row.get(name)) for name in NUMBERS if _rounded(row.get(name)) is not None}
        suggestion = {
            "value": str(row["predicted_label"]),
            "score": _rounded(row.get("predicted_prob")),
            "agent": "crust",
        }
        records.append(
            {
                "id": str(row.get("id") or row["index"]), "fields": fields, "metadata": metadata,
                "suggestions": {question: suggestion}, "responses": {}, "vectors": {},
            }
        )  # fmt: skip
    return records


def from_argilla(records: Any, question: str = "label") -> pd.DataFrame:
    """Responses of Argilla as corrections: a file of `dataset.records.to_json`, its dicts, or the records themselves.

    Example:
        >>> done = [{"metadata": {"crust_index": 4}, "responses": {"label": [{"value": "dog", "user_id": "1"}]}}]
        >>> from_argilla(done)[["index", "corrected"]].values.tolist()
        [[4, 'dog']]
    """
    found, what = [], "the records of Argilla"
    for record in _listed(records, "records of Argilla"):
        answers = _json_objects(_json_object(record.get("responses"), what).get(question), what)
        given = [one.get("value") for one in answers if one.get("status") != "discarded"]
        chosen = [name for value in given for name in _chosen_names(value, what)]
        found.append(({**_json_object(record.get("metadata"), what), ID: record.get("id")}, chosen))
    return _corrections(found, "the records of Argilla")


# ------------------------------------------------------------ FiftyOne


def to_fiftyone(audit: pd.DataFrame) -> dict[str, Any]:
    """The `labels.json` of a `fiftyone.types.FiftyOneImageClassificationDataset`, beside whose images it is opened.

    `fo.Dataset.from_dir(data_path="photos", labels_path="labels.json", dataset_type=...)` then has a classification a
    sample: the given label, with the label quality as its confidence and the rest as attributes.

    Example:
        >>> import pandas as pd
        >>> columns = {"given_label": ["cat"], "predicted_label": ["dog"], "label_quality": [0.2]}
        >>> to_fiftyone(pd.DataFrame({"index": [4], "id": ["cat/a.png"], **columns}))["labels"]["cat/a"]["label"]
        'cat'
    """
    audit = _any_audit(audit)
    if "id" not in audit:
        raise InputError("the audit has no column id that would name the images: FiftyOne needs it", code="missing-ids")
    labels = {}
    for row in worst_first(audit).to_dict("records"):
        attributes = {INDEX: int(row["index"]), "predicted_label": str(row["predicted_label"])}
        attributes |= {"is_label_issue": bool(row.get("is_label_issue", False))}
        attributes |= {"predicted_prob": _rounded(row.get("predicted_prob"))}
        name = str(Path(str(row["id"])).with_suffix("").as_posix())
        if name in labels:
            raise InputError(
                f"two images are called {name} but for their endings, which FiftyOne cannot tell apart: rename one",
                code="duplicate-example",
            )
        quality = _rounded(row["label_quality"])
        labels[name] = {"label": str(row["given_label"]), "confidence": quality, "attributes": attributes}
    return {"classes": [str(name) for name in classes_of(audit)], "labels": labels}


def from_fiftyone(export: str | Path | Mapping[str, Any]) -> pd.DataFrame:
    """Labels of a FiftyOne export (its `labels.json`, or the folder with it) as corrections.

    Example:
        >>> done = {"classes": ["cat", "dog"], "labels": {"cat/a": 1, "cat/b": {"label": "cat"}, "cat/c": None}}
        >>> from_fiftyone(done)[["id", "corrected"]].values.tolist()
        [['cat/a', 'dog'], ['cat/b', 'cat']]
    """
    found = _json(export, "an export of FiftyOne") if isinstance(export, str | Path) else export
    if not isinstance(found, Mapping) or not isinstance(found.get("labels"), Mapping):
        raise InputError(
            "this is no labels.json of FiftyOne: export a FiftyOneImageClassificationDataset", code="file-type"
        )
    what = "the export of FiftyOne"
    classes, rows = _chosen_names(found.get("classes"), what), []
    for name, target in found["labels"].items():
        attributes: Mapping[str, Any] = {}
        if isinstance(target, Mapping):
            attributes, target = _json_object(target.get("attributes"), what), target.get("label")
        if isinstance(target, int) and not isinstance(target, bool) and 0 <= target < len(classes):
            target = classes[target]
        about = {INDEX: attributes[INDEX]} if INDEX in attributes else {ID: name}
        rows.append((about, _chosen_names(target, what)))
    return _corrections(rows, what)


# ------------------------------------------------------------ shared


def read_annotations(path: str | Path) -> pd.DataFrame:
    """The corrections in a .json of any of these tools, by what stands in it.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "labels.json"
        >>> _ = path.write_text('{"classes": ["cat", "dog"], "labels": {"cat/a": 1}}')
        >>> read_annotations(path)["corrected"].tolist()
        ['dog']
    """
    found = _json(path, "annotations")
    if isinstance(found, Mapping):
        return from_fiftyone(found)
    if isinstance(found, list) and found and isinstance(found[0], Mapping):
        return from_argilla(found) if "responses" in found[0] and "fields" in found[0] else from_label_studio(found)
    raise InputError(
        f"{path} holds no annotations of Label Studio, Argilla or FiftyOne: export them as JSON", code="file-type"
    )


def _any_audit(audit: pd.DataFrame) -> pd.DataFrame:
    """Any table of label issues, in our words."""
    return as_audit(audit, "the audit")[0]


def _json_objects(values: Any, what: str) -> list[Mapping[str, Any]]:
    """A list of JSON objects, or nothing."""
    if values is None:
        return []
    if not isinstance(values, list | tuple) or not all(isinstance(one, Mapping) for one in values):
        raise _unlike(values, what)
    return list(values)


def _json_object(value: Any, what: str) -> Mapping[str, Any]:
    """A JSON object, or an empty one."""
    if value is not None and not isinstance(value, Mapping):
        raise _unlike(value, what)
    return value or {}


def _chosen_names(value: Any, what: str) -> list[str]:
    """Names of classes: one, several or none."""
    values = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
    if not all(isinstance(one, str | int | float) for one in values):
        raise _unlike(value, what)
    check_text(values, what)
    return [str(one) for one in values]


def _unlike(value: Any, what: str) -> InputError:
    return InputError(
        f"{what} holds {value!r:.{LONGEST}} where it usually has something else: export it once more as JSON",
        code="file-type",
    )


def _corrections(found: Sequence[tuple[Mapping[str, Any], list[str]]], what: str) -> pd.DataFrame:
    """One row an example that is annotated with one label."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    apart = 0
    for about, chosen in found:
        if not chosen:
            continue
        if len(set(chosen)) > 1:
            apart += 1
            continue
        index, name = about.get(INDEX), about.get(ID)
        if index is None and name is None:
            raise InputError(
                f"{what} does not say which examples it is about: it has no {INDEX}, so begin with what crust wrote",
                code="unknown-example",
            )
        for value, kinds in ((index, (int, float, NoneType)), (name, (str, int, float, NoneType))):
            if not isinstance(value, kinds):
                raise _unlike(value, what)
        rows.append({"index": index, "id": None if name is None else str(name), "corrected": chosen[0]})
    if apart:
        log.warning("%d annotations of %s do not agree with each other and are left out", apart, what)
    check_text([row["id"] for row in rows], f"the ids in {what}")
    columns = {name: pd.Series([row[name] for row in rows], dtype=object) for name in ("index", "id", "corrected")}
    if all(row["index"] is not None for row in rows):
        del columns["id"]
    elif all(row["index"] is None for row in rows):
        del columns["index"]
    return pd.DataFrame(columns)


def _shown(row: Mapping[str, Any], looks: Looks | None) -> tuple[str, Any]:
    """What is shown of an example, and which kind it is."""
    index = int(row["index"])
    cells = None if looks is None else looks.row(index)
    if looks is not None and cells is not None:
        return ("text", cells[0]) if len(cells) == 1 else ("row", dict(zip(looks.columns, cells, strict=True)))
    if looks is not None and index in looks.files:
        return "image", str(looks.files[index])
    return "text", str(row.get("text") or row.get("id") or f"example {index}")


def _rounded(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else round(float(value), 6)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _listed(source: Any, what: str) -> list[Mapping[str, Any]]:
    """Dicts from a file, from a list of them, or from objects that become such."""
    found = _json(source, what) if isinstance(source, str | Path) else source
    if isinstance(found, Mapping | str) or not hasattr(found, "__iter__"):
        raise InputError(f"this is not {what}, which is a list: export it as JSON", code="file-type")
    try:
        rows = [one.to_dict() if hasattr(one, "to_dict") else one for one in found]
    except Exception as error:  # of another package
        raise cannot_read(what, error) from error
    if not all(isinstance(one, Mapping) for one in rows):
        raise InputError(f"this is not {what}, which is a list of objects: export it as JSON", code="file-type")
    return rows


def _json(path: str | Path, what: str) -> Any:
    place = path_of(path, what)
    place = place / "labels.json" if place.is_dir() else place
    try:
        return parse_json(read_file(place).decode())
    except OSError as error:
        raise InputError(f"cannot read {place}: {(error.strerror or str(error)).lower()}", code="cannot-read") from None
    except ValueError:
        raise InputError(f"{place} is no JSON: {what} was expected", code="file-type") from None
